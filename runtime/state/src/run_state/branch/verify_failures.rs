//! The failures of a node's verification since it last passed. They limit its repetitions
//! (decision repetitions-by-category).
//!
//! Attempts are counted, not visits: a repetition within a visit costs as much as a repetition over an edge.

use super::Branch;
use super::repetition::{Repetition, SignatureCounts};
use crate::run_state::spending::is_bound_of_run;
use crate::run_state::{RunState, was_cut};
use glovebox_journal::event::StageFinished;
use glovebox_record::{ClassifiedFailure, Failure, FailureCategory, FailureClass, FailureCode, FailureSource, Status};
use jiff::Timestamp;
use std::sync::Arc;

/// The failures of a node's verification since it last passed.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyFailures {
    /// The last failure.
    pub last: ClassifiedFailure,
    /// Time of the last failure.
    pub at: Timestamp,
    /// Number of attempts that failed in the same way as the last one.
    pub repetition: Repetition,
    /// Number of failures of each category, in the order of [`FailureCategory::ALL`].
    counts: [u32; FailureCategory::ALL.len()],
    signatures: SignatureCounts,
}

impl VerifyFailures {
    /// Returns the number of failures of the same category as the last one.
    pub fn of_category(&self) -> u32 {
        self.counts[index(self.last.category)]
    }

    /// Returns the failures after one more attempt, or `None` if the verification passed.
    pub(crate) fn after(before: Option<&Arc<Self>>, at: Timestamp, finished: &StageFinished) -> Option<Arc<Self>> {
        let outcome = &finished.outcome;
        let is_lost = finished.has_lost_sandbox() && finished.follow_up.retrying;
        let is_cut = is_lost || was_cut(finished) || outcome.failure.as_ref().is_some_and(is_bound_of_run);
        match outcome.status {
            Status::Success | Status::PartialSuccess => return None,
            Status::Fail | Status::Retry if !is_cut => {}
            _ => return before.map(Arc::clone),
        }
        let unspoken = Failure::new(FailureClass::Transient, FailureCode::STAGE_FAILED, "");
        let last = ClassifiedFailure::new(FailureSource::Verification, outcome.failure.as_ref().unwrap_or(&unspoken));
        let mut counts = before.map(|before| before.counts).unwrap_or_default();
        let count = &mut counts[index(last.category)];
        *count = count.saturating_add(1);
        let mut signatures = before.map(|before| before.signatures.clone()).unwrap_or_default();
        let repeated = before.map(|before| before.repetition).unwrap_or_default();
        let repetition = signatures.count(repeated, finished.follow_up.signature);
        Some(Arc::new(Self { last, at, repetition, counts, signatures }))
    }
}

fn index(category: FailureCategory) -> usize {
    category as usize
}

impl RunState {
    /// Counts a failure of a verification. Without the operator's `[verify]` table, nothing is counted.
    pub(crate) fn note_verification(&mut self, at: Timestamp, finished: &StageFinished) {
        let is_bounded = self.run.as_ref().is_some_and(|run| run.plan.verify_retry.is_some());
        if is_bounded && finished.is_bounded_by_category() {
            let task = &finished.attempt.task;
            self.branch_mut(&task.branch).update(&task.node, |history| {
                history.verify_failures = VerifyFailures::after(history.verify_failures.as_ref(), at, finished);
            });
        }
    }
}

impl Branch {
    /// Resets the counts, because a person resumed the run after its end.
    pub(crate) fn forget_verify_failures(&mut self) {
        let failed = self.nodes.iter().filter(|(_, history)| history.verify_failures.is_some());
        let failed: Vec<_> = failed.map(|(node, _)| node.clone()).collect();
        failed.iter().for_each(|node| self.update(node, |history| history.verify_failures = None));
    }
}
