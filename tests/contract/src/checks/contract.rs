//! Checks of the outcome: its form, its failure, its labels and its claims.

use crate::bench::Bench;
use crate::error::TestError;
use crate::observed::Observed;
use crate::report::Finding;
use crate::sample;
use crate::stage_file::StageFile;
use crate::text::quoted;
use glovebox_host::call::Claim;
use glovebox_pipeline::route::normalize_label;
use glovebox_record::{FailureCode, LimitName};

/// The classes that a handler can suggest.
const CLASSES: [&str; 7] = ["transient", "deterministic", "canceled", "budget", "scope", "contract", "internal"];

/// Returns the first problem of the calls with the normal and the empty input, with the title of the call.
fn first(bench: &Bench<'_>, problem: impl Fn(&Observed, &StageFile) -> Option<String>) -> Result<Finding, TestError> {
    for (observed, stage) in [(bench.normal()?, bench.normal_stage()), (bench.empty()?, sample::empty())] {
        if let Some(problem) = problem(observed, &stage) {
            return Ok(Finding::Failed(format!("with {}, {problem}", observed.title)));
        }
    }
    Ok(Finding::passed())
}

pub(super) fn outcome(bench: &Bench<'_>) -> Result<Finding, TestError> {
    first(bench, |observed, _| malformed(observed))
}

/// Returns why a call has no well-formed outcome.
pub(super) fn malformed(observed: &Observed) -> Option<String> {
    if !observed.is_returned() {
        return Some(observed.ended());
    }
    let failure = observed.report.outcome.failure.as_ref()?;
    let refused = [FailureCode::OUTCOME_MALFORMED, FailureCode::limit(LimitName::OutcomeBytes.as_str())];
    refused.contains(&failure.code).then(|| format!("the outcome is refused: {}", crate::text::lines(&failure.reason)))
}

pub(super) fn failure(bench: &Bench<'_>) -> Result<Finding, TestError> {
    first(bench, |observed, _| match &observed.calls.failure {
        None => {
            // The host gives this code to an outcome that needs a failure and has none.
            let given = observed.report.outcome.failure.as_ref().map(|failure| &failure.code);
            let status = observed.report.outcome.status.as_str();
            (given == Some(&FailureCode::STAGE_FAILED)).then(|| format!("it answers `{status}` without a failure"))
        }
        Some(failure) if FailureCode::from_handler(failure.code.clone()).is_none() => Some(format!(
            "the failure has the code {}, which is reserved or not a code: a run records `stage/failed`",
            quoted(&failure.code)
        )),
        Some(failure) => {
            let is_known = CLASSES.contains(&failure.class.as_str());
            (!is_known).then(|| format!("the failure has the unknown class {}", quoted(&failure.class)))
        }
    })
}

pub(super) fn labels(bench: &Bench<'_>) -> Result<Finding, TestError> {
    first(bench, |observed, stage| {
        let (outcome, edges) = (&observed.report.outcome, &stage.input.outgoing);
        let is_label =
            |label: &&String| edges.iter().any(|edge| normalize_label(&edge.label) == normalize_label(label));
        if let Some(label) = outcome.preferred_label.as_ref().filter(|label| !is_label(label)) {
            return Some(format!("it prefers the label {}, which no edge has", quoted(label)));
        }
        let unknown = outcome.suggested_next_ids.iter().find(|id| edges.iter().all(|edge| edge.to != **id));
        unknown.map(|id| format!("it suggests the node {}, to which no edge leads", quoted(id)))
    })
}

pub(super) fn claims(bench: &Bench<'_>) -> Result<Finding, TestError> {
    first(bench, |observed, _| {
        observed.report.claims.iter().find_map(|claim| {
            let objection = objection(claim, observed)?;
            Some(format!("it claims {} for {}, but {objection}", quoted(&claim.kind), quoted(&claim.value)))
        })
    })
}

fn objection(claim: &Claim, observed: &Observed) -> Option<&'static str> {
    let Claim { kind, value } = claim;
    let (receipts, artifacts) = (&observed.report.receipts, &observed.report.artifacts);
    match kind.as_str() {
        "command-passed" => match receipts.iter().find(|receipt| receipt.id == *value) {
            None => Some("no command of the call has this receipt"),
            Some(receipt) => (!receipt.passed()).then_some("that command did not pass"),
        },
        "artifact" => artifacts.iter().all(|artifact| artifact.name != *value).then_some("no such artifact was stored"),
        "file-written" => {
            let is_written = |path: &str| {
                observed
                    .changes
                    .iter()
                    .any(|change| change.path == path && change.op == "write" && change.refused.is_none())
            };
            (!is_written(value)).then_some("the call wrote no such file in its write scope")
        }
        _ => Some("this kind of claim is unknown"),
    }
}
