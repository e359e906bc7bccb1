//! Limits how often work is repeated after a failure of its verification, if the operator has a `[verify]` table
//! (decision repetitions-by-category).
//!
//! There are three ways to repeat the work, each with a check: a retry within a visit, an edge or target that leads
//! back to the verification, and an arrival at the verification from any other node. Routes that do not lead back are
//! not limited. The counts come from the journal.

use super::cycle::{Refusal, SignatureLimit};
use super::{BranchDecision, cause_of};
use crate::run_state::{RunState, VerifyFailures};
use glovebox_journal::event::{NodeId, StageFinished};
use glovebox_pipeline::fixability::leads_to;
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_record::VerifyLimits;
use glovebox_record::{Failure, Outcome};
use jiff::{SignedDuration, Timestamp};

/// The limits on repetitions after failures of one node's verification.
struct Bound<'a> {
    retry: VerifyLimits,
    failures: &'a VerifyFailures,
    pipeline: &'a Pipeline,
    node: &'a NodeId,
    cause: Failure,
}

impl<'a> Bound<'a> {
    /// Returns the limits for a node whose verification has not passed since it failed. Returns `None` without
    /// `[verify]`.
    fn for_node(at: &'a BranchDecision<'_>, node: &'a NodeId) -> Option<Self> {
        let failures = at.branch.nodes.get(node)?.verify_failures.as_deref()?;
        let unspoken = Outcome::new(glovebox_record::Status::Fail);
        let cause = cause_of(node, at.branch.outcome(node).unwrap_or(&unspoken));
        Some(Self { retry: retry_of(at.state)?, failures, pipeline: at.pipeline, node, cause })
    }

    /// Returns the refusal if the same failure repeats, or if failures of one category occur too often.
    fn refusal(&self) -> Option<Refusal> {
        self.repeated().or_else(|| self.exhausted().map(Refusal::from))
    }

    /// Returns the refusal if the same failure repeats.
    fn repeated(&self) -> Option<Refusal> {
        let limit = SignatureLimit::for_row(self.pipeline, Some(&self.retry));
        limit.break_row(self.node, self.failures.repetition, &self.cause.reason)
    }

    /// Returns the failure that ends the run if failures of one category occur too often.
    fn exhausted(&self) -> Option<Failure> {
        let (node, last, cause) = (self.node, self.failures.last, &self.cause.reason);
        let (code, category, times) = (last.code, last.category.as_str(), self.failures.of_category());
        if !last.is_retryable {
            let reason =
                format!("`{node}` failed with `{code}` (category `{category}`), which is not retried: {cause}");
            return Some(Failure::new(self.cause.class, "loop/not_retryable", reason));
        }
        let (limit, name) = match self.retry.max_retries.filter(|most| *most < last.retry_limit()) {
            Some(most) => (most, "`max_retries` of `[verify.retry]`"),
            None => (last.retry_limit(), "the limit of the category"),
        };
        let reason = || {
            format!(
                "`{node}` failed {times} times with failures of category `{category}`, {name} is {limit} retries: {cause}"
            )
        };
        (times > limit).then(|| Failure::new(self.cause.class, "loop/retry_limit", reason()))
    }
}

fn retry_of(state: &RunState) -> Option<VerifyLimits> {
    state.run.as_ref()?.plan.verify_retry
}

/// Returns the reason why the work is not repeated within the visit after this verification. The attempt is not yet
/// folded into `state`.
pub(super) fn not_repeated(pipeline: &Pipeline, state: &RunState, finished: &StageFinished) -> Option<Failure> {
    let retry = retry_of(state).filter(|_| finished.is_bounded_by_category())?;
    let task = &finished.attempt.task;
    let before = state.branch(&task.branch).nodes.get(&task.node).and_then(|history| history.verify_failures.as_ref());
    let failures = VerifyFailures::after(before, Timestamp::UNIX_EPOCH, finished)?;
    let cause = cause_of(&task.node, &finished.outcome);
    let bound = Bound { retry, failures: &failures, pipeline, node: &task.node, cause };
    bound.refusal().map(|refusal| refusal.failure)
}

/// Returns the minimum delay before the work is repeated after this attempt, milliseconds. The attempt is already
/// folded into `state`.
pub(super) fn cooldown_ms(state: &RunState, finished: &StageFinished) -> u64 {
    let task = &finished.attempt.task;
    let waits = |failures: &VerifyFailures| finished.is_bounded_by_category() && failures.last.category.waits();
    let history = state.branch(&task.branch).nodes.get(&task.node);
    let is_cooled = history.and_then(|history| history.verify_failures.as_deref()).is_some_and(waits);
    let cooldown = retry_of(state).filter(|_| is_cooled).map_or(0, |retry| retry.cooldown_seconds);
    u64::from(cooldown) * 1000
}

impl BranchDecision<'_> {
    /// Returns the refusal of a route that leads back to a verification that may not be repeated. `to` is `None` if the
    /// node has no next node.
    pub(super) fn not_verified_again(&self, node: &NodeId, to: Option<&NodeId>) -> Option<Refusal> {
        let bound = Bound::for_node(self, node)?;
        match to {
            Some(to) if to != node && !leads_to(self.pipeline, to, node) => None,
            Some(_) => bound.refusal(),
            // The stage's own failure ends the run, unless the same failure has repeated too often.
            None => bound.repeated(),
        }
    }

    /// Returns the refusal if the verification of a node failed in the same way too often in a row.
    pub(super) fn repeated_in_a_row(&self, node: &NodeId) -> Option<Refusal> {
        Bound::for_node(self, node)?.repeated()
    }

    /// Returns the refusal if the node may not be visited again, whatever the route to it.
    pub(super) fn verified_too_often(&self, node: &Node) -> Option<Refusal> {
        Bound::for_node(self, &node.id)?.refusal()
    }

    /// Returns the time at which the work of a node may be repeated, or `None` if it need not wait.
    pub(super) fn cooled_at(&self, node: &NodeId) -> Option<Timestamp> {
        let failures = self.branch.nodes.get(node)?.verify_failures.as_deref()?;
        let cooldown = retry_of(self.state).filter(|_| failures.last.category.waits())?.cooldown_seconds;
        let due_at = failures.at.checked_add(SignedDuration::from_secs(i64::from(cooldown))).ok()?;
        self.state.at.is_none_or(|now| now < due_at).then_some(due_at)
    }
}
