//! Stores bytes of an attempt. Each is stored as a blob before an event names it.

use super::redact::WITHHELD_FILE;
use super::{LOG_FILE, Workbench};
use glovebox_host::call::LogLine;
use glovebox_journal::event::{Artifact, Digest, StageFinished, StoredOutput};
use glovebox_journal::ports::{BlobStore, PortError};

impl<B: BlobStore + 'static> Workbench<B> {
    /// Stores the log of the stage as an artifact with one JSON object per line. `None` if the log is empty.
    pub(super) fn log(&self, lines: Vec<LogLine>) -> Result<Option<Artifact>, PortError> {
        if lines.is_empty() {
            return Ok(None);
        }
        let texts = lines.into_iter().map(|line| {
            let fields: serde_json::Map<_, _> =
                line.fields.into_iter().map(|(name, value)| (name, value.into())).collect();
            serde_json::json!({ "level": line.level, "message": line.message, "fields": fields }).to_string()
        });
        let text = texts.collect::<Vec<_>>().join("\n") + "\n";
        let (digest, bytes) = self.store(text.as_bytes())?;
        Ok(Some(Artifact { name: LOG_FILE.to_owned(), media_type: "application/x-ndjson".to_owned(), digest, bytes }))
    }

    /// Stores the whole result of a stage that can read hold-outs, for people only.
    pub(super) fn whole_answer(&self, fact: &StageFinished) -> Result<Artifact, PortError> {
        let text =
            serde_json::to_vec_pretty(&fact.outcome).map_err(|error| PortError::Unavailable(error.to_string()))?;
        let (digest, bytes) = self.store(&text)?;
        let (name, media_type) = (WITHHELD_FILE.to_owned(), "application/json".to_owned());
        Ok(Artifact { name, media_type, digest, bytes })
    }

    pub(super) fn captured(&self, bytes: &[u8]) -> Result<Option<StoredOutput>, PortError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let (digest, bytes) = self.store(bytes)?;
        Ok(Some(StoredOutput { digest, bytes }))
    }

    pub(super) fn store(&self, bytes: &[u8]) -> Result<(Digest, u64), PortError> {
        Ok((self.blobs.put(&mut &bytes[..])?, bytes.len() as u64))
    }
}
