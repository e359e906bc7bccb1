//! The failure signature of an attempt: a digest of the failure and of what the stage's commands printed, without parts
//! that differ by chance. For a stage that can read hold-outs, the digest
//! depends on a secret key. Without the key nobody can compare it with the digests of guessed outputs.

use super::{AttemptError, Workbench};
use crate::holdouts::Holdouts;
use glovebox_journal::event::{Digest, StageFinished};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_state::failure_signature::{is_cut_off, plain, text};
use glovebox_state::run_state::is_output;
use std::io::Read;

/// Maximum number of bytes of each output that are used. They are taken from the end, where a command usually says what is wrong.
const OUTPUT_BYTES: u64 = 64 * 1024;

impl<B: BlobStore> Workbench<B> {
    /// Returns the result with its failure signature.
    pub(super) fn signed(&self, mut fact: StageFinished) -> Result<StageFinished, AttemptError> {
        fact.follow_up.signature = signature(&fact, &*self.blobs)?;
        let mut own = Ok(None);
        fact.with_own_outcome(|fact| own = signature(fact, &*self.blobs));
        if let Some(recoverable) = &mut fact.files.recoverable {
            recoverable.signature = own?;
        }
        Ok(fact)
    }

    /// Returns the failure signature of a result of which only the verdict is kept. Only the engine compares it.
    pub(super) fn sealed_signature(
        &self,
        fact: &StageFinished,
        holdouts: &Holdouts,
    ) -> Result<Option<Digest>, AttemptError> {
        Ok(signed_text(fact, &*self.blobs)?.map(|text| holdouts.keyed_digest(&text)))
    }
}

fn signature(finished: &StageFinished, blobs: &impl BlobStore) -> Result<Option<Digest>, PortError> {
    Ok(signed_text(finished, blobs)?.map(|text| Digest::hash(text.as_bytes())))
}

/// Returns the text that identifies the failure of an attempt. `None` for a success and where [`text`] returns `None`.
fn signed_text(finished: &StageFinished, blobs: &impl BlobStore) -> Result<Option<String>, PortError> {
    let Some(failure) = &finished.outcome.failure else { return Ok(None) };
    let Some(mut text) = text(failure) else { return Ok(None) };
    if is_cut_off(failure) {
        return Ok(Some(text));
    }
    for artifact in finished.files.artifacts.iter().filter(|artifact| is_output(&artifact.name)) {
        let mut bytes = Vec::new();
        let mut content = blobs.open(&artifact.digest)?;
        let skipped = artifact.bytes.saturating_sub(OUTPUT_BYTES);
        let read = std::io::copy(&mut content.by_ref().take(skipped), &mut std::io::sink());
        read.and_then(|_| content.take(OUTPUT_BYTES).read_to_end(&mut bytes))
            .map_err(|error| PortError::Unavailable(error.to_string()))?;
        text.push_str(&artifact.name);
        text.push('\n');
        text.push_str(&plain(&String::from_utf8_lossy(&bytes)));
        text.push('\n');
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_is_not_part_of_it() {
        for (one, other) in [
            ("Test failed in 0.03s", "test failed  in 12.5s"),
            ("commit 1a2b3c4d5e", "commit deadbeef99"),
            ("a\nb", "a b"),
            ("pid 17: no such file", "pid 4242424242: no such file"),
        ] {
            assert_eq!(plain(one), plain(other));
        }
        for (one, other) in [("test a failed", "test b failed"), ("facade", "decade"), ("x1", "x"), ("a b", "ab")] {
            assert_ne!(plain(one), plain(other));
        }
    }
}
