//! Why a run failed: the stage whose failure a person has to look at.
//!
//! Usually it is the stage that ended the run. If that stage should have repaired an earlier failure, and no model was asked, the
//! earlier failure is the cause.

use super::failed_stage::{FailedStage, used_up};
use super::summary::RunSummary;
use glovebox_journal::event::StageFinished;
use glovebox_pipeline::ir::HandlerKind;
use glovebox_record::{Failure, NodeId};

/// The name of the artifact with the whole result of a stage that could read hold-outs.
const WITHHELD_FILE: &str = "withheld.json";
/// The code of a stage whose answer says that it failed.
const DECLARED: &str = "agent/declared-fail";
/// The provider of a run whose model answers come from a script.
const SCRIPTED: &str = "scripted";

/// The cause of a failed run.
#[derive(Debug, Clone, Copy)]
pub struct Cause<'s> {
    /// The stage; `None` if no stage caused the failure.
    pub node: Option<&'s NodeId>,
    /// The class, code and reason.
    pub failure: &'s Failure,
}

impl RunSummary {
    /// Returns why the run failed; `None` if it has not failed.
    pub fn cause(&self) -> Option<Cause<'_>> {
        let failure = self.end.failure.as_ref()?;
        let unrepaired = self.lacks_model().then(|| self.unrepaired()).flatten();
        let ended = Cause { node: self.end.failed_node.as_ref(), failure };
        Some(unrepaired.map_or(ended, |(node, stage)| Cause { node: Some(node), failure: &stage.failure }))
    }

    /// Returns true if a stage that needs a model ended the run, and no model was asked.
    pub fn lacks_model(&self) -> bool {
        let ended = self.end.failed_node.as_ref().and_then(|node| self.proof.failed.get(node));
        self.end.failure.is_some() && ended.is_some_and(|stage| stage.is_unasked)
    }

    /// Returns the last failure that the stage which ended the run should have repaired.
    fn unrepaired(&self) -> Option<(&NodeId, &FailedStage)> {
        let others = self.proof.failed.iter().filter(|(_, stage)| !stage.is_unasked);
        others.max_by_key(|(_, stage)| stage.at)
    }

    pub(super) fn note_failure(&mut self, stage: &StageFinished) {
        let node = &stage.attempt.task.node;
        let Some(failure) = &stage.outcome.failure else {
            self.proof.failed.remove(node);
            return;
        };
        let asks = HandlerKind::from_name(&stage.handler) == HandlerKind::Codergen;
        let has_declared = failure.code.as_str() == DECLARED;
        let is_asked = stage.model.asked.is_some() || self.model.provider == SCRIPTED;
        let failed = FailedStage {
            failure: failure.clone(),
            artifacts: stage.files.artifacts.clone(),
            is_withheld: stage.files.artifacts.iter().any(|artifact| artifact.name == WITHHELD_FILE),
            used_up: used_up(&stage.usage),
            is_unasked: asks && has_declared && !is_asked && stage.commands.receipts.is_empty(),
            at: self.head.records,
        };
        self.proof.failed.insert(node.clone(), failed);
    }
}
