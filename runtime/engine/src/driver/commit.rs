//! Appends events together with everything that follows from them.
//!
//! Events are folded and decided on a copy of the state. Only events that the journal has stored are applied to the run
//! itself, so the run never contains more than the journal. If another driver appended first, its records are read and
//! the decision is repeated with them. The number of events in one append is limited, because a loop of nodes without
//! work may never end. The remaining decisions are pending, and the driver's loop makes them later.

use super::claim::NextClaim;
use super::{CHUNK, Driver, Follow, RunError};
use crate::edge_check::EdgeCheck;
use crate::merge_check::MergeCheck;
use crate::project::FINAL_FILE;
use glovebox_journal::event::{Event, Record, StreamKey, whole_milliseconds};
use glovebox_journal::ports::{PortError, RunLog};
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::ir::Pipeline;
use glovebox_state::decide::{decide, next_step, parallel_step, resumes_at};
use glovebox_state::run_state::RunState;
use jiff::Timestamp;

/// Approximate maximum number of events in an append. Between two appends the driver checks the run's time and requests to stop.
const EVENTS_MAX: usize = 256;

/// Events to append, and the stream heads on which the decisions are based.
pub(super) struct Batch {
    pub(super) expect: Vec<(StreamKey, u64)>,
    pub(super) events: Vec<Event>,
    /// Earlier events whose follow-up decisions may be missing. The decisions are made after the first new event.
    pub(super) because: Vec<Event>,
    /// Claims a task that the events make ready. `None` if nothing is to be claimed.
    pub(super) claim: Option<NextClaim>,
}

impl Batch {
    /// Creates a batch of events about the run itself.
    pub(super) fn of_run(state: &RunState, events: &[Event]) -> Self {
        Self { expect: vec![(StreamKey::Run, state.head)], events: events.to_vec(), because: Vec::new(), claim: None }
    }
}

/// The result of appending a batch.
pub(super) struct Committed {
    /// All records that are new to this driver, in order: records of other drivers first.
    pub(super) records: Vec<Record>,
    /// False if there was nothing left to append.
    pub(super) is_stored: bool,
}

