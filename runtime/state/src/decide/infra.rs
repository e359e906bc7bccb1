//! Failures of the machine: no stage is asked to fix them. Those that a verifier found are repeated
//! (decision infra-failures-are-not-fixed).

use super::BranchDecision;
use glovebox_pipeline::ir::{Edge, Handler};
use glovebox_pipeline::route::FailureTarget;
use glovebox_record::{Failure, FailureCode, Outcome};

/// Number of retries of a verification that found a failure of the machine, if neither the node nor the graph sets
/// more.
pub(super) const RETRIES: u32 = 2;

/// Returns true for a failure of the machine that a verifier found.
pub(super) fn is_infra(failure: &Failure) -> bool {
    failure.code == FailureCode::VERIFY_INFRA
}

/// Returns true for a failure of the machine, whoever found it. No stage is asked to fix it.
pub fn is_of_machine(failure: &Failure) -> bool {
    is_infra(failure) || failure.code == FailureCode::SANDBOX_LOST
}

impl BranchDecision<'_> {
    /// Returns true if an outcome is a failure of the machine and this target would treat it as one of the product.
    pub(super) fn misleads(&self, outcome: &Outcome, target: &FailureTarget) -> bool {
        outcome.failure.as_ref().is_some_and(is_of_machine)
            && match target {
                FailureTarget::Edge(index) => !self.tells_infra(&self.pipeline.edges[index.0]),
                FailureTarget::Node(_) => true,
                FailureTarget::Stop => false,
            }
    }

    /// Returns true if the condition of an edge reads the class of the failure, or if the edge leads to a diamond, whose
    /// edges decide.
    fn tells_infra(&self, edge: &Edge) -> bool {
        let reads_class = |edge: &Edge| {
            let mut clauses = edge.condition.iter().flat_map(|condition| &condition.clauses);
            clauses.any(|clause| clause.key.is_failure_class())
        };
        let is_diamond = self.pipeline.node(&edge.to).is_some_and(|node| node.handler == Handler::Conditional);
        is_diamond || reads_class(edge)
    }
}
