//! The alarm behind the walls: no text of a builder, and no file any stage leaves behind, contains a hold-out.
//!
//! Whatever is found fails the attempt, changes nothing, and is quoted nowhere. Which hold-out it was stands in the record's refusals;
//! the stage is not told.

use crate::event::{Artifact, Captured, Digest, Ending, Refusal, StageFinished};
use crate::ports::{BlobStore, PortError};
use crate::run::Holdouts;
use glovebox_host::model::{Model, TextGuard};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use glovebox_sandbox::holdout::canary::{Canary, Leak};
use std::sync::Arc;

/// Where it was found, for the stage's reason.
pub(super) const IN_A_FILE: &str = "a file it wrote";
const IN_ITS_ANSWER: &str = "its answer";

/// Lets the model neither be told nor tell a hold-out.
pub(super) fn guarded(model: Model, holdouts: &Arc<Holdouts>) -> Model {
    let holdouts = Arc::clone(holdouts);
    model.guarded(TextGuard::new(move |text| holdouts.canary().find(text).map(|leak| at_line(&leak))))
}

/// Looks through what a stage changed and, for one that must not know hold-outs, through all it says.
pub(super) fn check(
    fact: &mut StageFinished,
    canary: &Canary,
    blobs: &impl BlobStore,
    says: bool,
) -> Result<(), PortError> {
    let mut found = changed(fact, canary, blobs)?.map(|leak| (IN_A_FILE, leak));
    if says {
        let said = said(fact, canary, blobs)?;
        found = found.or_else(|| said.map(|leak| (IN_ITS_ANSWER, leak)));
    }
    if let Some((what, leak)) = found {
        fail(fact, what, &leak);
    }
    if fact.outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::HOLDOUT_LEAK) {
        fact.changes.clear();
    }
    Ok(())
}

/// The reason of an attempt that failed for a find.
pub(super) fn reason(what: &str) -> String {
    format!("holdout_leak: {what} contains text of a hold-out scenario")
}

fn fail(fact: &mut StageFinished, what: &str, leak: &Leak) {
    let reason = reason(what);
    fact.outcome = Outcome::failed(Failure::new(FailureClass::Scope, FailureCode::HOLDOUT_LEAK, reason.clone()));
    if let Ending::Trapped(text) | Ending::NotLinked(text) = &mut fact.ending {
        text.clear();
    }
    let help = "nothing allows it; what stages with hold-outs write, builders read".to_owned();
    fact.refusals.push(Refusal { operation: "tell".to_owned(), path: at_line(leak), reason, help });
    fact.refusals_total = fact.refusals_total.saturating_add(1);
}

fn at_line(leak: &Leak) -> String {
    format!("{}:{}", leak.file, leak.line)
}

fn changed(fact: &StageFinished, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    for change in &fact.changes {
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

/// Looks through an answer; what was kept beside it and contains a hold-out is not kept.
fn said(fact: &mut StageFinished, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    let outcome = serde_json::to_string(&fact.outcome).unwrap_or_default();
    let ending = match &fact.ending {
        Ending::Trapped(text) | Ending::NotLinked(text) => text.as_str(),
        _ => "",
    };
    let mut found = canary.find(&outcome).or_else(|| canary.find(ending));
    let mut kept: Vec<Artifact> = Vec::new();
    for artifact in std::mem::take(&mut fact.artifacts) {
        match found_in(&artifact.digest, canary, blobs)?.or_else(|| canary.find(&artifact.name)) {
            Some(leak) => found = found.or(Some(leak)),
            None => kept.push(artifact),
        }
    }
    fact.artifacts = kept;
    for captured in [&mut fact.stdout, &mut fact.stderr] {
        let Some(Captured { digest, .. }) = captured else { continue };
        if let Some(leak) = found_in(digest, canary, blobs)? {
            *captured = None;
            found = found.or(Some(leak));
        }
    }
    Ok(found)
}

/// Looks through stored bytes, however many they are.
fn found_in(digest: &Digest, canary: &Canary, blobs: &impl BlobStore) -> Result<Option<Leak>, PortError> {
    canary.find_in(blobs.open(digest)?).map_err(|error| PortError::Unavailable(error.to_string()))
}
