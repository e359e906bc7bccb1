//! Storing events together with all that follows from them.
//!
//! Events are folded and decided on a copy of the state. Only what the journal has stored is applied to the run itself, so the run never
//! holds what the journal does not. When another driver appended first, its records are read and the decision is made again on them.
//! One append has a bound, since a loop of nodes without work may have no end: the rest is pending, and the loop comes back to it.

use super::claim::NextClaim;
use super::{CHUNK, Driver, Follow, RunError};
use crate::merge_check::MergeCheck;
use glovebox_journal::event::{Event, Record, StreamKey, whole_milliseconds};
use glovebox_journal::ports::{PortError, RunLog};
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::ir::Pipeline;
use glovebox_state::decide::{decide, next_step, parallel_step, resumes_at};
use glovebox_state::run_state::RunState;
use jiff::Timestamp;

/// About the most events of an append. Between two of them the run's time and requests to stop are looked at.
const EVENTS_MAX: usize = 256;

/// Events to append, and the heads they were decided on.
pub(super) struct Batch {
    pub(super) expect: Vec<(StreamKey, u64)>,
    pub(super) events: Vec<Event>,
    /// Events of the past whose consequences may be pending. They follow from the first event.
    pub(super) because: Vec<Event>,
    /// Claims what the events make ready.
    pub(super) claim: Option<NextClaim>,
}

impl Batch {
    /// Events about the run itself.
    pub(super) fn of_run(state: &RunState, events: &[Event]) -> Self {
        Self { expect: vec![(StreamKey::Run, state.head)], events: events.to_vec(), because: Vec::new(), claim: None }
    }
}

/// The result of appending a batch.
pub(super) struct Committed {
    /// Every record that is new to this driver, in order: those of others first.
    pub(super) records: Vec<Record>,
    /// False when there was nothing to append any more.
    pub(super) is_stored: bool,
}

