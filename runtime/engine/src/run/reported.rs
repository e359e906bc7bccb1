//! What the driver of a run checks of a result that another machine reports.
//!
//! The machine has judged the changes of its stage, as on one machine. A machine that lies could still claim the result of
//! another attempt, the work of another handler, or changes that the stage may not make. This module compares the result with
//! the assignment and the plan. It reads no blob, and does not know who signed the result.

use crate::assignment::{Assignment, AttemptResult};
use glovebox_journal::event::{Attempt, Digest, StageFinished, Work};
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::executor::Executor;
use glovebox_record::FileChange;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::reported;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum of a duration, of a length and of an amount in a result. Sums of such numbers stay exact in every JSON reader.
const NUMBER_MAX: u64 = 1 << 50;

/// A blob that a result needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedBlob {
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Checks results against the plan of a run.
pub struct ResultCheck {
    plan: Arc<Plan>,
    protected: Protected,
}

impl ResultCheck {
    /// Uses the plan that this machine has bound.
    pub fn new(executor: &Executor) -> Self {
        Self { plan: Arc::clone(&executor.plan), protected: executor.protected.clone() }
    }

    /// Returns why a result cannot be that of an assignment. `None` if it can.
    pub fn fault(&self, assignment: &Assignment, result: &AttemptResult) -> Option<String> {
        let AttemptResult { ingested, finished } = result;
        let of_other = |attempt: &Attempt| *attempt != assignment.attempt;
        if of_other(&finished.attempt) || ingested.as_ref().is_some_and(|ingested| of_other(&ingested.attempt)) {
            return Some("it is the result of another attempt".to_owned());
        }
        let stage = assignment.stage();
        let (Some(node), Some(binding)) = (self.plan.pipeline.node(&stage), self.plan.binding(&stage)) else {
            return Some(format!("the plan has no stage `{stage}`"));
        };
        // The handler decides whether the receipts of a stage prove anything. It is empty if none was called.
        if !finished.handler.is_empty() && finished.handler != node.handler.name() {
            return Some(format!("`{stage}` has another handler"));
        }
        if numbers(finished).any(|number| number > NUMBER_MAX) {
            return Some(format!("it has a number above {NUMBER_MAX}"));
        }
        let is_widened = assignment.attempt.task.work == Work::Handler && !assignment.granted.is_empty();
        let binding = match is_widened {
            true => Cow::Owned(binding.with_granted(&assignment.granted)),
            false => Cow::Borrowed(binding),
        };
        if !finished.files.changes.is_empty() && !binding.keeps_writes() {
            return Some(format!("nothing that `{stage}` writes is committed"));
        }
        let of_change = |change: &FileChange| reported::fault(change, &binding.scope, &self.protected);
        let of_proposed = |change: &FileChange| reported::fault_outside_scope(change, &binding.scope, &self.protected);
        finished.files.changes.iter().find_map(of_change).or_else(|| finished.proposed().find_map(of_proposed))
    }
}

/// Returns the numbers of a result that are added up.
fn numbers(finished: &StageFinished) -> impl Iterator<Item = u64> {
    let StageFinished { duration_ms, refusals, model, files, commands, .. } = finished;
    let own = [*duration_ms, refusals.total, model.tokens.input, model.tokens.output, model.cost.0];
    let changes = files.changes.iter().chain(finished.proposed()).map(|change| change.bytes);
    let artifacts = files.artifacts.iter().map(|artifact| artifact.bytes);
    let ignored = files.ignored.iter().flat_map(|ignored| [ignored.files, ignored.bytes]);
    let receipts = commands.receipts.iter();
    let receipts = receipts.flat_map(|receipt| [receipt.duration_ms, receipt.stdout_bytes, receipt.stderr_bytes]);
    own.into_iter().chain(changes).chain(artifacts).chain(ignored).chain(receipts)
}

/// Returns the blobs without which the run could not go on after a result, or could not be shown. Each must be stored before
/// the result counts.
pub fn named_blobs(result: &AttemptResult) -> Vec<NamedBlob> {
    let AttemptResult { ingested, finished } = result;
    let files = &finished.files;
    let changes = files.changes.iter().chain(finished.proposed());
    let changes = changes.filter_map(|change| Some(NamedBlob { digest: change.digest?, bytes: change.bytes }));
    let artifacts = files.artifacts.iter().map(|artifact| NamedBlob { digest: artifact.digest, bytes: artifact.bytes });
    let outputs = files.stdout.iter().chain(&files.stderr);
    let outputs = outputs.map(|output| NamedBlob { digest: output.digest, bytes: output.bytes });
    let values = finished.stored_values().map(|(_, value)| NamedBlob { digest: value.artifact, bytes: value.bytes });
    let copies = ingested.iter().filter_map(|ingested| ingested.copy.as_ref());
    let copies = copies.map(|copy| NamedBlob { digest: copy.digest, bytes: copy.bytes });
    changes.chain(artifacts).chain(outputs).chain(values).chain(copies).collect()
}
