//! The answers of models that the attempts of a run were given, on the stream.
//!
//! A machine keeps each answer here before the component of the stage gets it. When the machine is lost, the next one that makes the
//! attempt reads them, so nothing is paid for twice. A line counts if it is signed by a machine for which the attempt was claimed, while
//! that machine was admitted to make attempts.

use crate::eligibility::MAKERS;
use crate::fleet::Fleet;
use crate::jetstream::{Publish, RequestError};
use crate::log::NatsLog;
use crate::repetition::patiently;
use crate::roster::Place;
use crate::run_key::TextKind;
use crate::wire::PROTOCOL;
use glovebox_engine::attempt::ExchangeStore;
use glovebox_journal::event::{Digest, MachineId, RunId};
use glovebox_journal::ports::{BlobStore as _, PortError};
use glovebox_signing::envelope::PayloadType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use tokio::runtime::Handle;

/// Maximum size in bytes of a line that is in its message.
const MESSAGE_BYTES_MAX: usize = 360 * 1024;
/// Maximum size in bytes of a line.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Maximum size in bytes of the lines of an attempt that are read.
const LINES_BYTES_MAX: usize = 256 << 20;

/// What a machine signs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptLine {
    protocol: u32,
    /// The id of the fleet.
    fleet: String,
    run: RunId,
    /// The name of the attempt, which is the same when it is made again.
    attempt: String,
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    /// The line.
    Line(String),
    /// The line, encrypted with the key of the run.
    Encrypted(String),
    /// The blob with a line that is too large for a message.
    Blob(Digest),
}

/// The exchanges of one run.
#[derive(Clone)]
pub(crate) struct RunExchanges {
    pub(crate) fleet: Fleet,
    pub(crate) log: Arc<NatsLog>,
    pub(crate) run: RunId,
    pub(crate) runtime: Handle,
}

impl fmt::Debug for RunExchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunExchanges").field("run", &self.run).finish_non_exhaustive()
    }
}

impl RunExchanges {
    /// Runs a future on the runtime of the machine. This thread may belong to a guest, and must not run the tasks of the runtime.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, PortError>> + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.runtime.spawn(async move { answer.send(work.await) });
        answered.recv().map_err(io::Error::other)?.map_err(io::Error::other)
    }

    async fn publish(self, attempt: String, line: String) -> Result<(), PortError> {
        let failed = |error: &dyn std::error::Error| PortError::Unavailable(error.to_string());
        let content = match (line.len() <= MESSAGE_BYTES_MAX, self.fleet.keys.key(&self.run)) {
            (true, None) => Content::Line(line),
            (true, Some(key)) => Content::Encrypted(key.encrypt_text(TextKind::Exchange, line.as_bytes())),
            (false, _) => {
                let blobs = self.log.blobs_of(&self.run).await?;
                let put = tokio::task::spawn_blocking(move || blobs.put_bytes(line.as_bytes()));
                Content::Blob(put.await.map_err(|error| failed(&error))??)
            }
        };
        let (fleet, run) = (self.fleet.id()?.to_owned(), self.run.clone());
        let kept = KeptLine { protocol: PROTOCOL, fleet, run, attempt: attempt.clone(), content };
        let kept = serde_json::to_vec(&kept).map_err(|error| failed(&error))?;
        let payload = self.fleet.sign(PayloadType::FLEET_EXCHANGE, &kept)?.into();
        let (jetstream, subject) = (&self.fleet.jetstream, self.fleet.jetstream.name.exchanges(&self.run, &attempt));
        let message = [Publish { subject, payload }];
        // A line that is stored twice replaces the first one.
        let stored = patiently(self.fleet.patience, || jetstream.append(&message, None, "")).await;
        stored.map(drop).map_err(|error| failed(&error))
    }

    async fn lines(self, attempt: String, machines: BTreeSet<MachineId>) -> Result<Vec<u8>, PortError> {
        let (jetstream, patience) = (&self.fleet.jetstream, self.fleet.patience);
        let subject = jetstream.name.exchanges(&self.run, &attempt);
        let (mut lines, mut from) = (Vec::new(), 1);
        loop {
            let next = patiently(patience, || jetstream.next(&subject, from)).await;
            let next = next.map_err(|error: RequestError| PortError::Unavailable(error.to_string()))?;
            let Some(message) = next else { return Ok(lines) };
            from = message.seq + 1;
            let at = Place::new(message.seq, message.time);
            match self.line(&attempt, &machines, &message.payload, at).await {
                Ok(line) => lines.extend_from_slice(line.as_bytes()),
                Err(error @ PortError::Unavailable(_)) => return Err(error),
                Err(error) => tracing::warn!(run = %self.run, %error, "a kept answer of a model was dropped"),
            }
            if lines.len() > LINES_BYTES_MAX {
                return Ok(Vec::new());
            }
        }
    }

    /// Opens one message.
    async fn line(
        &self,
        attempt: &str,
        machines: &BTreeSet<MachineId>,
        message: &[u8],
        at: Place,
    ) -> Result<String, PortError> {
        let corrupt = |found: String| PortError::Corrupt { what: "a kept answer of a model".to_owned(), found };
        let signed = self.fleet.open(PayloadType::FLEET_EXCHANGE, message, at, MAKERS, 0).await?;
        if !machines.iter().any(|machine| machine.as_str() == signed.admission.name.as_str()) {
            return Err(corrupt(format!("the attempt was never claimed for `{}`", signed.admission.name)));
        }
        let kept: KeptLine = serde_json::from_slice(&signed.payload).map_err(|error| corrupt(error.to_string()))?;
        let KeptLine { protocol, fleet, run, attempt: of, content } = kept;
        if protocol != PROTOCOL || fleet != self.fleet.id()? || run != self.run || of != attempt {
            return Err(corrupt("it is one of another attempt".to_owned()));
        }
        let bytes = match (content, self.fleet.keys.key(&self.run)) {
            (Content::Line(line), None) => return whole(line).map_err(corrupt),
            (Content::Encrypted(text), Some(key)) => {
                key.decrypt_text(TextKind::Exchange, &text).map_err(|error| corrupt(error.to_string()))?
            }
            (Content::Blob(digest), _) => {
                let blobs = self.log.blobs_of(&self.run).await?;
                let read = tokio::task::spawn_blocking(move || blobs.read_all(&digest, LINE_BYTES_MAX)).await;
                read.map_err(|error| PortError::Unavailable(error.to_string()))??
            }
            _ => return Err(corrupt("it is encrypted, or its run is, but not both".to_owned())),
        };
        String::from_utf8(bytes).map_err(|error| error.to_string()).and_then(whole).map_err(corrupt)
    }
}

/// Returns a line if it is one whole line.
fn whole(line: String) -> Result<String, String> {
    match line.find('\n') == line.len().checked_sub(1) && !line.is_empty() {
        true => Ok(line),
        false => Err("it is not one line".to_owned()),
    }
}

impl ExchangeStore for RunExchanges {
    fn read(&self, attempt: &str, machines: &BTreeSet<MachineId>) -> io::Result<Vec<u8>> {
        self.wait(self.clone().lines(attempt.to_owned(), machines.clone()))
    }

    fn keep(&self, attempt: &str, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8(line.to_vec()).map_err(io::Error::other)?;
        self.wait(self.clone().publish(attempt.to_owned(), line))
    }
}
