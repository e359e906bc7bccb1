//! The facts that a branch keeps about a failed stage, and about a stage that is being verified.

use super::Branch;
use super::is_output;
use glovebox_journal::event::{Digest, GateUnmet, NodeId, StageFinished, Work};
use glovebox_record::{Failure, FailureClass, Outcome};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The part of a failed stage that is kept to show its output to the next stage (decision failure-feedback).
#[derive(Debug, Clone, PartialEq)]
pub struct FailedStage {
    /// The node.
    pub node: NodeId,
    /// Whether the handler or the verification failed.
    pub work: Work,
    /// The notes of the handler.
    pub notes: String,
    /// Names and digests of the artifacts with output.
    pub printed: Vec<(String, Digest)>,
}

impl FailedStage {
    /// Creates an entry for a node without output.
    pub(crate) fn silent(node: &NodeId) -> Self {
        Self { node: node.clone(), work: Work::Handler, notes: String::new(), printed: Vec::new() }
    }

    /// Returns the name of the stage that failed: the node, or its verification.
    pub fn stage(&self) -> NodeId {
        if self.work == Work::Verify { self.node.verification() } else { self.node.clone() }
    }

    pub(crate) fn new(finished: &StageFinished) -> Self {
        let printed = finished.files.artifacts.iter().filter(|artifact| is_output(&artifact.name));
        Self {
            node: finished.attempt.task.node.clone(),
            work: finished.attempt.task.work,
            notes: finished.outcome.notes.clone(),
            printed: printed.map(|artifact| (artifact.name.clone(), artifact.digest)).collect(),
        }
    }
}

/// An outcome that waits for its verification, or that the verification rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct Unverified {
    /// Number of the attempt with this outcome; `None` if the work cannot be repeated.
    pub ordinal: Option<u32>,
    /// The handler of the attempt.
    pub handler: String,
    /// The outcome. Its context updates are applied when the verification has ended.
    pub outcome: Outcome,
    /// Keys of the context updates whose values are references to blobs.
    pub stored: BTreeSet<String>,
    /// True if the work changed nothing although the operator requires changes.
    pub no_change: bool,
}

impl Branch {
    /// Keeps the outcome of an attempt until its verification has ended.
    pub(crate) fn hold_unverified(&mut self, finished: &StageFinished) {
        let (outcome, stored) = (finished.outcome.clone(), finished.files.stored_values.clone());
        let (ordinal, no_change) = (Some(finished.attempt.ordinal), finished.follow_up.no_change);
        let handler = finished.handler.clone();
        self.unverified = Some(Arc::new(Unverified { ordinal, handler, outcome, stored, no_change }));
    }

    /// Keeps the outcome of a fan-in, which cannot be repeated, until its verification has ended.
    pub(crate) fn hold_fan_in(&mut self, outcome: Outcome) {
        let (handler, stored) = (String::new(), BTreeSet::new());
        self.unverified = Some(Arc::new(Unverified { ordinal: None, handler, outcome, stored, no_change: false }));
    }

    /// Applies the context updates of the verified outcome to the visit, whether the verification passed or not.
    pub(crate) fn settle_unverified(&mut self) {
        let Some(unverified) = self.unverified.take() else { return };
        self.set_updates(&unverified.outcome);
        self.note_values(&unverified.handler, &unverified.stored, &unverified.outcome);
    }

    pub(crate) fn note_unmet_gate(&mut self, unmet: &GateUnmet) {
        self.arrive(&unmet.exit_node, self.next_visit(&unmet.exit_node));
        let failure = self.outcome(&unmet.gate).and_then(|outcome| outcome.failure.clone());
        self.last_failure = Some(failure.unwrap_or_else(|| {
            let found =
                unmet.status.map_or("was never visited".into(), |status| format!("ended with `{}`", status.as_str()));
            let reason = match unmet.dropped_checks.is_empty() {
                true => format!("goal gate `{}` {found}", unmet.gate),
                false => format!("`{}` skipped commands of the verify contract", unmet.gate),
            };
            Failure::new(FailureClass::Deterministic, "gate/unmet", reason)
        }));
        self.failure_chain.note_unmet_gate(&unmet.gate);
        if self.last_failed.as_ref().is_none_or(|failed| failed.node != unmet.gate) {
            self.last_failed = Some(Arc::new(FailedStage::silent(&unmet.gate)));
        }
    }
}
