//! Which of the stored results of an attempt counts.
//!
//! Whoever has the permissions of a worker on the servers can store messages where a result belongs, before and after it. The
//! first message counts that the machine of the claim has signed, while it was admitted to make this stage, and that is the
//! result of this claim: it keeps to what the stage may do, and every blob that it needs is stored and whole. All others are
//! dropped, so the attempt is made again if none is left.

use crate::blobs::ObjectBlobs;
use crate::fleet::Fleet;
use crate::jetstream::Message;
use crate::repetition::patiently;
use crate::roster::Place;
use crate::run_key::{Secrecy, TextKind};
use crate::statement::Role;
use crate::wire::{Made, MadeMessage, PROTOCOL};
use glovebox_engine::assignment::{Assignment, AttemptResult};
use glovebox_engine::driver::Fault;
use glovebox_engine::run::{ResultCheck, named_blobs};
use glovebox_journal::event::{Digest, MachineId, RunId};
use glovebox_journal::ports::{BlobStore as _, PortError};
use glovebox_signing::envelope::PayloadType;

/// Maximum size in bytes of a result. The frame with it must still have room for what follows from it.
pub(crate) const RESULT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Number of stored messages that are read for one attempt at a time.
const MESSAGES_MAX: usize = 1000;

/// The result that the driver of a run waits for.
pub(crate) struct ExpectedResult<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) blobs: &'a ObjectBlobs,
    pub(crate) run: &'a RunId,
    pub(crate) secrecy: &'a Secrecy,
    pub(crate) check: &'a ResultCheck,
    pub(crate) assignment: &'a Assignment,
    /// The machine for which the attempt was claimed.
    pub(crate) machine: &'a MachineId,
    /// The role that the machine needs for the stage.
    pub(crate) role: Role,
}

/// Why a message is not a result.
enum Problem {
    /// The message does not count.
    Dropped(String),
    /// The servers or the store do not answer, so it is not known.
    Unknown(PortError),
}

impl From<PortError> for Problem {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Corrupt { .. } | PortError::Foreign { .. } => Self::Dropped(error.to_string()),
            error => Self::Unknown(error),
        }
    }
}

impl ExpectedResult<'_> {
    /// Returns the first stored result that counts. `None` if there is none.
    ///
    /// # Errors
    ///
    /// The servers or the store do not answer.
    pub(crate) async fn find(&self) -> Result<Option<AttemptResult>, Fault> {
        let jetstream = &self.fleet.jetstream;
        let subject = jetstream.name.result(self.run, &self.assignment.attempt.id);
        let mut from = 1;
        for _ in 0..MESSAGES_MAX {
            // A result that cannot be read now may be there: an attempt is never lost because servers elect a leader.
            let next = patiently(self.fleet.patience, || jetstream.next(&subject, from)).await?;
            let Some(message) = next else { return Ok(None) };
            from = message.seq + 1;
            match self.read(&message).await {
                Ok(result) => return Ok(Some(result)),
                Err(Problem::Dropped(reason)) => {
                    tracing::warn!(attempt = %self.assignment.attempt.id, reason, "a result was dropped");
                }
                Err(Problem::Unknown(error)) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    async fn read(&self, message: &Message) -> Result<AttemptResult, Problem> {
        let (fleet, token) = (self.fleet, self.assignment.token);
        let at = Place::new(message.seq, message.time);
        let signed = fleet.open(PayloadType::FLEET_RESULT, &message.payload, at, &[self.role], token).await?;
        if signed.admission.name.as_str() != self.machine.as_str() {
            return Err(Problem::Dropped(format!("the attempt was claimed for `{}`", self.machine)));
        }
        let form = |error: serde_json::Error| Problem::Dropped(error.to_string());
        let made = match self.opened(serde_json::from_slice(&signed.payload).map_err(form)?)? {
            MadeMessage::Made(made) => *made,
            MadeMessage::Blob(digest) => serde_json::from_slice(&self.blob(digest).await?).map_err(form)?,
            MadeMessage::Encrypted(_) => return Err(Problem::Dropped("it is encrypted twice".to_owned())),
        };
        let Made { protocol, fleet: of_fleet, machine, token: of_claim, mut finished, ingested } = made;
        if protocol != PROTOCOL || of_fleet != fleet.id()? || machine != *self.machine || of_claim != token {
            return Err(Problem::Dropped("it is the result of another claim".to_owned()));
        }
        finished.machine = Some(machine);
        let result = AttemptResult { ingested, finished };
        if let Some(fault) = self.check.fault(self.assignment, &result) {
            return Err(Problem::Dropped(fault));
        }
        self.require_blobs(&result).await?;
        Ok(result)
    }

    /// Returns a message, decrypted if the run is encrypted.
    fn opened(&self, message: MadeMessage) -> Result<MadeMessage, Problem> {
        match (self.secrecy.key(), message) {
            (None, message) => Ok(message),
            (Some(key), MadeMessage::Encrypted(text)) => {
                let opened = key.decrypt_text(TextKind::Result, &text);
                let opened = opened.map_err(|error| Problem::Dropped(error.to_string()))?;
                serde_json::from_slice(&opened).map_err(|error| Problem::Dropped(error.to_string()))
            }
            (Some(_), _) => Err(Problem::Dropped("it is not encrypted, and its run is".to_owned())),
        }
    }

    async fn blob(&self, digest: Digest) -> Result<Vec<u8>, Problem> {
        let blobs = self.blobs.clone();
        let read = tokio::task::spawn_blocking(move || blobs.read_all(&digest, RESULT_BYTES_MAX)).await;
        Ok(read.map_err(|error| PortError::Unavailable(error.to_string()))??)
    }

    /// Reads every blob that the result needs. One that is missing or rotten would stop the run at the next stage.
    async fn require_blobs(&self, result: &AttemptResult) -> Result<(), Problem> {
        let (blobs, named) = (self.blobs.clone(), named_blobs(result));
        let verified = tokio::task::spawn_blocking(move || blobs.verify(named)).await;
        Ok(verified.map_err(|error| PortError::Unavailable(error.to_string()))??)
    }
}
