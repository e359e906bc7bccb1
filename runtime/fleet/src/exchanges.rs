//! The answers of models that an attempt was given, on the stream.
//!
//! A machine keeps each answer here before the component of the stage gets it. When the machine is lost, the next one that makes the
//! attempt reads them, so nothing is paid for twice. A line counts if the machine of one of the attempt's claims signed it, while that
//! machine was admitted to make the stage. If two lines have the same claim and place, the first one counts, so a line that is stored
//! again changes nothing. A line that counts and cannot be read is an error: its cost would be lost.

use crate::blobs::ObjectBlobs;
use crate::fleet::Fleet;
use crate::jetstream::{Message, Publish, RequestError};
use crate::repetition::patiently;
use crate::roster::Place;
use crate::run_key::{Secrecy, TextKind};
use crate::statement::Role;
use crate::wire::PROTOCOL;
use glovebox_engine::attempt::{Claims, ExchangeStore, KeptLine};
use glovebox_journal::event::{Digest, RunId};
use glovebox_journal::ports::{BlobStore as _, PortError};
use glovebox_signing::envelope::PayloadType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use tokio::runtime::Handle;

/// Maximum size in bytes of a line that is in its message.
const MESSAGE_BYTES_MAX: usize = 360 * 1024;
/// Maximum size in bytes of a line.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Maximum size in bytes of the lines of an attempt that are read.
const LINES_BYTES_MAX: usize = 256 << 20;
/// Maximum number of messages that are read for an attempt.
const MESSAGES_MAX: usize = 20_000;

/// What a machine signs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignedLine {
    protocol: u32,
    /// The id of the fleet.
    fleet: String,
    run: RunId,
    /// The name of the attempt, which is the same when it is made again.
    attempt: String,
    /// The number of the record with the claim.
    token: u64,
    /// The place of the line among those of the claim.
    place: u64,
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    /// The line.
    Line(String),
    /// The blob with a line that is too large for a message.
    Blob(Digest),
    /// One of these, encrypted with the key of the run.
    Encrypted(String),
}

/// The exchanges of one attempt.
#[derive(Clone)]
pub(crate) struct AttemptExchanges {
    pub(crate) fleet: Fleet,
    pub(crate) blobs: ObjectBlobs,
    pub(crate) secrecy: Secrecy,
    pub(crate) run: RunId,
    /// The number of the record with the claim.
    pub(crate) token: u64,
    /// Number of lines that were kept for this claim.
    pub(crate) kept: Arc<AtomicU64>,
    /// Set when the attempt must stop.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) runtime: Handle,
}

impl fmt::Debug for AttemptExchanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptExchanges").field("run", &self.run).field("token", &self.token).finish_non_exhaustive()
    }
}

