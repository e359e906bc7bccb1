//! A run that the stall watchdog ends. It has not failed at any stage: a resume continues it where it was.

use super::RunState;
use glovebox_journal::event::RunStalled;

impl RunState {
    /// Returns true if nothing new may start: the run has ended, or it ends as soon as no attempt is running.
    pub fn is_ending(&self) -> bool {
        self.verdict.is_some() || self.canceled.is_some() || self.stalled.is_some()
    }

    pub(super) fn stall(&mut self, stalled: &RunStalled) {
        if self.stopped.is_none() {
            self.stopped = Some(self.without_stop());
        }
        self.stalled = Some(stalled.failure());
    }
}
