//! The stages whose failures led a branch to its current node, in order. A resume begins at the first of them, because
//! the later ones may only have reported that the first one failed. The search goes backwards and stops at a stage that
//! should have fixed the failure before it: the resume begins there, because the fix failed.
//!
//! A stage that passed ends the chain, because it may have fixed the failure. A stage that only reports does not end
//! the chain: a gate that a person answered, or a stage that passed and changed nothing. A failure that has been
//! handled since is skipped.

use super::Branch;
use crate::run_state::RunState;
use glovebox_journal::event::{NodeId, RunFinished, StageFinished};
use glovebox_record::FailureClass;
use rpds::VectorSync;

/// Maximum number of stages in a chain. Later stages are not added, because they cannot be the first.
const STAGES_MAX: usize = 64;

/// The functions that decide whether a resume can begin at a failed stage.
pub(crate) struct Prospects<'p> {
    /// Returns whether a stage has visits left.
    pub(crate) can_be_visited: &'p dyn Fn(&NodeId) -> bool,
    /// Returns whether the run continued as if a stage had passed, or the stage has passed since.
    pub(crate) is_handled: &'p dyn Fn(&NodeId) -> bool,
    /// Returns whether the first stage was supposed to fix the failure of the second.
    pub(crate) should_fix: &'p dyn Fn(&NodeId, &NodeId) -> bool,
}

/// Failed stages without duplicates, in the order of their first failures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureChain {
    stages: VectorSync<NodeId>,
}

impl FailureChain {
    /// Returns the first stage that can be visited. The search goes backwards from the last stage. It stops at a stage
    /// that was supposed to fix the failure before it, and returns that stage.
    fn first_to_fix(&self, prospects: &Prospects<'_>) -> Option<&NodeId> {
        let mut first = None;
        for stage in self.stages.iter().rev().filter(|stage| !(prospects.is_handled)(stage)) {
            if first.is_some_and(|first| (prospects.should_fix)(first, stage)) {
                break;
            }
            first = Some(stage).filter(|stage| (prospects.can_be_visited)(stage)).or(first);
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

    /// Removes `from` and the stages after it, because a resume begins at `from` and only the failures before it led
    /// there. Clears the chain if it does not contain `from`.
    pub(crate) fn resume_at_node(&mut self, from: &NodeId) {
        let is_known = self.contains(from);
        self.stages = self.stages.iter().take_while(|stage| is_known && *stage != from).cloned().collect();
    }

    /// Clears the chain if it does not contain an unmet goal gate: the other failures are then not the reason.
    pub(crate) fn note_unmet_gate(&mut self, gate: &NodeId) {
        if !self.contains(gate) {
            self.clear();
        }
    }
}

impl Branch {
    /// Notes the end of a visit. `only_reports` is true for a stage that cannot have fixed a failure.
    pub(crate) fn note_end_in_chain(&mut self, node: &NodeId, only_reports: bool) {
        match (&self.last_failure, only_reports) {
            (Some(_), _) => self.failure_chain.add(node),
            (None, true) => {}
            (None, false) => self.failure_chain.clear(),
        }
    }

    /// Notes the end of the last attempt of a visit. An attempt that a limit of the run cut off says nothing about the
    /// stage and is ignored. The verification of an exit clears the chain.
    pub(crate) fn note_attempt_in_chain(&mut self, finished: &StageFinished) {
        let is_cut = finished.outcome.failure.as_ref().is_some_and(crate::run_state::spending::is_bound_of_run);
        if finished.follow_up.retrying || is_cut {
            return;
        }
        if finished.follow_up.at_exit {
            self.failure_chain.clear();
            return;
        }
        self.note_end_in_chain(&finished.attempt.task.node, finished.files.changes.is_empty());
    }
}

impl Branch {
    /// Returns the stages whose visits ended after the last failure of `stage`. Returns `None` if the last outcome of
    /// `stage` is not a failure.
    pub(crate) fn visited_since_failure(&self, stage: &NodeId) -> Option<Vec<&NodeId>> {
        let failed_at = self.nodes.get(stage)?.failing_at?;
        Some(self.completed.since(failed_at.saturating_add(1)))
    }
}

impl RunState {
    /// Returns true if a resume of a run with this end executes a stage again. Returns false for a run that continues
    /// where it stopped, that succeeded, or that was canceled.
    pub(crate) fn repeats_a_stage(&self, ended: &RunFinished) -> bool {
        let is_stopped = self.is_stopped_by_bound(ended) && !self.was_cut(ended);
        ended.failure.is_some() && !is_stopped && self.canceled.is_none() && self.stalled.is_none()
    }

    /// Returns the stage at which a resume begins: the first stage in the failure chain that can still be fixed. Stages
    /// before one that was supposed to fix them are not considered. Without one, returns the stage whose failure ended
    /// the run, the unmet gate, or the node without a matching edge. Returns `None` if no stage is executed again, or
    /// if no visits are left.
    pub(crate) fn resumes_at(&self, ended: &RunFinished, prospects: &Prospects<'_>) -> Option<&NodeId> {
        let main = self.main();
        if !self.repeats_a_stage(ended) {
            return None;
        }
        let first = main.failure_chain.first_to_fix(prospects).filter(|_| !self.is_stopped_by_bound(ended));
        first.or_else(|| self.ended_at().filter(|node| (prospects.can_be_visited)(node)))
    }

    /// Returns the stage whose failure ended the run, or the node at which the run ended without a failed stage.
    pub(crate) fn ended_at(&self) -> Option<&NodeId> {
        let main = self.main();
        main.last_failed.as_ref().map(|failed| &failed.node).or(main.node.as_ref())
    }

    fn is_stopped_by_bound(&self, ended: &RunFinished) -> bool {
        self.stopped.is_some() || crate::run_state::can_continue(ended)
    }

    /// Returns true if the limit that ended the run cut off a stage.
    fn was_cut(&self, ended: &RunFinished) -> bool {
        let budget = ended.failure.as_ref().filter(|failure| failure.class == FailureClass::Budget);
        budget.is_some() && self.main().last_failure.as_ref() == budget
    }
}
