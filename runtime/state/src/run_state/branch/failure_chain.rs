//! The stages whose failures led to where a branch is, one after another. A resume begins again at the first of them: the later ones may
//! only have reported that it failed. A stage from which a way leads back to a failed one was to mend it, and has failed at that.
//!
//! A stage that passed ends the chain, because it may have mended what failed. One that only reports does not: a gate that a person
//! answered, or a stage that passed and changed nothing. Nor does a chain lead back to a failure that was handled meanwhile.

use super::Branch;
use crate::run_state::RunState;
use glovebox_journal::event::{NodeId, RunFinished, StageFinished};
use glovebox_record::FailureClass;
use rpds::VectorSync;

/// Stages that a chain has room for. Later ones have failed after these and cannot be the first.
const STAGES_MAX: usize = 64;

/// The rules by which a failed stage is handled, from the pipeline and from later visits.
pub(crate) struct Prospects<'p> {
    /// Whether a stage has visits left.
    pub(crate) can_be_visited: &'p dyn Fn(&NodeId) -> bool,
    /// Whether the run went on as if a stage had passed, or it has passed since.
    pub(crate) is_handled: &'p dyn Fn(&NodeId) -> bool,
    /// Whether the first stage was to mend the second.
    pub(crate) mends: &'p dyn Fn(&NodeId, &NodeId) -> bool,
}

/// Failed stages, each once, in the order of their first failures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureChain {
    stages: VectorSync<NodeId>,
}

impl FailureChain {
    /// The first stage that can be visited, looking back from the last one to a stage that the next one was to mend, and still can.
    fn first_to_mend(&self, prospects: &Prospects<'_>) -> Option<&NodeId> {
        let mut first = None;
        for stage in self.stages.iter().rev().filter(|stage| !(prospects.is_handled)(stage)) {
            if first.is_some_and(|first| (prospects.mends)(first, stage)) {
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

    /// A resume begins again at this stage: only the failures before it led there.
    pub(crate) fn begin_again(&mut self, from: &NodeId) {
        let is_known = self.contains(from);
        self.stages = self.stages.iter().take_while(|stage| is_known && *stage != from).cloned().collect();
    }

    /// A goal gate is unmet: what failed without it is not the reason.
    pub(crate) fn note_unmet_gate(&mut self, gate: &NodeId) {
        if !self.contains(gate) {
            self.clear();
        }
    }
}

impl Branch {
    /// Notes how a visit has ended, by the failure that it left.
    pub(crate) fn note_end_in_chain(&mut self, node: &NodeId, only_reports: bool) {
        match (&self.last_failure, only_reports) {
            (Some(_), _) => self.failure_chain.add(node),
            (None, true) => {}
            (None, false) => self.failure_chain.clear(),
        }
    }

    /// Notes how the last attempt of a visit has ended. A bound of the run that cut it says nothing about the stage, and an exit is no stage
    /// to begin again at while another one has failed.
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
    /// The stages whose visits ended after this one failed; none if it does not fail any more.
    pub(crate) fn visited_since_failure(&self, stage: &NodeId) -> Option<Vec<&NodeId>> {
        let failed_at = self.nodes.get(stage)?.failing_at?;
        Some(self.completed.since(failed_at.saturating_add(1)))
    }
}

impl RunState {
    /// True if a resume of a run that ended so begins a stage again. False for a run that continues where it stopped, that succeeded, or that
    /// was canceled for good.
    pub(crate) fn begins_again(&self, ended: &RunFinished) -> bool {
        let is_stopped = self.is_stopped_by_bound(ended) && !self.was_cut(ended);
        ended.failure.is_some() && !is_stopped && self.canceled.is_none()
    }

    /// The stage that it begins again at: the first of those whose failures led to the end that can still be mended, but none before a stage
    /// that was to mend it. Otherwise the stage whose failure ended the run, or the gate that was unmet; without one, the node that no edge
    /// led away from. None if it does not begin again, or if no visits are left.
    pub(crate) fn resumes_at(&self, ended: &RunFinished, prospects: &Prospects<'_>) -> Option<&NodeId> {
        let main = self.main();
        if !self.begins_again(ended) {
            return None;
        }
        let first = main.failure_chain.first_to_mend(prospects).filter(|_| !self.is_stopped_by_bound(ended));
        first.or_else(|| self.ended_at().filter(|node| (prospects.can_be_visited)(node)))
    }

    /// The stage whose failure ended the run, or the node at which it ended without one.
    pub(crate) fn ended_at(&self) -> Option<&NodeId> {
        let main = self.main();
        main.last_failed.as_ref().map(|failed| &failed.node).or(main.node.as_ref())
    }

    fn is_stopped_by_bound(&self, ended: &RunFinished) -> bool {
        self.stopped.is_some() || crate::run_state::can_continue(ended)
    }

    /// True if the bound that ended the run cut a stage.
    fn was_cut(&self, ended: &RunFinished) -> bool {
        let budget = ended.failure.as_ref().filter(|failure| failure.class == FailureClass::Budget);
        budget.is_some() && self.main().last_failure.as_ref() == budget
    }
}
