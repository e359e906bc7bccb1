//! What follows from a node's `verify_command` (decision verify-command), which is a task of its own after the node's work.
//!
//! A command that passed keeps the outcome that it verified; anything else overrides it, with the failure of the verification. Only the
//! host's receipt counts for passed. Where the node may be repeated, its work is repeated: the check alone would fail again.

use super::{BranchDecision, cause_of, end_when_idle, succeeded};
use crate::run_state::Branch;
use glovebox_journal::event::{Event, StageFinished, StageReady, Task};
use glovebox_pipeline::ir::{Handler, HandlerKind, Node};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};

/// Brings the end of a verification into its recorded form: the outcome of the node.
pub(super) fn settle(node: &Node, branch: &Branch, finished: &mut StageFinished) {
    finished.follow_up.at_exit = node.handler == Handler::Exit;
    // A verifier plugin may look at files alone, and then it has only its word: see `gate_requires`.
    let is_command = node.checks.verification.as_ref().is_none_or(|stage| stage.handler.kind() == HandlerKind::Verify);
    // Only a receipt that proves something confirms that there was nothing to do.
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

/// The outcome that a verification of the node is about.
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
        let reason = "the verification says that it passed, but no receipt of the host says so";
        Failure::new(FailureClass::Contract, FailureCode::CLAIM_UNPROVEN, reason)
    };
    let failure = own.failure.unwrap_or_else(unproven);
    Outcome { notes: own.notes, ..Outcome::failed(failure) }
}

impl BranchDecision<'_> {
    /// True for a diamond whose command is to run: what failed before stays a failure without it.
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

    /// Out of a node with what its verification made of its outcome. An exit that fails ends the run (decision verify-command).
    pub(super) fn leave_verified(&self, node: &Node, outcome: &Outcome) -> Vec<Event> {
        match (&node.handler, outcome.status.satisfies_gate()) {
            (Handler::Exit, true) => vec![succeeded(node)],
            (Handler::Exit | Handler::ChildExit, false) => self.fail(cause_of(&node.id, outcome)),
            _ => self.leave_stage(&node.id, outcome),
        }
    }
}
