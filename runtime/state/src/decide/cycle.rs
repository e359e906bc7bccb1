//! The cycle breaker: ends a loop in which a node repeatedly fails in the same way
//! (decisions same-failure-ends-a-loop, one-signature-two-bounds).
//!
//! Two limits count the same failures: that of the graph counts visits, that of `[verify.retry]` counts consecutive
//! attempts of a verification. For failures in a row, the lower limit that is set applies, or else a default. Failures
//! with others in between have the limit of the graph, if it is set.

use super::BranchDecision;
use crate::run_state::Repetition;
use glovebox_journal::event::{CycleBroken, Digest, Event, NodeId};
use glovebox_pipeline::ir::{Pipeline, SIGNATURE_LIMIT_DEFAULT};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status, VerifyLimits};

/// The name of the limit of the graph.
const OF_GRAPH: &str = "loop_restart_signature_limit";
/// The name of the limit of `[verify.retry]`.
const OF_VERIFY: &str = "repeated_signature_threshold";

/// The limit on equal failures of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignatureLimit {
    most: u32,
    name: &'static str,
}

impl SignatureLimit {
    /// Returns the limit on all visits of a node that fail in the same way. `verify` are the operator's limits, if they
    /// apply to the node.
    fn for_visits(pipeline: &Pipeline, verify: Option<&VerifyLimits>) -> Self {
        Self::of_graph(pipeline).unwrap_or_else(|| Self::for_row(pipeline, verify))
    }

    fn of_graph(pipeline: &Pipeline) -> Option<Self> {
        pipeline.signature_limit.map(|most| Self { most, name: OF_GRAPH })
    }

    /// Returns the limit on consecutive equal failures of a node.
    pub(super) fn for_row(pipeline: &Pipeline, verify: Option<&VerifyLimits>) -> Self {
        let of_verify = verify.and_then(|verify| verify.repeated_signature_threshold);
        let of_verify = of_verify.map(|most| Self { most, name: OF_VERIFY });
        let default = match verify {
            Some(_) => Self { most: VerifyLimits::SIGNATURE_THRESHOLD_DEFAULT, name: OF_VERIFY },
            None => Self { most: SIGNATURE_LIMIT_DEFAULT, name: OF_GRAPH },
        };
        of_verify.into_iter().chain(Self::of_graph(pipeline)).min_by_key(|limit| limit.most).unwrap_or(default)
    }

    /// Describes the limit in a reason.
    fn describe(self) -> String {
        match self.name {
            OF_VERIFY => format!("`{OF_VERIFY}` of `[verify.retry]` is {}", self.most),
            name => format!("`{name}` is {}", self.most),
        }
    }

    /// Breaks the cycle if a verification failed in the same way too often in a row.
    pub(super) fn break_row(self, node: &NodeId, repetition: Repetition, cause: &str) -> Option<Refusal> {
        let said = || {
            let failed = repetition.describe_row(node).unwrap_or_else(|| repetition.describe_total(node));
            format!("repeated_same_failure_signature: {failed}, {}: {cause}", self.describe())
        };
        self.broken(repetition, repetition.in_a_row, FailureCode::REPEATED_SIGNATURE, said)
    }

    /// Breaks the cycle if a node failed in the same way in too many visits.
    fn break_total(self, node: &NodeId, repetition: Repetition, cause: &str) -> Option<Refusal> {
        let said = || format!("{}, {}: {cause}", repetition.describe_total(node), self.describe());
        self.broken(repetition, repetition.total, FailureCode::FAILURE_CYCLE, said)
    }

    fn broken(
        self,
        repetition: Repetition,
        count: u32,
        code: FailureCode,
        reason: impl FnOnce() -> String,
    ) -> Option<Refusal> {
        let signature = repetition.signature.filter(|_| count >= self.most)?;
        let failure = Failure::new(FailureClass::Deterministic, code, reason());
        Some(Refusal { failure, cycle: Some(Cycle { signature, count, limit: self }) })
    }
}

/// A cycle that was broken.
struct Cycle {
    signature: Digest,
    count: u32,
    limit: SignatureLimit,
}

/// Why a branch does not continue.
pub(super) struct Refusal {
    pub(super) failure: Failure,
    cycle: Option<Cycle>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, cycle: None }
    }
}

impl BranchDecision<'_> {
    /// Returns the refusal to leave a stage that failed in the same way in too many visits. The reason contains the
    /// stage's own reason.
    pub(super) fn cycle(&self, node: &NodeId, outcome: &Outcome) -> Option<Refusal> {
        let history = self.branch.nodes.get(node)?;
        let verify = self.state.run.as_ref().and_then(|run| run.plan.verify_retry.as_ref());
        let limit = SignatureLimit::for_visits(self.pipeline, verify.filter(|_| history.verify_failures.is_some()));
        limit.break_total(node, history.repetition, &super::cause_of(node, outcome).reason)
    }

    /// Ends the branch at a node. If a cycle is broken, the event about it comes first, and the end follows from it.
    pub(super) fn refuse(&self, node: &NodeId, refusal: Refusal) -> Vec<Event> {
        let Some(Cycle { signature, count, limit }) = refusal.cycle else { return self.fail(refusal.failure) };
        let (generation, branch) = self.place();
        let (node, limit_name) = (node.clone(), limit.name.to_owned());
        let broken = CycleBroken { generation, branch, node, signature, count, limit: limit.most, limit_name };
        vec![Event::CycleBroken(broken)]
    }

    /// Ends the branch whose cycle was broken, with the failure of the limit that the event names.
    pub(super) fn end_cycle(&self, broken: &CycleBroken) -> Vec<Event> {
        let unspoken = Outcome::new(Status::Fail);
        let outcome = self.branch.outcome(&broken.node).unwrap_or(&unspoken);
        let refusals = [self.repeated_in_a_row(&broken.node), self.cycle(&broken.node, outcome)];
        let is_meant = |refusal: &Refusal| {
            let cycle = refusal.cycle.as_ref();
            cycle.is_some_and(|cycle| (cycle.count, cycle.limit.name) == (broken.count, broken.limit_name.as_str()))
        };
        let meant = refusals.into_iter().flatten().find(is_meant).map(|refusal| refusal.failure);
        self.fail(meant.unwrap_or_else(|| super::cause_of(&broken.node, outcome)))
    }
}
