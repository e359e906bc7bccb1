//! The stages of a run that wait for a quota at a provider when the run is resumed.

use glovebox_journal::event::NodeId;
use glovebox_state::run_state::RunState;
use jiff::Timestamp;
use std::sync::Arc;

/// A stage that waits for a quota.
pub struct QuotaAtResume {
    /// The stage.
    pub node: NodeId,
    /// The provider.
    pub provider: Arc<str>,
    /// The time at which the quota resumes, as the provider named it.
    pub resume_at: Timestamp,
    /// True if the stage does not wait for that time, because the run was paused and a person resumes it.
    pub is_early: bool,
}

impl QuotaAtResume {
    /// Returns the stages whose quota resumes after `now`.
    pub(super) fn find(state: &RunState, now: Timestamp) -> Vec<Self> {
        let waiting = state.stopped.as_deref().unwrap_or(state).waiting_for_quota();
        let of_stage = waiting.filter(|(_, wait)| wait.resume_at > now).map(|(open, wait)| Self {
            node: open.task.node.clone(),
            provider: Arc::clone(&wait.provider),
            resume_at: wait.resume_at,
            is_early: state.paused,
        });
        of_stage.collect()
    }
}
