//! The leak check: no text of a builder, and no file that a stage writes, may contain a hold-out.
//!
//! The sandbox prevents leaks; this check reports them. A leak fails the attempt and discards its changes. The text itself is
//! never quoted: only the refusals in the record name the hold-out, and no stage sees them.

use super::status_file::COPY_FILE;
use crate::holdouts::Holdouts;
use glovebox_host::llm::{Model, TextGuard};
use glovebox_journal::event::{Artifact, Digest, Ending, Refusal, StageFinished, StoredOutput};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use glovebox_workspace::holdout::canary::{Canary, Leak};
use std::sync::Arc;

/// Where a hold-out was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeakSource {
    /// A file that the stage wrote.
    File,
    /// The stage's outcome, or an artifact or output of the stage.
    Answer,
}

impl LeakSource {
    /// Returns the reason of an attempt that failed because of a leak. It does not name the hold-out.
    pub(super) fn reason(self) -> String {
        let place = match self {
            LeakSource::File => "a file of the stage",
            LeakSource::Answer => "the result of the stage",
        };
        format!("holdout_leak: {place} contains text of a hold-out scenario")
    }
}

/// Guards a model, so that neither the model's input nor its answer contains a hold-out.
pub(super) fn guarded(model: Model, holdouts: &Arc<Holdouts>) -> Model {
    let (texts, images) = (Arc::clone(holdouts), Arc::clone(holdouts));
    let guard = TextGuard::new(move |text| texts.canary().find(text).map(|leak| at_line(&leak)));
    model.guarded(guard.with_bytes(move |bytes| images.canary().find_bytes(bytes).map(|leak| at_line(&leak))))
}

/// Searches the changes of a stage and, with `with_answer`, its whole result.
pub(super) fn check(
    fact: &mut StageFinished,
    canary: &Canary,
    blobs: &impl BlobStore,
    with_answer: bool,
) -> Result<(), PortError> {
    let mut found = changed(fact, canary, blobs)?.map(|leak| (LeakSource::File, leak));
    if with_answer {
        let said = said(fact, canary, blobs)?;
        found = found.or_else(|| said.map(|leak| (LeakSource::Answer, leak)));
    }
    if let Some((source, leak)) = found {
        fail(fact, source, &leak);
    }
    if fact.outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::HOLDOUT_LEAK) {
        fact.files.changes.clear();
    }
    Ok(())
}

fn fail(fact: &mut StageFinished, source: LeakSource, leak: &Leak) {
    let failure = Failure::new(FailureClass::Scope, FailureCode::HOLDOUT_LEAK, source.reason());
    fact.outcome = Outcome::failed(failure);
    if let Ending::Trapped(text) | Ending::NotLinked(text) = &mut fact.ending {
        text.clear();
    }
    let help = "cannot be allowed: builders can read what this stage writes".to_owned();
    let (operation, path, reason) = ("tell".to_owned(), at_line(leak), source.reason());
    fact.refusals.listed.push(Refusal { operation, path, reason, help });
    fact.refusals.total = fact.refusals.total.saturating_add(1);
}

fn at_line(leak: &Leak) -> String {
    format!("{}:{}", leak.file, leak.line)
}

fn changed(fact: &StageFinished, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    for change in &fact.files.changes {
        let names = [Some(change.path.as_str()), change.target.as_deref()];
        let by_name = names.into_iter().flatten().find_map(|text| canary.find(text));
        let by_content = match change.digest {
            Some(digest) if by_name.is_none() => found_in(&digest, canary, blobs)?,
            _ => None,
        };
        if let Some(leak) = by_name.or(by_content) {
            return Ok(Some(leak));
        }
    }
    Ok(None)
}

/// Searches the result of a stage. An artifact or an output that contains a hold-out is removed.
fn said(fact: &mut StageFinished, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    let outcome = serde_json::to_string(&fact.outcome).unwrap_or_default();
    let ending = match &fact.ending {
        Ending::Trapped(text) | Ending::NotLinked(text) => text.as_str(),
        _ => "",
    };
    let mut found = canary.find(&outcome).or_else(|| canary.find(ending));
    let is_told = found.is_some();
    let mut kept: Vec<Artifact> = Vec::new();
    for artifact in std::mem::take(&mut fact.files.artifacts) {
        match found_in(&artifact.digest, canary, blobs)?.or_else(|| canary.find(&artifact.name)) {
            Some(leak) => found = found.or(Some(leak)),
            None => kept.push(artifact),
        }
    }
    if is_told {
        // The copy has the same text as the outcome, in which escapes of JSON can hide a hold-out from the search.
        kept.retain(|artifact| artifact.name != COPY_FILE);
    }
    fact.files.artifacts = kept;
    for captured in [&mut fact.files.stdout, &mut fact.files.stderr] {
        let Some(StoredOutput { digest, .. }) = captured else { continue };
        if let Some(leak) = found_in(digest, canary, blobs)? {
            *captured = None;
            found = found.or(Some(leak));
        }
    }
    Ok(found)
}

/// Searches the bytes of a blob of any length.
fn found_in(digest: &Digest, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    canary.find_in(blobs.open(digest)?).map_err(|error| PortError::Unavailable(error.to_string()))
}

#[cfg(test)]
mod tests;
