//! Reduces the result of a stage that could read hold-outs to its verdict and the public hints that apply
//! (decision verdict-and-hints-only).
//!
//! This happens before the result is recorded, so that neither the next stage nor a file of the run contains more. The
//! program under test may have chosen any text, number and name of the result, and could hide a hold-out in each of
//! them. The whole result is stored as an artifact, for people.

mod choices;

use glovebox_host::call::Report;
use glovebox_journal::event::{Ending, StageFinished};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use glovebox_workspace::holdout::canary::Canary;

/// The name of the artifact with the whole result.
pub(super) const WITHHELD_FILE: &str = "withheld.json";
/// File name endings of artifacts with output.
const PRINTED: [&str; 4] = [".stdout.txt", ".stderr.txt", ".output", ".verify_output"];
/// The text that replaces a withheld text.
const WITHHELD: &str = "output withheld, because that stage can read hold-outs";

/// Returns the public hints in the output of a stage, in the order of the sealed files that contain them.
pub(super) fn hints(report: &Report, canary: &Canary) -> Vec<String> {
    let texts: Vec<_> = printed(report).map(|data| String::from_utf8_lossy(data)).collect();
    canary.hints(texts.iter().map(AsRef::as_ref))
}

/// Returns the output of a stage and its commands.
pub(super) fn printed(report: &Report) -> impl Iterator<Item = &[u8]> {
    let artifacts = report.artifacts.iter().filter(|kept| is_printed(&kept.name));
    artifacts.map(|kept| &*kept.data).chain([&*report.stdout, &*report.stderr])
}

/// Returns true for an artifact that holds output of commands.
fn is_printed(artifact: &str) -> bool {
    PRINTED.iter().any(|end| artifact.ends_with(end))
}

/// Removes everything from a result that the program under test could have chosen, except verdict and hints.
pub(super) fn redact(fact: &mut StageFinished, pipeline: &Pipeline, hints: &[String]) {
    // The stage's own outcome, which is stored with the failure, would disclose everything.
    fact.files.recoverable = None;
    let mut outcome = std::mem::replace(&mut fact.outcome, Outcome::new(Status::Fail));
    if outcome.status.satisfies_gate() && fact.proves_nothing() {
        // A third kind of end, in addition to pass and fail, would disclose more than the verdict.
        outcome = Outcome::failed(Failure::new(FailureClass::Deterministic, FailureCode::NO_TESTS, ""));
    }
    let is_pass = matches!(outcome.status, Status::Success | Status::PartialSuccess);
    let way = if is_pass {
        choices::way(pipeline, &fact.attempt.task.node, &outcome)
    } else {
        choices::EdgeChoice::default()
    };
    fact.outcome = Outcome {
        status: if is_pass { Status::Success } else { Status::Fail },
        preferred_label: way.label,
        suggested_next_ids: way.next.into_iter().collect(),
        context_updates: choices::context(pipeline, outcome.context_updates),
        failure: (!is_pass).then(|| redacted(fact, failure_of(outcome.status, outcome.failure))),
        notes: notes(is_pass, hints),
    };
    // The command that failed discloses more than the verdict.
    fact.commands.failed_command = None;
    if let Ending::Trapped(text) | Ending::NotLinked(text) = &mut fact.ending {
        WITHHELD.clone_into(text);
    }
}

/// Returns the failure of a stage that could read hold-outs, as builders see it. It is the same for every kind of
/// failure.
pub(super) fn verdict(node: &NodeId) -> Failure {
    Failure::new(FailureClass::Deterministic, FailureCode::STAGE_FAILED, format!("stage `{node}` failed; {WITHHELD}"))
}

fn notes(is_pass: bool, hints: &[String]) -> String {
    let verdict = format!("verdict: {}; {WITHHELD}", if is_pass { "pass" } else { "fail" });
    [&[verdict], hints].concat().join("\n")
}

/// Returns the failure of an outcome that is not a pass. `retry` becomes a transient failure.
fn failure_of(status: Status, failure: Option<Failure>) -> Failure {
    let unnamed = || Failure::new(FailureClass::Deterministic, FailureCode::STAGE_FAILED, "");
    let failure = failure.unwrap_or_else(unnamed);
    match status {
        Status::Retry => Failure { class: FailureClass::Transient, ..failure },
        _ => failure,
    }
}

/// Keeps the class and the code of a failure, for people and for the engine's decisions. The reason is replaced by a
/// text without paths, numbers or texts of the stage.
fn redacted(fact: &StageFinished, failure: Failure) -> Failure {
    let code = if failure.code.is_name() { failure.code } else { FailureCode::STAGE_FAILED };
    let reason = match limit_reached(fact, &code) {
        Some(reason) => reason,
        None if code == FailureCode::SCOPE_WRITE => {
            format!("{}{WITHHELD}", super::GUARDRAIL)
        }
        None if code == FailureCode::CANCELED => "the run was asked to stop".to_owned(),
        // The text of the host, which contains nothing of the stage.
        None if code == FailureCode::SANDBOX_LOST || code == FailureCode::REVOKED => failure.reason,
        None if code == FailureCode::HOLDOUT_LEAK => super::leak_check::LeakSource::File.reason(),
        None => WITHHELD.to_owned(),
    };
    Failure::new(failure.class, code, reason)
}

/// Returns a text with the name and the value of the limit that was reached. `None` for a code that names no limit.
fn limit_reached(fact: &StageFinished, code: &FailureCode) -> Option<String> {
    let name = code.limit_name()?;
    let row = fact.usage.iter().find(|row| row.name.as_str() == name);
    let value = row.map(|row| format!(" ({})", row.limit)).unwrap_or_default();
    Some(format!("the stage reached `limits.{name}`{value}"))
}

#[cfg(test)]
mod tests;
