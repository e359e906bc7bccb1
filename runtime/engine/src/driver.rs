//! The loop that drives a run: take what is ready, claim it, have it executed, commit it with everything that follows.
//!
//! It owns the clock and the waiting, and decides nothing: [`crate::schedule`] does. Memory does not grow with the run, records
//! are folded and let go. Each append expects the heads it was decided on, so the result of an attempt that was overtaken is dropped.

mod attempt;
mod commit;
#[cfg(test)]
mod tests;

pub use attempt::{Claim, GRACE};
use commit::{Batch, Committed};

use crate::disk::DiskGauge;
use crate::event::{
    Attempt, Event, NodeId, Record, RunCanceled, RunId, RunResumed, SandboxRecord, StageFinished, StageReady,
    StageStarted, Subject, Verdict,
};
use crate::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals};
use crate::schedule::{failed, finalize_attempt, out_of_time};
use crate::state::{RunState, was_cut};
use glovebox_pipeline::ir::Pipeline;
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
    #[error("could not bring the workspace to where the journal says")]
    Workspace(#[source] Box<dyn Error + Send + Sync>),
    /// The hold-outs could not be sealed, or are not those the run began with.
    #[error("could not keep the hold-outs")]
    Holdouts(#[source] Box<dyn Error + Send + Sync>),
    /// The run is over; there is nothing to resume.
    #[error("run `{run_id}` has ended already ({verdict}), expected one that was interrupted")]
    Ended {
        /// Which run.
        run_id: RunId,
        /// How it ended.
        verdict: Verdict,
    },
    /// Nothing is ready and nothing is under way.
    #[error("the run is at node `{0}` and nothing is ready, expected an attempt or an end")]
    Stalled(NodeId),
    /// The journal has no `run.started`.
    #[error("the journal is empty, expected a run that was started")]
    NotStarted,
}

/// A run in the hands of its driver.
pub struct Driver<'a, J, S> {
    /// The checked pipeline.
    pub pipeline: &'a Pipeline,
    /// Journal and queue.
    pub journal: &'a J,
    /// Where the wish to stop arrives.
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

impl<J: RunLog + ClaimQueue, S: Signals> Driver<'_, J, S> {
    /// Drives the run to its end. `execute` makes one attempt and answers with what is to be committed; `project` is told the
    /// records of every append, after they are durable, with the state they led to.
    pub async fn drive<E, P>(&mut self, execute: E, mut project: P) -> Result<(), RunError>
    where
        E: AsyncFn(&Claim, &RunState) -> Result<StageFinished, Box<dyn Error + Send + Sync>>,
        P: FnMut(&[Record], &RunState) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        while self.state.verdict.is_none() {
            let records = if self.asked_to_stop() {
                self.cancel().await?
            } else if let Some(end) = out_of_time(&self.state, Timestamp::now()) {
                self.end(end).await?
            } else {
                match self.journal.next(Timestamp::now(), LEASE_MS)? {
                    Next::Due(delivery) => match self.out_of_disk()? {
                        Some(end) => self.end(end).await?,
                        None => self.work(&delivery, &execute, &mut project).await?,
                    },
                    Next::At(due) => self.sleep_until(due).await,
                    Next::Empty => return Err(self.stalled()),
                }
            };
            project(&records, &self.state).map_err(RunError::Project)?;
        }
        Ok(())
    }

    /// One attempt from claim to commit.
    async fn work<E, P>(&mut self, delivery: &Delivery, execute: &E, project: &mut P) -> Result<Vec<Record>, RunError>
    where
        E: AsyncFn(&Claim, &RunState) -> Result<StageFinished, Box<dyn Error + Send + Sync>>,
        P: FnMut(&[Record], &RunState) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let (claim, claimed) = self.claim(delivery).await?;
        project(&claimed, &self.state).map_err(RunError::Project)?;
        let Some(claim) = claim else {
            self.journal.done(delivery)?;
            return Ok(Vec::new());
        };
        let finished = self.wait_for(&claim, delivery, execute).await?;
        let Committed { records, is_stored } = self.commit(&claim, finished).await?;
        if is_stored {
            self.journal.done(delivery)?;
        } else {
            tracing::warn!(task = %claim.attempt.task, "another worker was faster, the result is dropped");
        }
        Ok(records)
    }

    /// Claims what was delivered. No claim when it is not what the run waits for: a delivery may come twice, and another worker may
    /// have been faster.
    async fn claim(&mut self, delivery: &Delivery) -> Result<(Option<Claim>, Vec<Record>), RunError> {
        let Some(open) = self.state.open.as_ref().filter(|open| open.task == delivery.task) else {
            return Ok((None, Vec::new()));
        };
        let (claim, head) = (Claim::new(open, &self.worker), open.head);
        let started = StageStarted { attempt: claim.attempt.clone(), worker: self.worker.clone() };
        let Committed { records, is_stored } = self
            .append(|state| {
                state.open.as_ref().filter(|open| open.task == delivery.task && open.head == head)?;
                let expect = vec![(Subject::Task(delivery.task.clone()), head)];
                Some(Batch { expect, events: vec![Event::StageStarted(started.clone())], because: None })
            })
            .await?;
        let token = self.state.open.as_ref().map_or(0, |open| open.head);
        Ok((is_stored.then_some(Claim { token, ..claim }), records))
    }

    /// Commits an attempt and everything that follows, expecting its token. Nothing is stored of an attempt that was overtaken: a
    /// newer claim has moved the task's head, or another driver abandoned the attempt.
    async fn commit(&mut self, claim: &Claim, mut finished: StageFinished) -> Result<Committed, RunError> {
        let canceled = if self.asked_to_stop() { Some(self.cancellation().await) } else { None };
        attempt::admit_context(&self.state, &mut finished);
        self.disk.iter().for_each(|disk| disk.note(&finished));
        let (pipeline, Attempt { task, id, .. }) = (self.pipeline, &claim.attempt);
        self.append(|state| {
            state.open.as_ref().filter(|open| open.task == *task && open.attempt_id.as_ref() == Some(id))?;
            let canceled = canceled.as_ref().filter(|_| state.canceled.is_none());
            // A stop by a signal decides nothing: whether another attempt follows is written as if the run went on.
            let is_final = canceled.is_some_and(|canceled| !canceled.is_stop());
            let mut finished = finished.clone();
            finalize_attempt(pipeline, state, is_final, &mut finished);
            let canceled = canceled.cloned().map(Event::RunCanceled);
            let expect = vec![
                (Subject::Branch(task.branch.clone()), state.branch_head),
                (Subject::Task(task.clone()), claim.token),
                (Subject::Run, state.run_head),
            ];
            let events = canceled.into_iter().chain([Event::StageFinished(Box::new(finished))]).collect();
            Some(Batch { expect, events, because: None })
        })
        .await
    }

    async fn cancel(&mut self) -> Result<Vec<Record>, RunError> {
        let canceled = Event::RunCanceled(self.cancellation().await);
        let is_wanted = |state: &RunState| state.canceled.is_none() && state.verdict.is_none();
        let committed = self.append(|state| is_wanted(state).then(|| Batch::of_run(state, vec![canceled.clone()])));
        Ok(committed.await?.records)
    }

    async fn end(&mut self, end: Event) -> Result<Vec<Record>, RunError> {
        let committed = self.append(|state| state.verdict.is_none().then(|| Batch::of_run(state, vec![end.clone()])));
        Ok(committed.await?.records)
    }

    fn asked_to_stop(&self) -> bool {
        self.state.canceled.is_none() && self.signals.flag().load(Ordering::SeqCst)
    }

    async fn cancellation(&self) -> RunCanceled {
        RunCanceled { by: self.signals.canceled().await }
    }

    /// Waits for a timer, no longer than the run may take, and not at all once somebody asks to stop.
    async fn sleep_until(&self, due: Timestamp) -> Vec<Record> {
        let wait = Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO);
        let wait = self.time_left().map_or(wait, |left| wait.min(left));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = self.signals.canceled() => {}
        }
        Vec::new()
    }

    /// The end of a run whose folder has no room for another stage.
    fn out_of_disk(&self) -> Result<Option<Event>, RunError> {
        let over = self.disk.map_or(Ok(None), DiskGauge::over);
        Ok(over.map_err(|error| RunError::Project(Box::new(error)))?.map(failed))
    }

    fn stalled(&self) -> RunError {
        RunError::Stalled(self.state.current_node.clone().unwrap_or_else(|| self.pipeline.start.clone()))
    }
}