impl AttemptExchanges {
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
        let mut content = match line.len() <= MESSAGE_BYTES_MAX {
            true => Content::Line(line),
            false => {
                let blobs = self.blobs.clone();
                let put = tokio::task::spawn_blocking(move || blobs.put_bytes(line.as_bytes()));
                Content::Blob(put.await.map_err(|error| failed(&error))??)
            }
        };
        if let Some(key) = self.secrecy.key() {
            let text = serde_json::to_vec(&content).map_err(|error| failed(&error))?;
            content = Content::Encrypted(key.encrypt_text(TextKind::Exchange, &text));
        }
        let (fleet, run, token) = (self.fleet.id()?.to_owned(), self.run.clone(), self.token);
        let place = self.kept.fetch_add(1, Ordering::Relaxed);
        let signed = SignedLine { protocol: PROTOCOL, fleet, run, attempt: attempt.clone(), token, place, content };
        let signed = serde_json::to_vec(&signed).map_err(|error| failed(&error))?;
        let payload = self.fleet.sign(PayloadType::FLEET_EXCHANGE, &signed)?.into();
        let (jetstream, subject) = (&self.fleet.jetstream, self.fleet.jetstream.name.exchanges(&self.run, &attempt));
        let message = [Publish { subject, payload }];
        let stored = patiently(self.fleet.patience, || jetstream.append(&message, None, "")).await;
        stored.map(drop).map_err(|error| failed(&error))
    }

    async fn lines(self, attempt: String, claims: Claims) -> Result<Vec<KeptLine>, PortError> {
        let (jetstream, patience) = (&self.fleet.jetstream, self.fleet.patience);
        let subject = jetstream.name.exchanges(&self.run, &attempt);
        let (mut lines, mut from, mut left) = (BTreeMap::new(), 1, LINES_BYTES_MAX);
        for _ in 0..MESSAGES_MAX {
            if self.stop.load(Ordering::Relaxed) {
                return Err(PortError::Unavailable("the attempt was stopped".to_owned()));
            }
            let next = patiently(patience, || jetstream.next(&subject, from)).await;
            let next = next.map_err(|error: RequestError| PortError::Unavailable(error.to_string()))?;
            let Some(message) = next else {
                let line = |((token, _), line)| KeptLine { token, line };
                return Ok(lines.into_iter().map(line).collect());
            };
            from = message.seq + 1;
            left = left.checked_sub(message.payload.len()).ok_or_else(too_much)?;
            match self.open(&attempt, &claims, &message).await {
                Ok((at, content)) if !lines.contains_key(&at) => {
                    let line = self.line(content).await?;
                    left = left.checked_sub(line.len()).ok_or_else(too_much)?;
                    lines.insert(at, line);
                }
                Ok(_) => {}
                Err(error @ PortError::Unavailable(_)) => return Err(error),
                Err(error) => tracing::warn!(run = %self.run, %error, "a kept answer of a model was dropped"),
            }
        }
        Err(too_much())
    }

    /// Opens one message. Returns the number of the claim, the place of the line, and its content.
    async fn open(
        &self,
        attempt: &str,
        claims: &Claims,
        message: &Message,
    ) -> Result<((u64, u64), Content), PortError> {
        let at = Place::new(message.seq, message.time);
        let role = if claims.judges { Role::Verify } else { Role::Build };
        let signed = self.fleet.open(PayloadType::FLEET_EXCHANGE, &message.payload, at, &[role], 0).await?;
        let found: SignedLine = serde_json::from_slice(&signed.payload).map_err(|error| corrupt(&error))?;
        let SignedLine { protocol, fleet, run, attempt: of, token, place, content } = found;
        if protocol != PROTOCOL || fleet != self.fleet.id()? || run != self.run || of != attempt {
            return Err(corrupt(&"it is one of another attempt"));
        }
        let name = signed.admission.name;
        if claims.machines.get(&token).is_none_or(|machine| machine.as_str() != name.as_str()) {
            return Err(corrupt(&format!("the attempt was not claimed for `{name}`")));
        }
        Ok(((token, place), content))
    }

    /// Returns a line. One that its machine has signed and that cannot be read is an error: its cost would be lost.
    async fn line(&self, content: Content) -> Result<String, PortError> {
        let content = match (self.secrecy.key(), content) {
            (None, content) => content,
            (Some(key), Content::Encrypted(text)) => {
                let opened = key.decrypt_text(TextKind::Exchange, &text).map_err(|error| corrupt(&error))?;
                serde_json::from_slice(&opened).map_err(|error| corrupt(&error))?
            }
            (Some(_), _) => return Err(corrupt(&"it is not encrypted, and its run is")),
        };
        let line = match content {
            Content::Line(line) => line,
            Content::Blob(digest) => {
                let blobs = self.blobs.clone();
                let read = tokio::task::spawn_blocking(move || blobs.read_all(&digest, LINE_BYTES_MAX)).await;
                let bytes = read.map_err(|error| PortError::Unavailable(error.to_string()))??;
                String::from_utf8(bytes).map_err(|error| corrupt(&error))?
            }
            Content::Encrypted(_) => return Err(corrupt(&"it is encrypted, and its run is not, or it is twice")),
        };
        match line.find('\n').is_some_and(|end| end + 1 == line.len()) {
            true => Ok(line),
            false => Err(corrupt(&"it is not one line")),
        }
    }
}

fn corrupt(found: &dyn fmt::Display) -> PortError {
    PortError::Corrupt { what: "a kept answer of a model".to_owned(), found: found.to_string() }
}

fn too_much() -> PortError {
    let found = format!("there are more than {MESSAGES_MAX} messages or {LINES_BYTES_MAX} bytes of one attempt");
    PortError::Corrupt { what: "the kept answers of a model".to_owned(), found }
}

impl ExchangeStore for AttemptExchanges {
    fn read(&self, attempt: &str, claims: &Claims) -> io::Result<Vec<KeptLine>> {
        self.wait(self.clone().lines(attempt.to_owned(), claims.clone()))
    }

    fn keep(&self, attempt: &str, line: &[u8]) -> io::Result<()> {
        let line = String::from_utf8(line.to_vec()).map_err(io::Error::other)?;
        self.wait(self.clone().publish(attempt.to_owned(), line))
    }
}
