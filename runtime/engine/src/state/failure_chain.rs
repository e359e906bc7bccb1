//! The stages whose failures led to where a branch is, one after another. A resume begins again at the first of them: the later ones may
//! only have reported that it failed. A stage from which a way leads back to a failed one was to mend it, and has failed at that.
//!
//! A stage that passed ends the chain, because it may have mended what failed. One that only reports does not: a gate that a person
//! answered, or a command that passed and changed nothing.

use super::{Branch, RunState};
use crate::event::{NodeId, RunFinished, StageFinished};
use glovebox_pipeline::lower::handler::HandlerKind;
use glovebox_record::FailureClass;
use rpds::VectorSync;

/// Stages that a chain has room for. Later ones have failed after these and cannot be the first.
const STAGES_MAX: usize = 64;

/// Failed stages, each once, in the order of their first failures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureChain {
    stages: VectorSync<NodeId>,
}

impl FailureChain {
    /// The first stage that can be visited, looking back from the last one to a stage that the next one was to mend.
    fn first_to_mend(
        &self,
        can_be_visited: impl Fn(&NodeId) -> bool,
        mends: impl Fn(&NodeId, &NodeId) -> bool,
    ) -> Option<&NodeId> {
        let (mut first, mut next) = (None, None);
        for stage in self.stages.iter().rev() {
            if next.is_some_and(|next| mends(next, stage)) {
                break;
            }
            first = Some(stage).filter(|stage| can_be_visited(stage)).or(first);
            next = Some(stage);
        }
        first
    }

    fn contains(&self, node: &NodeId) -> bool {
        self.stages.iter().any(|stage| stage == node)
    }

    fn add(&mut self, node: &NodeId) {
        if !self.contains(node) && self.stages.len() < STAGES_MAX {
            self.stages.push_back_mut(node.clone());
        }
    }

    fn clear(&mut self) {
        self.stages = VectorSync::new_sync();
    }

    /// A resume begins again at this stage: only the failures before it led there.
    pub(super) fn begin_again(&mut self, from: &NodeId) {
        let is_known = self.contains(from);
        self.stages = self.stages.iter().take_while(|stage| is_known && *stage != from).cloned().collect();
    }

    /// A goal gate is unmet: what failed without it is not the reason.
    pub(super) fn note_unmet_gate(&mut self, gate: &NodeId) {
        if !self.contains(gate) {
            self.clear();
        }
    }
}

impl Branch {
    /// Notes how a visit has ended, by the failure that it left.
    pub(super) fn note_end_in_chain(&mut self, node: &NodeId, only_reports: bool) {
        match (&self.last_failure, only_reports) {
            (Some(_), _) => self.failure_chain.add(node),
            (None, true) => {}
            (None, false) => self.failure_chain.clear(),
        }
    }

    /// Notes how the last attempt of a visit has ended. A bound of the run that cut it says nothing about the stage, and an exit is no stage
    /// to begin again at while another one has failed.
    pub(super) fn note_attempt_in_chain(&mut self, finished: &StageFinished) {
        let is_cut = finished.outcome.failure.as_ref().is_some_and(super::spending::is_bound_of_run);
        if finished.retrying || is_cut {
            return;
        }
        if finished.at_exit {
            self.failure_chain.clear();
            return;
        }
        let is_command = HandlerKind::of(&finished.handler) == HandlerKind::Tool;
        self.note_end_in_chain(&finished.attempt.task.node, is_command && finished.changes.is_empty());
    }
}

impl RunState {
    /// The stage that a resume begins again at when the run ends so: the first of those whose failures led to the end that `can_be_visited`,
    /// but none before a stage that `mends` it. Otherwise the stage whose failure ended the run, the gate that was unmet, or the node that no
    /// edge led away from. None for a run that continues where it stopped, that succeeded, or that was canceled for good.
    pub(crate) fn resumes_at(
        &self,
        ended: &RunFinished,
        can_be_visited: impl Fn(&NodeId) -> bool,
        mends: impl Fn(&NodeId, &NodeId) -> bool,
    ) -> Option<&NodeId> {
        let failure = ended.failure.as_ref()?;
        let main = self.main();
        let is_bound = self.stopped.is_some() || super::can_continue(ended);
        let was_cut = main.last_failure.as_ref() == Some(failure) && failure.class == FailureClass::Budget;
        if is_bound && !was_cut || self.canceled.is_some() {
            return None;
        }
        let first = main.failure_chain.first_to_mend(can_be_visited, mends).filter(|_| !is_bound);
        first.or(main.last_failed.as_ref().map(|failed| &failed.node)).or(main.node.as_ref())
    }
}
