//! Decisions about a node's `verify_command` (decision verify-command), which is a separate task after the node's work.
//!
//! If the command passes, the outcome of the work stays. Otherwise the failure of the verification replaces it. Only
//! the host's receipt proves that the command passed. If the node may be repeated, its work is repeated, because
//! repeating only the command would fail again.

use super::{BranchDecision, cause_of, end_when_idle, succeeded};
use crate::run_state::Branch;
use glovebox_journal::event::{Event, StageFinished, StageReady, Task};
use glovebox_pipeline::ir::{Handler, HandlerKind, Node};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};

/// Completes the record of a verification with the outcome of the node.
pub(super) fn settle(node: &Node, branch: &Branch, finished: &mut StageFinished) {
    finished.follow_up.at_exit = node.handler == Handler::Exit;
    // A verifier plugin may inspect files without running a command. Then its own verdict decides: see `gate_requires`.
    let is_command = node.checks.verification.as_ref().is_none_or(|stage| stage.handler.kind() == HandlerKind::Verify);
    // Only a receipt that proves a result confirms that no change was necessary.
    finished.follow_up.no_change = branch.unverified.as_ref().is_some_and(|unverified| unverified.no_change);
    let is_confirmed = match finished.follow_up.no_change {
        true => finished.has_passing_receipt(),
        false => !is_command || finished.has_passed_command(),
    };
    let is_pass = finished.outcome.status == Status::Success && is_confirmed;
    let own = std::mem::replace(&mut finished.outcome, Outcome::new(Status::Success));
    finished.outcome = match (is_pass, verified(node, branch)) {
        (true, verified) if finished.follow_up.no_change => no_op(verified),
        (true, verified) => kept(verified, own.notes),
        (false, _) => overridden(own),
    };
}

/// Returns the outcome that a verification of the node verifies.
fn verified(node: &Node, branch: &Branch) -> Outcome {
    match (&branch.unverified, &node.handler) {
        (Some(unverified), _) => unverified.outcome.without_context_updates(),
        (None, Handler::Conditional) => branch.previous.without_context_updates(),
        (None, _) => Outcome::new(Status::Success),
    }
}

fn kept(verified: Outcome, notes: String) -> Outcome {
    Outcome { notes: if verified.notes.is_empty() { notes } else { verified.notes }, ..verified }
}

fn no_op(verified: Outcome) -> Outcome {
    let separator = if verified.notes.is_empty() { "" } else { "\n" };
    let notes = format!("no-op success: nothing was changed, and the verification passed{separator}{}", verified.notes);
    Outcome { notes, ..verified }
}

fn overridden(own: Outcome) -> Outcome {
    let unproven = || {
        let reason = "the verification says that it passed, but no receipt of the host proves it";
        Failure::new(FailureClass::Contract, FailureCode::CLAIM_UNPROVEN, reason)
    };
    let failure = own.failure.unwrap_or_else(unproven);
    Outcome { notes: own.notes, ..Outcome::failed(failure) }
}

impl BranchDecision<'_> {
    /// Returns true if the verification of a diamond must run. It does not run after a failure, because the failure
    /// stays a failure.
    pub(super) fn is_to_verify(&self, node: &Node) -> bool {
        node.checks.verification.is_some() && self.branch.previous.status.satisfies_gate()
    }

    /// Begins the verification of a visit.
    pub(super) fn verify(&self, visit: &Task) -> Vec<Event> {
        match self.steps_exceeded() {
            Some(failure) => end_when_idle(self.state, failure),
            None => {
                let due_at = self.cooled_at(&visit.node);
                vec![Event::StageReady(StageReady { task: visit.verification(), ordinal: 1, due_at })]
            }
        }
    }

    /// Leaves a node with the outcome of its verification. An exit whose verification failed ends the run
    /// (decision verify-command).
    pub(super) fn leave_verified(&self, node: &Node, outcome: &Outcome) -> Vec<Event> {
        match (&node.handler, outcome.status.satisfies_gate()) {
            (Handler::Exit, true) => vec![succeeded(node)],
            (Handler::Exit | Handler::ChildExit, false) => self.fail(cause_of(&node.id, outcome)),
            _ => self.leave_stage(&node.id, outcome),
        }
    }
}