impl<J: RunLog, S> Driver<'_, J, S> {
    /// Starts the run: `started` and what follows from it, in one append on an empty journal.
    pub async fn start(&mut self, started: Event) -> Result<Vec<Record>, RunError> {
        let expect = || vec![(Subject::Run, 0)];
        let first = |_: &RunState| Some(Batch { expect: expect(), events: vec![started.clone()], because: None });
        Ok(self.append(first).await?.records)
    }

    /// Records facts from which nothing follows.
    pub async fn note(&mut self, events: Vec<Event>) -> Result<Vec<Record>, RunError> {
        Ok(self.append(|state| Some(Batch::of_run(state, events.clone()))).await?.records)
    }

    /// Takes over a run that `last` was the last event of. An attempt that was under way is abandoned: its result will be dropped.
    pub async fn resume(
        &mut self,
        last: Option<Event>,
        sandbox: Option<SandboxRecord>,
    ) -> Result<Vec<Record>, RunError> {
        let mut events = vec![Event::RunResumed(RunResumed { worker: self.worker.clone(), sandbox })];
        // The end of a stopped run emptied the queue.
        let waiting = self.state.stopped.as_ref().and_then(|stopped| stopped.open.as_ref());
        if let Some(open) = waiting.filter(|_| !matches!(last, Some(Event::StageFinished(_)))) {
            events.push(Event::StageReady(StageReady {
                task: open.task.clone(),
                ordinal: open.ordinal,
                due_at: open.due_at,
            }));
        }
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
pub fn replay_records(records: &[Record]) -> Result<(RunState, Option<Event>), RunError> {
    let (mut state, mut last) = (RunState::default(), None);
    for record in records {
        state.apply(record);
        if !is_of_a_stop(&state, &record.event) {
            last = Some(&record.event);
        }
    }
    if state.run.is_some() { Ok((state, last.cloned())) } else { Err(RunError::NotStarted) }
}

/// Reads a run back: its state, and the last event whose consequences may be outstanding. `seen` is told every record with the
/// state it led to.
pub fn replay<J: RunLog>(
    journal: &J,
    mut seen: impl FnMut(&Record, &RunState) -> Result<(), RunError>,
) -> Result<(RunState, Option<Event>), RunError> {
    let mut state = RunState::default();
    let mut last = None;
    loop {
        let records = journal.read(state.seq + 1, CHUNK)?;
        if records.is_empty() {
            return if state.run.is_some() { Ok((state, last)) } else { Err(RunError::NotStarted) };
        }
        for record in records {
            state.apply(&record);
            seen(&record, &state)?;
            if !is_of_a_stop(&state, &record.event) {
                last = Some(record.event);
            }
        }
    }
}
