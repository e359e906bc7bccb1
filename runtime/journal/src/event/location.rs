//! The branch and the node that an event is about.

use super::{BranchId, Event, NodeId};

impl Event {
    /// Returns the branch that the event is about, or `None` for an event about the whole run.
    pub fn branch(&self) -> Option<&BranchId> {
        match self {
            Event::StageReady(event) => Some(&event.task.branch),
            Event::StageStarted(event) => Some(&event.attempt.task.branch),
            Event::StageSteered(event) => Some(&event.attempt.task.branch),
            Event::StatusIngested(event) => Some(&event.attempt.task.branch),
            Event::StageFinished(event) => Some(&event.attempt.task.branch),
            Event::StageHeld(event) => Some(&event.attempt.task.branch),
            Event::StageRetrying(event) => Some(&event.task.branch),
            Event::StagePassed(event) => Some(&event.branch),
            Event::RouteTaken(event) => Some(&event.branch),
            Event::GateUnmet(event) => Some(&event.branch),
            Event::LoopRestarted(event) => Some(&event.branch),
            Event::ParallelStarted(event) => Some(&event.branch),
            Event::ParallelExpired(event) => Some(&event.branch),
            Event::ChildObserved(event) => Some(&event.branch),
            Event::BranchStarted(event) => Some(&event.branch),
            Event::BranchCanceled(event) => Some(&event.branch),
            Event::BranchFinished(event) => Some(&event.branch),
            Event::ParallelJoined(event) => Some(&event.branch),
            Event::FanInFinished(event) => Some(&event.branch),
            Event::RunStarted(_) | Event::RunResumed(_) | Event::RunTakenOver(_) | Event::CacheFilled(_) => None,
            Event::QuestionAsked(event) => Some(&event.branch),
            Event::QuestionAnswered(event) => Some(&event.branch),
            Event::RecoveryDecided(event) => Some(event.branch()),
            Event::RunPaused(_) | Event::RunCanceled(_) | Event::RunFinished(_) => None,
            Event::RunStalled(_) => None,
            Event::CycleBroken(event) => Some(&event.branch),
            Event::BranchExited(event) => Some(&event.branch),
        }
    }

    /// Returns the node that the event is about, or `None` if it is not about one.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Event::CacheFilled(event) => Some(&event.node),
            Event::StageReady(event) => Some(&event.task.node),
            Event::StageStarted(event) => Some(&event.attempt.task.node),
            Event::StageSteered(event) => Some(&event.attempt.task.node),
            Event::StatusIngested(event) => Some(&event.attempt.task.node),
            Event::StageFinished(event) => Some(&event.attempt.task.node),
            Event::StageHeld(event) => Some(&event.attempt.task.node),
            Event::StageRetrying(event) => Some(&event.task.node),
            Event::StagePassed(event) => Some(&event.node),
            Event::RouteTaken(event) => Some(&event.from),
            Event::GateUnmet(event) => Some(&event.gate),
            Event::LoopRestarted(event) => Some(&event.from),
            Event::ParallelStarted(event) => Some(&event.node),
            Event::ParallelExpired(event) => Some(&event.node),
            Event::ChildObserved(event) => Some(&event.node),
            Event::BranchStarted(event) => Some(&event.to),
            Event::BranchFinished(event) => event.node.as_ref(),
            Event::ParallelJoined(event) => Some(&event.node),
            Event::FanInFinished(event) => Some(&event.node),
            Event::BranchCanceled(_) => None,
            Event::QuestionAsked(event) => Some(&event.node),
            Event::QuestionAnswered(event) => Some(&event.node),
            Event::RecoveryDecided(event) => Some(event.node()),
            Event::RunStarted(_) | Event::RunResumed(_) | Event::RunTakenOver(_) | Event::RunPaused(_) => None,
            Event::RunCanceled(_) | Event::RunFinished(_) => None,
            Event::RunStalled(_) => None,
            Event::CycleBroken(event) => Some(&event.node),
            Event::BranchExited(event) => event.node.as_ref(),
        }
    }
}