impl<J: RunLog, S, F: Follow> Driver<'_, J, S, F> {
    /// Appends the batch that `propose` creates from the state, and everything that follows from it, atomically. After
    /// a conflict the new records are read and `propose` is called again. `propose` returns `None` if the batch no
    /// longer makes sense. A conflict without new records is an error.
    pub(super) async fn append(&mut self, propose: impl Fn(&RunState) -> Option<Batch>) -> Result<Committed, RunError> {
        let mut records = Vec::new();
        loop {
            self.clock.advance_to(self.replay.state.at);
            let Some(batch) = propose(&self.replay.state) else {
                return Ok(Committed { records, is_stored: false });
            };
            match self.try_append(batch).await {
                Ok(stored) => {
                    let is_stored = !stored.is_empty();
                    records.extend(stored);
                    return Ok(Committed { records, is_stored });
                }
                Err(RunError::Port(conflict @ PortError::Conflict { .. })) => match self.catch_up().await? {
                    read if read.is_empty() => return Err(conflict.into()),
                    read => records.extend(read),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends the batch and everything that follows from it, without reading on after a conflict. Returns the records, which
    /// are applied: those of the batch, and records of other drivers that are between. Without events, nothing is appended.
    pub(super) async fn try_append(&mut self, batch: Batch) -> Result<Vec<Record>, RunError> {
        let Batch { mut expect, events, because, claim } = batch;
        let at = whole_milliseconds(self.clock.now());
        let checks = DecisionChecks { merge: self.merge_check, edge: self.edge_check };
        let folded = fold_and_decide(self.pipeline, checks, self.replay.state.clone(), at, because, events);
        let Decided { state: decided, mut events, pending } = folded?;
        // No decision follows from a claim.
        if let Some(claimed) = claim.and_then(|claim| claim.event(&decided, at, &events)) {
            events.push(claimed);
        }
        if events.is_empty() {
            return Ok(Vec::new());
        }
        self.expect_heads(&mut expect, &events);
        let found = match self.journal.append(&self.run, &expect, at, &events).await {
            Ok(stored) if stored.first().is_some_and(|first| first.seq == self.replay.state.seq + 1) => {
                self.pending.follow(&events, pending);
                let stored = stored.into_iter().zip(events);
                let records: Vec<Record> = stored.map(|(place, event)| place.record(at, event)).collect();
                self.replay_records(&records);
                return Ok(records);
            }
            // Another driver has appended records on which the decisions do not depend. They come first.
            Ok(_) => self.find("an append", &events).await?,
            Err(PortError::Ambiguous(what)) => self.find(&what, &events).await?,
            Err(error) => return Err(error.into()),
        };
        if found.len() == events.len() {
            self.pending.follow(&events, pending);
        }
        Ok(found)
    }

    /// Continues with the pending decisions of an earlier append. If another driver has appended since, that driver continues
    /// with them instead.
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

    /// Expects the head of the run, so that a driver that was replaced appends nothing. Also expects the head of every branch
    /// that the events change, because a decision for one branch of a parallel node may depend on the others.
    fn expect_heads(&self, expect: &mut Vec<(StreamKey, u64)>, events: &[Event]) {
        if expect.iter().all(|(known, _)| *known != StreamKey::Run) {
            expect.push((StreamKey::Run, self.replay.state.head));
        }
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

    /// Reads the records that other drivers have appended since. It is an error if one of them took the run over.
    pub(super) async fn catch_up(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        self.take_in(&read)?;
        Ok(read)
    }

    /// Applies records of other drivers. A driver that appends also makes the follow-up decisions, so the pending ones are dropped.
    fn take_in(&mut self, read: &[Record]) -> Result<(), RunError> {
        self.refuse_takeover(read)?;
        self.replay_records(read);
        if !read.is_empty() {
            self.pending.0.clear();
        }
        Ok(())
    }

    /// Applies stored records one by one, so that the follower sees the run after each record.
    pub(super) fn replay_records(&mut self, records: &[Record]) {
        for record in records {
            self.replay.apply(record);
            self.follower.record(record, &self.replay);
        }
    }

    /// Handles an append with an unknown result: it succeeded if the journal contains the events. Another driver may append
    /// equal events, but only after it took the run over, which is an error here.
    async fn find(&mut self, what: &str, events: &[Event]) -> Result<Vec<Record>, RunError> {
        let read = self.read_on().await?;
        self.refuse_takeover(&read)?;
        let is_there = |records: &[Record]| records.iter().zip(events).all(|(record, event)| record.event == *event);
        if !read.windows(events.len()).any(is_there) {
            return Err(PortError::Ambiguous(what.to_owned()).into());
        }
        self.take_in(&read)?;
        Ok(read)
    }

    pub(super) async fn read_on(&self) -> Result<Vec<Record>, RunError> {
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

/// Checks that a decision must pass before it is appended.
#[derive(Clone, Copy, Default)]
struct DecisionChecks<'a> {
    merge: Option<MergeCheck<'a>>,
    edge: Option<EdgeCheck<'a>>,
}

/// Events with everything that follows from them, and the resulting state.
struct Decided {
    state: RunState,
    events: Vec<Event>,
    /// Events whose follow-up decisions did not fit into the append, in the order of the journal.
    pending: Vec<Event>,
}

/// Folds events and everything that follows from them: first the decisions on a branch from its own events, then the
/// decisions that depend on all branches.
fn fold_and_decide(
    pipeline: &Pipeline,
    checks: DecisionChecks<'_>,
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
                ended.artifact = Some(FINAL_FILE.to_owned());
            }
            state.fold(at, event);
            folded += 1;
            // If a parallel node has changed a branch since, earlier events of the branch have no follow-up decisions any more.
            pending.retain(|one: &Event| one.branch() != event.branch());
            let follow = follow(pipeline, checks, &state, event)?;
            // Only the last event can be pending, because a resume also finds only the last event.
            if events.len() >= EVENTS_MAX && folded == events.len() && !follow.is_empty() {
                pending.extend(because.by_ref().chain(events.last().cloned()));
            } else {
                events.extend(follow);
            }
        }
        if let Some(cause) = because.next() {
            events.extend(follow(pipeline, checks, &state, &cause)?);
            continue;
        }
        // Other branches begin even if a decision of one branch is pending.
        let step = match pending.is_empty() {
            true => next_step(pipeline, &state),
            false => parallel_step(pipeline, &state).into_iter().collect(),
        };
        if step.is_empty() {
            return Ok(Decided { state, events, pending });
        }
        events.extend(step);
    }
}

/// Returns the decisions that follow from an event, after the checks.
fn follow(
    pipeline: &Pipeline,
    checks: DecisionChecks<'_>,
    state: &RunState,
    cause: &Event,
) -> Result<Vec<Event>, RunError> {
    let mut events = decide(pipeline, state, cause);
    for event in &mut events {
        if let (Event::FanInFinished(finished), Some(check)) = (event, checks.merge) {
            check.settle(state, finished).map_err(RunError::Workspace)?;
        }
    }
    Ok(match checks.edge {
        Some(check) => check.settle(pipeline, state, events),
        None => events,
    })
}

#[cfg(test)]
mod tests;
