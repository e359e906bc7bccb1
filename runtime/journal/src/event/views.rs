//! Typed views of an event, for callers that search for events of one kind.

use super::{
    AttemptId, BranchId, BranchStarted, Event, FileChange, QuestionAnswered, QuestionAsked, RunFinished, RunResumed,
    RunStarted, RunTakenOver, StageFinished, StagePassed, StageReady, StageStarted, StageSteered,
};

impl Event {
    /// Returns the event if it is the start of the run.
    pub fn run_started(&self) -> Option<&RunStarted> {
        if let Self::RunStarted(started) = self { Some(started) } else { None }
    }

    /// Returns the event if it is a resume.
    pub fn run_resumed(&self) -> Option<&RunResumed> {
        if let Self::RunResumed(resumed) = self { Some(resumed) } else { None }
    }

    /// Returns the event if another driver took the run over.
    pub fn run_taken_over(&self) -> Option<&RunTakenOver> {
        if let Self::RunTakenOver(taken) = self { Some(taken) } else { None }
    }

    /// Returns the event if it is the end of the run.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        if let Self::RunFinished(finished) = self { Some(finished) } else { None }
    }

    /// Returns the event if it made an attempt ready.
    pub fn stage_ready(&self) -> Option<&StageReady> {
        if let Self::StageReady(ready) = self { Some(ready) } else { None }
    }

    /// Returns the event if it is the claim of an attempt.
    pub fn stage_started(&self) -> Option<&StageStarted> {
        if let Self::StageStarted(started) = self { Some(started) } else { None }
    }

    /// Returns the event if it is the end of an attempt.
    pub fn stage_finished(&self) -> Option<&StageFinished> {
        if let Self::StageFinished(finished) = self { Some(finished) } else { None }
    }

    /// Returns the id of the attempt that ended with this event.
    pub fn ended_attempt(&self) -> Option<&AttemptId> {
        match self {
            Self::StageFinished(finished) => Some(&finished.attempt.id),
            Self::StageHeld(held) => Some(&held.attempt.id),
            _ => None,
        }
    }

    /// Returns the event if it is the visit of a control node.
    pub fn stage_passed(&self) -> Option<&StagePassed> {
        if let Self::StagePassed(passed) = self { Some(passed) } else { None }
    }

    /// Returns the event if it is a steering message to an attempt.
    pub fn stage_steered(&self) -> Option<&StageSteered> {
        if let Self::StageSteered(steered) = self { Some(steered) } else { None }
    }

    /// Returns the event if it is the start of a branch.
    pub fn branch_started(&self) -> Option<&BranchStarted> {
        if let Self::BranchStarted(started) = self { Some(started) } else { None }
    }

    /// Returns the event if it is a question.
    pub fn question_asked(&self) -> Option<&QuestionAsked> {
        if let Self::QuestionAsked(asked) = self { Some(asked) } else { None }
    }

    /// Returns the event if it is an answer.
    pub fn question_answered(&self) -> Option<&QuestionAnswered> {
        if let Self::QuestionAnswered(answered) = self { Some(answered) } else { None }
    }

    /// Returns the branch and the changes that the event commits to the workspace of that branch, if events of this
    /// kind can commit changes.
    pub fn committed(&self) -> Option<(&BranchId, &[FileChange])> {
        match self {
            Self::StageFinished(finished) => Some((&finished.attempt.task.branch, &finished.files.changes)),
            Self::FanInFinished(finished) => Some((&finished.branch, &finished.changes)),
            Self::RecoveryDecided(decided) => Some((decided.branch(), &decided.changes)),
            _ => None,
        }
    }
}
