//! Events whose decisions may be missing from a journal: the process may have died before it appended them.
//!
//! Only the last event of each branch can be one, because what follows from it is decided for that branch alone. What follows from the
//! positions of all branches needs no event.

use super::{RunState, was_cut};
use glovebox_journal::event::{BranchId, Event, Record};
use glovebox_journal::rewind::{self, Fold};
use std::collections::BTreeMap;

/// Events whose decisions may be missing, in the order of the journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingDecisions(pub Vec<Event>);

impl PendingDecisions {
    /// Updates the list after an append of `events`, whose decisions were appended with them except those of `rest`.
    pub fn follow(&mut self, events: &[Event], rest: Vec<Event>) {
        let has_moved =
            |one: &Event| events.iter().any(|event| event.branch().is_some_and(|id| Some(id) == one.branch()));
        self.0.retain(|one| !has_moved(one));
        self.0.extend(rest);
    }
}

/// Folds the records of a run into its state and the decisions that may be missing; none for a run that was not started.
pub fn resume_state(records: &[Record]) -> Option<(RunState, PendingDecisions)> {
    let mut fold = ResumeState::default();
    rewind::fold(records, &mut fold);
    let ResumeState { state, last } = fold;
    state.run.as_ref()?;
    Some((state, last.pending()))
}

/// The fold of a journal that is to be resumed.
#[derive(Default)]
struct ResumeState {
    state: RunState,
    last: LastEvents,
}

impl Fold for ResumeState {
    type Past = RunState;

    fn apply(&mut self, record: &Record) {
        self.state.apply(record);
        self.last.note(record.clone(), &self.state);
    }

    fn go_back(&mut self, past: RunState) {
        self.state.go_back(&past);
    }
}

/// The last event of each branch, beside a fold of the same records.
#[derive(Debug, Default)]
pub struct LastEvents(BTreeMap<BranchId, (u64, Event)>);

impl LastEvents {
    /// Notes a record, given the run after it.
    pub fn note(&mut self, record: Record, state: &RunState) {
        let Self(last) = self;
        if matches!(&record.event, Event::RunResumed(resumed) if resumed.from.is_some()) {
            // Only the node at which the run started again counts.
            last.clear();
        } else if is_of_a_stop(state, &record.event) {
            return;
        }
        // Nothing follows on a branch from its end: its parallel node goes on.
        if let Event::BranchFinished(finished) = &record.event {
            last.remove(&finished.branch);
            return;
        }
        let branch = record.event.branch().cloned().unwrap_or_else(BranchId::main);
        last.insert(branch, (record.seq, record.event));
    }

    /// The decisions that may be missing after the last record.
    pub fn pending(self) -> PendingDecisions {
        let mut last: Vec<(u64, Event)> = self.0.into_values().collect();
        last.sort_by_key(|(seq, _)| *seq);
        PendingDecisions(last.into_iter().map(|(_, event)| event).collect())
    }
}

/// True for an event that has no consequences once the run is resumed.
fn is_of_a_stop(state: &RunState, event: &Event) -> bool {
    match event {
        Event::RunResumed(_) | Event::RunPaused(_) | Event::CacheFilled(_) | Event::StageSteered(_) => true,
        Event::RunCanceled(_) | Event::RunFinished(_) => state.stopped.is_some(),
        Event::StageFinished(finished) => state.stopped.is_some() && was_cut(finished),
        _ => false,
    }
}
