//! The fold that every reader of a whole journal shares: the state and the summary of a run at each of its records.

use super::RunSummary;
use crate::run_state::RunState;
use glovebox_journal::event::Record;
use glovebox_journal::rewind::Fold;

/// State and summary of a run after the records so far.
#[derive(Debug, Default)]
pub struct Replay {
    /// The inputs of a decision.
    pub state: RunState,
    /// The result of the run.
    pub summary: RunSummary,
}

impl Fold for Replay {
    type Past = Self;

    fn apply(&mut self, record: &Record) {
        self.state.apply(record);
        self.summary.apply(record);
    }

    fn go_back(&mut self, past: Self) {
        self.state.go_back(&past.state);
        self.summary.go_back(past.summary);
    }
}
