//! What one attempt works on.

use glovebox_host::llm::Steering;
use glovebox_journal::event::{Attempt, NodeId, RunStarted};
use glovebox_record::path::ScopePath;
use glovebox_state::run_state::Branch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// It owns everything, so an attempt borrows nothing of the run: a remote worker gets the same.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The attempt.
    pub attempt: Attempt,
    /// Sequence number of its `stage.started`: the fencing token that its commit must find in place.
    pub token: u64,
    /// How the run was started.
    pub run: Arc<RunStarted>,
    /// The paths that people allowed its node to write beside its write scope.
    pub granted: Vec<ScopePath>,
    /// The branch as it was when the attempt was claimed.
    pub branch: Arc<Branch>,
    /// Set to ask the attempt to stop.
    pub stop: Arc<AtomicBool>,
    /// Steering messages for its agent.
    pub steering: Steering,
}

impl Assignment {
    /// The stage that plan and grants know.
    pub fn stage(&self) -> NodeId {
        self.attempt.task.stage()
    }
}
