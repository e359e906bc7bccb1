//! What of a journal may be outstanding: a process may have died between an event and what follows from it.
//!
//! It is the last event of each branch, since what follows from it is decided for that branch alone. What follows from where all
//! branches stand needs no event.

use super::RunError;
use crate::event::{BranchId, Event, Record};
use crate::rewind;
use crate::state::{RunState, was_cut};
use std::collections::BTreeMap;

/// Events whose consequences may be outstanding, in the order of the journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outstanding(pub Vec<Event>);

impl Outstanding {
    /// After an append of these events, whose consequences are in it but for those of `rest`.
    pub(super) fn follow(&mut self, events: &[Event], rest: Vec<Event>) {
        let has_moved =
            |one: &Event| events.iter().any(|event| event.branch().is_some_and(|id| Some(id) == one.branch()));
        self.0.retain(|one| !has_moved(one));
        self.0.extend(rest);
    }
}

/// Folds the records of a run: its state, and what may be outstanding.
pub fn replay(records: &[Record]) -> Result<(RunState, Outstanding), RunError> {
    let mut replay = Replay::default();
    for (before, record) in rewind::each(records) {
        before.iter().for_each(|before| replay.state.go_back(&RunState::after(before.iter().copied())));
        replay.take(record.clone());
    }
    replay.finish()
}

/// A run that is read back: its state, and what may be outstanding.
#[derive(Debug, Default)]
pub struct Replay {
    state: RunState,
    last: BTreeMap<BranchId, Record>,
}

impl Replay {
    /// Takes in the next record.
    pub fn take(&mut self, record: Record) {
        let Self { state, last } = self;
        state.apply(&record);
        if matches!(&record.event, Event::RunResumed(resumed) if resumed.from.is_some()) {
            // Only the node that the run began again at counts.
            last.clear();
        } else if is_of_a_stop(state, &record.event) {
            return;
        }
        // Nothing follows on a branch from its end: its fork goes on.
        if let Event::BranchFinished(finished) = &record.event {
            last.remove(&finished.branch);
            return;
        }
        let branch = record.event.branch().cloned().unwrap_or_else(BranchId::main);
        last.insert(branch, record);
    }

    /// What they came to, when every record was taken in.
    pub fn finish(self) -> Result<(RunState, Outstanding), RunError> {
        let Self { state, last } = self;
        if state.run.is_none() {
            return Err(RunError::NotStarted);
        }
        let mut last: Vec<Record> = last.into_values().collect();
        last.sort_by_key(|record| record.seq);
        Ok((state, Outstanding(last.into_iter().map(|record| record.event).collect())))
    }
}

/// True for an event that has no consequences once the run is taken up again.
fn is_of_a_stop(state: &RunState, event: &Event) -> bool {
    match event {
        Event::RunResumed(_) | Event::RunPaused(_) | Event::CacheFilled(_) | Event::StageSteered(_) => true,
        Event::RunCanceled(_) | Event::RunFinished(_) => state.stopped.is_some(),
        Event::StageFinished(finished) => state.stopped.is_some() && was_cut(finished),
        _ => false,
    }
}
