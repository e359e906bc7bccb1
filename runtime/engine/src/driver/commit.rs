//! Storing events together with all that follows from them.
//!
//! Events are folded and decided on a copy of the state. The copy is kept only if the append was stored, so the state never holds
//! what the journal does not. When another driver appended first, its records are read and the decision is made again on them.

use super::claim::NextClaim;
use super::{CHUNK, Driver, RunError};
use crate::decide::decide;
use crate::event::{Event, Record, Subject, whole_milliseconds};
use crate::ports::{PortError, RunLog};
use crate::state::RunState;
use glovebox_pipeline::ir::Pipeline;
use jiff::Timestamp;

/// Events to append, and the heads they were decided on.
pub(super) struct Batch {
    pub(super) expect: Vec<(Subject, u64)>,
    pub(super) events: Vec<Event>,
    /// Stands in for the first event's cause: an event of the past whose consequences may be outstanding.
    pub(super) because: Option<Event>,
    /// Claims what the events make ready.
    pub(super) claim: Option<NextClaim>,
}

impl Batch {
    /// Events about the run itself.
    pub(super) fn of_run(state: &RunState, events: Vec<Event>) -> Self {
        Self { expect: vec![(Subject::Run, state.head)], events, because: None, claim: None }
    }
}

/// What became of a batch.
pub(super) struct Committed {
    /// Every record that is new to this driver, in order: those of others first.
    pub(super) records: Vec<Record>,
    /// False when there was nothing to append any more.
    pub(super) is_stored: bool,
}

impl<J: RunLog, S> Driver<'_, J, S> {
    /// Appends what `propose` makes of the state, and all that follows from it, in one piece. After a conflict the journal is read
    /// on and `propose` is asked again; it answers none when the batch makes no sense any more. A conflict with nothing new to
    /// read is an error.
    pub(super) async fn append(&mut self, propose: impl Fn(&RunState) -> Option<Batch>) -> Result<Committed, RunError> {
        let mut records = Vec::new();
        loop {
            let Some(Batch { expect, events, because, claim }) = propose(&self.state) else {
                return Ok(Committed { records, is_stored: false });
            };
            let at = whole_milliseconds(Timestamp::now());
            let (mut decided, mut events) = fold_and_decide(self.pipeline, self.state.clone(), (at, because), events);
            // Nothing follows from a claim.
            if let Some(claimed) = claim.and_then(|claim| claim.event(&decided, at)) {
                decided.fold(at, &claimed);
                events.push(claimed);
            }
            match self.journal.append(&self.run, &expect, at, &events).await {
                Ok(stored) => {
                    stored.iter().zip(&events).for_each(|(place, event)| decided.note_position(place.seq, event));
                    self.state = decided;
                    records.extend(stored.into_iter().zip(events).map(|(place, event)| place.record(at, event)));
                    return Ok(Committed { records, is_stored: true });
                }
                Err(PortError::Ambiguous(what)) => {
                    records.extend(self.find(&what, &events).await?);
                    return Ok(Committed { records, is_stored: true });
                }
                Err(conflict @ PortError::Conflict { .. }) => match self.catch_up().await? {
                    read if read.is_empty() => return Err(conflict.into()),
                    read => records.extend(read),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what others appended since.
    pub(super) async fn catch_up(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        read.iter().for_each(|record| self.state.apply(record));
        Ok(read)
    }

    /// "Unknown" is never "no": the events are in the journal now, or the append failed.
    async fn find(&mut self, what: &str, events: &[Event]) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        let is_there = |records: &[Record]| records.iter().zip(events).all(|(record, event)| record.event == *event);
        if !read.windows(events.len()).any(is_there) {
            return Err(PortError::Ambiguous(what.to_owned()).into());
        }
        read.iter().for_each(|record| self.state.apply(record));
        Ok(read)
    }

    async fn read_on(&self) -> Result<Vec<Record>, RunError> {
        let mut read: Vec<Record> = Vec::new();
        loop {
            let from = read.last().map_or(self.state.seq, |record| record.seq) + 1;
            let more = self.journal.read(&self.run, from, CHUNK).await?;
            if more.is_empty() {
                return Ok(read);
            }
            read.extend(more);
        }
    }
}

/// Folds events and all that follows from them.
fn fold_and_decide(
    pipeline: &Pipeline,
    mut state: RunState,
    (at, mut because): (Timestamp, Option<Event>),
    mut events: Vec<Event>,
) -> (RunState, Vec<Event>) {
    let mut folded = 0;
    while let Some(event) = events.get(folded) {
        state.fold(at, event);
        let cause = because.take();
        let follow = decide(pipeline, &state, cause.as_ref().unwrap_or(event));
        events.extend(follow);
        folded += 1;
    }
    (state, events)
}

#[cfg(test)]
mod tests;