impl<J: RunLog, S, F: Follow> Driver<'_, J, S, F> {
    /// Appends what `propose` makes of the state, and all that follows from it, in one piece. After a conflict the journal is read
    /// on and `propose` is asked again; it answers none when the batch makes no sense any more. A conflict with nothing new to
    /// read is an error.
    pub(super) async fn append(&mut self, propose: impl Fn(&RunState) -> Option<Batch>) -> Result<Committed, RunError> {
        let mut records = Vec::new();
        loop {
            let Some(Batch { mut expect, events, because, claim }) = propose(&self.replay.state) else {
                return Ok(Committed { records, is_stored: false });
            };
            let at = whole_milliseconds(Timestamp::now());
            let folded =
                fold_and_decide(self.pipeline, self.merge_check, self.replay.state.clone(), at, because, events);
            let Decided { state: decided, mut events, pending } = folded?;
            // Nothing follows from a claim.
            if let Some(claimed) = claim.and_then(|claim| claim.event(&decided, at, &events)) {
                events.push(claimed);
            }
            if events.is_empty() {
                return Ok(Committed { records, is_stored: false });
            }
            self.expect_branches(&mut expect, &events);
            match self.journal.append(&self.run, &expect, at, &events).await {
                Ok(stored) => {
                    self.pending.follow(&events, pending);
                    let from = records.len();
                    records.extend(stored.into_iter().zip(events).map(|(place, event)| place.record(at, event)));
                    self.replay_records(&records[from..]);
                    return Ok(Committed { records, is_stored: true });
                }
                Err(PortError::Ambiguous(what)) => {
                    let found = self.find(&what, &events).await?;
                    if found.len() == events.len() {
                        self.pending.follow(&events, pending);
                    }
                    records.extend(found);
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

    /// Goes on with what follows from an earlier append, if that was too much for it. Whoever appended since does it in its place.
    pub(super) async fn go_on(&mut self) -> Result<Vec<Record>, RunError> {
        let because = std::mem::take(&mut self.pending.0);
        if because.is_empty() {
            return Ok(Vec::new());
        }
        let seq = self.replay.state.seq;
        let committed = self.append(|state| {
            let batch = Batch { because: because.clone(), ..Batch::of_run(state, &[]) };
            (state.seq == seq).then_some(batch)
        });
        Ok(committed.await?.records)
    }

    /// Expects the head of every branch that the events move: what was decided for one branch of a parallel node may depend on the others.
    fn expect_branches(&self, expect: &mut Vec<(StreamKey, u64)>, events: &[Event]) {
        for event in events.iter().filter(|event| !matches!(event, Event::StageReady(_) | Event::StageStarted(_))) {
            if let stream @ StreamKey::Branch(_) = event.stream()
                && expect.iter().all(|(known, _)| *known != stream)
                && let StreamKey::Branch(id) = &stream
            {
                let head = self.replay.state.branch(id).head;
                expect.push((stream, head));
            }
        }
    }

    /// Reads what others appended since.
    pub(super) async fn catch_up(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        self.take_in(&read);
        Ok(read)
    }

    /// Whoever appended something does what follows from it.
    fn take_in(&mut self, read: &[Record]) {
        self.replay_records(read);
        if !read.is_empty() {
            self.pending.0.clear();
        }
    }

    /// Applies records that are stored, one by one, so that the follower sees the run after each.
    fn replay_records(&mut self, records: &[Record]) {
        for record in records {
            self.replay.apply(record);
            self.follower.record(record, &self.replay);
        }
    }

    /// "Unknown" is never "no": the events are in the journal now, or the append failed.
    async fn find(&mut self, what: &str, events: &[Event]) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        let is_there = |records: &[Record]| records.iter().zip(events).all(|(record, event)| record.event == *event);
        if !read.windows(events.len()).any(is_there) {
            return Err(PortError::Ambiguous(what.to_owned()).into());
        }
        self.take_in(&read);
        Ok(read)
    }

    async fn read_on(&self) -> Result<Vec<Record>, RunError> {
        let mut read: Vec<Record> = Vec::new();
        loop {
            let from = read.last().map_or(self.replay.state.seq, |record| record.seq) + 1;
            let more = self.journal.read(&self.run, from, CHUNK).await?;
            if more.is_empty() {
                return Ok(read);
            }
            read.extend(more);
        }
    }
}

/// Events with what follows from them, and the state that they lead to.
struct Decided {
    state: RunState,
    events: Vec<Event>,
    /// Those whose consequences were too many, in the order of the journal.
    pending: Vec<Event>,
}

/// Folds events and what follows from them: first what follows on a branch from its own events, then what follows from where all
/// branches stand.
fn fold_and_decide(
    pipeline: &Pipeline,
    check: Option<MergeCheck<'_>>,
    mut state: RunState,
    at: Timestamp,
    because: Vec<Event>,
    mut events: Vec<Event>,
) -> Result<Decided, RunError> {
    let (mut folded, mut because, mut pending) = (0, because.into_iter(), Vec::new());
    loop {
        while let Some(event) = events.get_mut(folded) {
            if let Event::RunFinished(ended) = event {
                ended.resumes_at = resumes_at(pipeline, &state, ended).cloned();
            }
            state.fold(at, event);
            folded += 1;
            // A branch that was moved since, by its parallel node, does not go on from where it was.
            pending.retain(|one: &Event| one.branch() != event.branch());
            let follow = follow(pipeline, check, &state, event)?;
            // Only the last event can wait: it is also the one that a resume finds.
            if events.len() >= EVENTS_MAX && folded == events.len() && !follow.is_empty() {
                pending.extend(because.by_ref().chain(events.last().cloned()));
            } else {
                events.extend(follow);
            }
        }
        if let Some(cause) = because.next() {
            events.extend(follow(pipeline, check, &state, &cause)?);
            continue;
        }
        // Other branches begin, whatever one of them waits for.
        let step = if pending.is_empty() { next_step(pipeline, &state) } else { parallel_step(pipeline, &state) };
        match step {
            Some(event) => events.push(event),
            None => return Ok(Decided { state, events, pending }),
        }
    }
}

/// The decisions that follow from an event, after the merge check.
fn follow(
    pipeline: &Pipeline,
    check: Option<MergeCheck<'_>>,
    state: &RunState,
    cause: &Event,
) -> Result<Vec<Event>, RunError> {
    let mut events = decide(pipeline, state, cause);
    for event in &mut events {
        if let (Event::FanInFinished(finished), Some(check)) = (event, check) {
            check.settle(state, finished).map_err(RunError::Workspace)?;
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests;
