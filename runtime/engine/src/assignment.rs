//! One attempt's assignment (the attempt and what it needs to know about the run) and its result.

use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{Attempt, NodeId, RunStarted, StageFinished, StatusIngested};
use glovebox_record::path::ScopePath;
use glovebox_state::run_state::Branch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The input of one attempt. It owns all its values and borrows nothing from the run, so that a remote worker can get
/// the same input.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The attempt.
    pub attempt: Attempt,
    /// Sequence number of the attempt's `stage.started` event. It is the fencing token: a commit expects it to be unchanged.
    pub token: u64,
    /// The first event of the run.
    pub run: Arc<RunStarted>,
    /// Files outside of the write scope that people allowed the node to write.
    pub granted: Vec<ScopePath>,
    /// The state of the branch when the attempt was claimed.
    pub branch: Arc<Branch>,
    /// A flag that is set to ask the attempt to stop.
    pub stop: Arc<AtomicBool>,
    /// Steering messages for the agent of the attempt.
    pub steering: Steering,
    /// Counts what the host observes of the attempt.
    pub pulse: Pulse,
}

impl Assignment {
    /// Returns the id under which the plan and its grants list the stage.
    pub fn stage(&self) -> NodeId {
        self.attempt.task.stage()
    }
}

/// The result of one attempt, which the driver commits in one append.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// The decision about the status files of the stage. `None` for a stage that does not answer by a file.
    pub ingested: Option<Box<StatusIngested>>,
    /// The result of the stage.
    pub finished: StageFinished,
}

impl From<StageFinished> for AttemptResult {
    fn from(finished: StageFinished) -> Self {
        Self { ingested: None, finished }
    }
}
