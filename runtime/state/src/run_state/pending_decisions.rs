//! Events whose follow-up decisions may be missing from a journal, because the process may have died before it appended
//! them.
//!
//! Only the last event of a branch can be such an event, because decisions that follow from an event are about its
//! branch alone. A decision that depends on the positions of all branches can be made again at any time, so it needs no
//! such event.

use super::{RunState, was_cut};
use glovebox_journal::event::{BranchId, Event, Record};
use glovebox_journal::rewind::{self, Fold};
use std::collections::BTreeMap;

/// Events whose follow-up decisions may be missing, in the order of the journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingDecisions(pub Vec<Event>);

impl PendingDecisions {
    /// Updates the list after an append of `events`. The decisions that follow from `events` were appended too, except
    /// the decisions that follow from `rest`.
    pub fn follow(&mut self, events: &[Event], rest: Vec<Event>) {
        let has_moved =
            |one: &Event| events.iter().any(|event| event.branch().is_some_and(|id| Some(id) == one.branch()));
        self.0.retain(|one| !has_moved(one));
        self.0.extend(rest);
    }
}

/// Folds the records of a run into its state and the decisions that may be missing. `None` for a run that was not
/// started.
pub fn resume_state(records: &[Record]) -> Option<(RunState, PendingDecisions)> {
    let mut fold = ResumeState::default();
    rewind::fold(records, &mut fold);
    let ResumeState { state, last } = fold;
    state.run.as_ref()?;
    Some((state, last.pending()))
}

/// The fold of the journal of a run that is resumed.
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

/// The last event of each branch. It is updated together with a fold of the same records.
#[derive(Debug, Clone, Default)]
pub struct LastEvents(BTreeMap<BranchId, (u64, Event)>);

impl LastEvents {
    /// Adds a record, given the state of the run after the record.
    pub fn note(&mut self, record: Record, state: &RunState) {
        let Self(last) = self;
        if matches!(&record.event, Event::RunResumed(resumed) if resumed.from.is_some()) {
            // Earlier events have no follow-up decisions, because the run restarts at another node.
            last.clear();
        } else if is_of_a_stop(state, &record.event) {
            return;
        }
        // No decision about a branch follows from its end: its parallel node continues.
        if let Event::BranchFinished(finished) = &record.event {
            last.remove(&finished.branch);
            return;
        }
        let branch = record.event.branch().cloned().unwrap_or_else(BranchId::main);
        last.insert(branch, (record.seq, record.event));
    }

    /// Returns the events whose follow-up decisions may be missing after the last record.
    pub fn pending(self) -> PendingDecisions {
        let mut last: Vec<(u64, Event)> = self.0.into_values().collect();
        last.sort_by_key(|(seq, _)| *seq);
        PendingDecisions(last.into_iter().map(|(_, event)| event).collect())
    }
}

/// Returns true for an event from which no decision follows after the run is resumed.
fn is_of_a_stop(state: &RunState, event: &Event) -> bool {
    match event {
        Event::RunResumed(_) | Event::RunPaused(_) | Event::CacheFilled(_) | Event::StageSteered(_) => true,
        Event::StatusIngested(_) | Event::RunTakenOver(_) => true,
        Event::RunCanceled(_) | Event::RunFinished(_) | Event::RunStalled(_) => state.stopped.is_some(),
        Event::StageFinished(finished) => state.stopped.is_some() && was_cut(finished),
        // Only a run that a person canceled ends its branches step by step.
        Event::BranchExited(_) => state.stopped.is_some() || state.canceled.is_none(),
        Event::BranchFinished(_) => state.stopped.is_some() && state.canceled.is_some(),
        _ => false,
    }
}
