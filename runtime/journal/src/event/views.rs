//! Typed views of an event, for those who look for one kind of event among many.

use super::{
    BranchId, BranchStarted, Event, FileChange, QuestionAnswered, QuestionAsked, RunFinished, RunResumed, RunStarted,
    StageFinished, StagePassed, StageReady, StageStarted, StageSteered,
};

impl Event {
    /// The start of the run, if it is that.
    pub fn run_started(&self) -> Option<&RunStarted> {
        if let Self::RunStarted(started) = self { Some(started) } else { None }
    }

    /// A resume, if it is one.
    pub fn run_resumed(&self) -> Option<&RunResumed> {
        if let Self::RunResumed(resumed) = self { Some(resumed) } else { None }
    }

    /// The end of the run, if it is that.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        if let Self::RunFinished(finished) = self { Some(finished) } else { None }
    }

    /// An attempt that was made ready, if it is one.
    pub fn stage_ready(&self) -> Option<&StageReady> {
        if let Self::StageReady(ready) = self { Some(ready) } else { None }
    }

    /// The claim of an attempt, if it is one.
    pub fn stage_started(&self) -> Option<&StageStarted> {
        if let Self::StageStarted(started) = self { Some(started) } else { None }
    }

    /// The end of an attempt, if it is one.
    pub fn stage_finished(&self) -> Option<&StageFinished> {
        if let Self::StageFinished(finished) = self { Some(finished) } else { None }
    }

    /// A node that the engine passed by itself, if it is one.
    pub fn stage_passed(&self) -> Option<&StagePassed> {
        if let Self::StagePassed(passed) = self { Some(passed) } else { None }
    }

    /// A steering message that an attempt got, if it is one.
    pub fn stage_steered(&self) -> Option<&StageSteered> {
        if let Self::StageSteered(steered) = self { Some(steered) } else { None }
    }

    /// The start of a branch, if it is one.
    pub fn branch_started(&self) -> Option<&BranchStarted> {
        if let Self::BranchStarted(started) = self { Some(started) } else { None }
    }

    /// A question, if it is one.
    pub fn question_asked(&self) -> Option<&QuestionAsked> {
        if let Self::QuestionAsked(asked) = self { Some(asked) } else { None }
    }

    /// An answer, if it is one.
    pub fn question_answered(&self) -> Option<&QuestionAnswered> {
        if let Self::QuestionAnswered(answered) = self { Some(answered) } else { None }
    }

    /// The changes that it commits to the workspace of a branch, if it can commit any.
    pub fn committed(&self) -> Option<(&BranchId, &[FileChange])> {
        match self {
            Self::StageFinished(finished) => Some((&finished.attempt.task.branch, &finished.files.changes)),
            Self::FanInFinished(finished) => Some((&finished.branch, &finished.changes)),
            Self::RecoveryDecided(decided) => Some((decided.branch(), &decided.changes)),
            _ => None,
        }
    }
}
