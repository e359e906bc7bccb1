//! The loop that drives a run: take what is ready, claim it, have it executed, commit it with everything that follows.
//!
//! It owns the clock and the waiting, and decides nothing: [`crate::decide`] does. Memory does not grow with the run, records
//! are folded and let go. Each append expects the heads it was decided on, so the result of an attempt that was overtaken is dropped.

mod attempt;
mod claim;
mod commit;
#[cfg(test)]
mod tests;

use attempt::Ended;
pub use attempt::{Assignment, GRACE};
use commit::{Batch, Committed};

use crate::decide::{failed, finalize_attempt};
use crate::disk::DiskGauge;
use crate::event::{
    Event, NodeId, Record, RunCanceled, RunId, RunResumed, StageFinished, StageReady, Subject, Verdict,
};
use crate::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals};
use crate::state::{OpenTask, RunState, was_cut};
use futures_util::stream::{FuturesUnordered, StreamExt};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Failure;
use jiff::Timestamp;
use std::error::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a delivery is held before it may be handed out again; it is extended at a third of that.
const LEASE_MS: u64 = 30_000;
/// Records read at a time.
const CHUNK: usize = 256;

/// Why a run could not go on. It is not lost: a later resume continues it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A store failed, or another driver was faster.
    #[error(transparent)]
    Port(#[from] PortError),
    /// An attempt could not be made: a fault of the runtime, not of the stage.
    #[error("could not execute node `{node}`")]
    Execute {
        /// The node.
        node: NodeId,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The journal is ahead of the run's files; a resume writes them.
    #[error("could not write the run's files")]
    Project(#[source] Box<dyn Error + Send + Sync>),
    /// The workspace could not be made or brought up to date.
    #[error("could not restore the workspace from the journal")]
    Workspace(#[source] Box<dyn Error + Send + Sync>),
    /// The hold-outs could not be sealed, or are not those the run began with.
    #[error("could not keep the hold-outs")]
    Holdouts(#[source] Box<dyn Error + Send + Sync>),
    /// The run is over; there is nothing to resume.
    #[error("run `{run_id}` has ended ({verdict}), expected one that failed or was interrupted")]
    Ended {
        /// Which run.
        run_id: RunId,
        /// How it ended.
        verdict: Verdict,
    },
    /// The run has used up a limit that the resume does not raise.
    #[error("{}", .0.reason)]
    LimitReached(Failure),
    /// Nothing is ready and nothing is under way.
    #[error("the run is at node `{0}` and nothing is ready, expected an attempt or an end")]
    Stalled(NodeId),
    /// The journal has no `run.started`.
    #[error("the journal is empty, expected a run that was started")]
    NotStarted,
}

/// A fault of the runtime: an attempt could not be made, or records could not be written to files.
type Fault = Box<dyn Error + Send + Sync>;

/// A run in the hands of its driver.
pub struct Driver<'a, J, S> {
    /// The run.
    pub run: RunId,
    /// The checked pipeline.
    pub pipeline: &'a Pipeline,
    /// Journal and queue.
    pub journal: &'a J,
    /// Where a request to stop arrives.
    pub signals: &'a S,
    /// Who drives, for the record.
    pub worker: String,
    /// How long an attempt may take to end after it was asked to; [`GRACE`] unless there is a reason.
    pub grace: Duration,
    /// What the run keeps on disk; none where that has no bound.
    pub disk: Option<&'a DiskGauge>,
    /// What is known of the run.
    pub state: RunState,
}

/// What the loop waited for.
enum Arrival {
    /// An attempt ended.
    Ended(Box<Ended>),
    /// Somebody asks the run to stop.
    Cancel(String),
    /// The run's time is over, and this is how it ends.
    Deadline(Box<Event>),
    /// An attempt may start, or the queue has none.
    Ready(Option<Delivery>),
}

impl<J: RunLog + ClaimQueue, S: Signals> Driver<'_, J, S> {
    /// Drives the run to its end. `execute` makes one attempt and answers with what is to be committed. `project` gets the records of
    /// every append, after they are durable, with the state they led to.
    pub async fn drive<E, P>(&mut self, execute: E, mut project: P) -> Result<(), RunError>
    where
        E: AsyncFn(Assignment) -> Result<StageFinished, Fault>,
        P: FnMut(&[Record], &RunState) -> Result<(), Fault>,
    {
        let mut under_way = FuturesUnordered::new();
        while self.state.verdict.is_none() {
            let is_free = under_way.is_empty();
            let arrival = tokio::select! {
                biased;
                Some(ended) = under_way.next() => Arrival::Ended(Box::new(ended?)),
                by = self.signals.canceled(), if is_free && self.state.canceled.is_none() => Arrival::Cancel(by),
                end = self.deadline(), if is_free => Arrival::Deadline(Box::new(end)),
                ready = self.next_ready(), if is_free => Arrival::Ready(ready?),
            };
            let records = match arrival {
                Arrival::Ended(ended) => {
                    let (next, records) = self.commit(*ended).await?;
                    under_way.extend(next.map(|(one, delivery)| self.attempt(one, delivery, &execute)));
                    records
                }
                Arrival::Cancel(by) => self.cancel(RunCanceled { by }).await?,
                Arrival::Deadline(end) => self.end(*end).await?,
                Arrival::Ready(None) => self.look_for_work().await?,
                Arrival::Ready(Some(delivery)) => match self.out_of_disk()? {
                    Some(end) => self.end(end).await?,
                    None => {
                        let (assignment, records) = self.claim(&delivery).await?;
                        under_way.extend(assignment.map(|one| self.attempt(one, delivery, &execute)));
                        records
                    }
                },
            };
            project(&records, &self.state).map_err(RunError::Project)?;
        }
        Ok(())
    }

    /// Waits for an attempt that may start. None when the queue has nothing, not even a timer.
    async fn next_ready(&self) -> Result<Option<Delivery>, RunError> {
        loop {
            match self.journal.next(&self.run, Timestamp::now(), LEASE_MS).await? {
                Next::Due(delivery) => return Ok(Some(delivery)),
                Next::At(due) => {
                    let wait = Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO);
                    tokio::time::sleep(wait).await;
                }
                Next::Empty => return Ok(None),
            }
        }
    }

    /// With nothing ready and nothing under way, another driver may have moved the run. If it did not, the run cannot go on.
    async fn look_for_work(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.catch_up().await?;
        match read.is_empty() {
            true => {
                Err(RunError::Stalled(self.state.main().node.clone().unwrap_or_else(|| self.pipeline.start.clone())))
            }
            false => Ok(read),
        }
    }

    /// Commits an attempt and everything that follows, expecting its token, with the claim of the next attempt. Nothing is stored of an
    /// attempt that was overtaken: a newer claim has moved the task's head, or another driver abandoned the attempt.
    async fn commit(&mut self, ended: Ended) -> Result<(Option<(Assignment, Delivery)>, Vec<Record>), RunError> {
        let canceled =
            if self.is_asked_to_stop() { Some(RunCanceled { by: self.signals.canceled().await }) } else { None };
        let Ended { delivery, token, id, finished, stop } = ended;
        let finished = self.finished(&delivery.task.branch, finished, stop);
        let (pipeline, task) = (self.pipeline, &delivery.task);
        let claim = Some(self.next_claim(&task.branch)).filter(|_| canceled.is_none());
        let claim = if self.has_room(&finished)? { claim } else { None };
        let committed = self.append(|state| {
            let branch = state.branch(&task.branch);
            branch.open().filter(|open| open.task == *task && open.attempt_id.as_ref() == Some(&id))?;
            let canceled = canceled.as_ref().filter(|_| state.canceled.is_none());
            // A stop by a signal decides nothing: whether another attempt follows is written as if the run went on.
            let is_final = canceled.is_some_and(|canceled| !canceled.is_stop());
            let mut finished = finished.clone();
            finalize_attempt(pipeline, state, is_final, &mut finished);
            let canceled = canceled.cloned().map(Event::RunCanceled);
            let expect = vec![
                (Subject::Branch(task.branch.clone()), branch.head),
                (Subject::Task(task.clone()), token),
                (Subject::Run, state.head),
            ];
            let events = canceled.into_iter().chain([Event::StageFinished(Box::new(finished))]).collect();
            Some(Batch { expect, events, because: None, claim: claim.clone() })
        });
        let Committed { records, is_stored } = committed.await?;
        if !is_stored {
            tracing::warn!(%task, "another worker was faster, the result is dropped");
            return Ok((None, records));
        }
        self.journal.done(&delivery).await?;
        let next = match claim {
            Some(claim) => self.claimed(claim).await?,
            None => None,
        };
        Ok((next, records))
    }

    async fn cancel(&mut self, canceled: RunCanceled) -> Result<Vec<Record>, RunError> {
        let canceled = vec![Event::RunCanceled(canceled)];
        let is_wanted = |state: &RunState| state.canceled.is_none() && state.verdict.is_none();
        let committed = self.append(|state| is_wanted(state).then(|| Batch::of_run(state, canceled.clone())));
        Ok(committed.await?.records)
    }

    async fn end(&mut self, end: Event) -> Result<Vec<Record>, RunError> {
        let end = vec![end];
        let committed = self.append(|state| state.verdict.is_none().then(|| Batch::of_run(state, end.clone())));
        Ok(committed.await?.records)
    }

    fn is_asked_to_stop(&self) -> bool {
        self.state.canceled.is_none() && self.signals.flag().load(Ordering::SeqCst)
    }

    /// True if another stage may begin after this one, without a look at every file.
    fn has_room(&self, finished: &StageFinished) -> Result<bool, RunError> {
        let room = |disk: &DiskGauge| disk.note(finished).and_then(|()| disk.has_room());
        self.disk.map_or(Ok(true), room).map_err(|error| RunError::Project(Box::new(error)))
    }

    /// The end of a run whose folder has no room for another stage.
    fn out_of_disk(&self) -> Result<Option<Event>, RunError> {
        let over = self.disk.map_or(Ok(None), DiskGauge::over);
        Ok(over.map_err(|error| RunError::Project(Box::new(error)))?.map(failed))
    }
}

impl<J: RunLog, S> Driver<'_, J, S> {
    /// Starts the run: `started` and what follows from it, in one append on an empty journal.
    pub async fn start(&mut self, started: Event) -> Result<Vec<Record>, RunError> {
        let expect = || vec![(Subject::Run, 0)];
        let first =
            |_: &RunState| Some(Batch { expect: expect(), events: vec![started.clone()], because: None, claim: None });
        Ok(self.append(first).await?.records)
    }

    /// Records facts from which nothing follows.
    pub async fn note(&mut self, events: Vec<Event>) -> Result<Vec<Record>, RunError> {
        Ok(self.append(|state| Some(Batch::of_run(state, events.clone()))).await?.records)
    }

    /// Takes over a run that `last` was the last event of. An attempt that was under way is abandoned: its result will be dropped.
    /// A run that begins again at a node forgets what was outstanding.
    pub async fn resume(&mut self, last: Option<Event>, resumed: RunResumed) -> Result<Vec<Record>, RunError> {
        let continues = resumed.from.is_none();
        let last = last.filter(|_| continues);
        let stopped = self.state.stopped.iter().filter(|_| continues);
        let mut events = vec![Event::RunResumed(RunResumed { worker: self.worker.clone(), ..resumed })];
        // The end of a stopped run emptied the queue.
        let stopped = stopped.filter(|_| !matches!(last, Some(Event::StageFinished(_))));
        let waiting = stopped.flat_map(|stopped| stopped.branches.values()).filter_map(|branch| branch.open());
        let again =
            |open: &OpenTask| StageReady { task: open.task.clone(), ordinal: open.ordinal, due_at: open.due_at };
        events.extend(waiting.map(again).map(Event::StageReady));
        let seq = self.state.seq;
        let resumed = self.append(|state| {
            // `last` is outstanding in the journal as it was read: another driver that appended since has taken the run over.
            let batch = Batch { because: last.clone(), ..Batch::of_run(state, events.clone()) };
            (state.seq == seq).then_some(batch)
        });
        let Committed { records, is_stored } = resumed.await?;
        match is_stored {
            true => Ok(records),
            false => Err(PortError::Unavailable("another driver took the run over".into()).into()),
        }
    }
}

/// True for an event that has no consequences once the run is taken up again.
fn is_of_a_stop(state: &RunState, event: &Event) -> bool {
    match event {
        Event::RunResumed(_) | Event::CacheFilled(_) => true,
        Event::RunCanceled(_) | Event::RunFinished(_) => state.stopped.is_some(),
        Event::StageFinished(finished) => state.stopped.is_some() && was_cut(finished),
        _ => false,
    }
}

/// Folds the records of a run: its state, and the last event whose consequences may be outstanding.
pub fn replay(records: &[Record]) -> Result<(RunState, Option<Event>), RunError> {
    let (mut state, mut last) = (RunState::default(), None);
    for record in records {
        state.apply(record);
        if !is_of_a_stop(&state, &record.event) {
            last = Some(&record.event);
        }
    }
    if state.run.is_some() { Ok((state, last.cloned())) } else { Err(RunError::NotStarted) }
}
