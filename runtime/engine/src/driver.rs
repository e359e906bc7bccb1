//! The loop that drives a run: take what is ready, claim it, have it executed, commit it with everything that follows.
//!
//! It owns the clock and the waiting, and decides nothing: [`crate::schedule`] does. Memory does not grow with the run, records
//! are folded and let go. Each append expects the heads it was decided on, so a driver that was overtaken stores nothing.

mod attempt;
#[cfg(test)]
mod tests;

pub use attempt::{Claim, GRACE};

use crate::disk::DiskGauge;
use crate::event::{
    Event, NodeId, Record, RunCanceled, RunId, RunResumed, SandboxRecord, StageFinished, StageReady, StageStarted,
    Subject, Verdict, whole_milliseconds,
};
use crate::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals};
use crate::schedule::{failed, finalize_attempt, out_of_time, schedule};
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
                self.append(vec![(Subject::Run, self.state.run_head)], vec![end], None).await?
            } else {
                match self.journal.next(Timestamp::now(), LEASE_MS)? {
                    Next::Due(delivery) => match self.out_of_disk()? {
                        Some(end) => self.append(vec![(Subject::Run, self.state.run_head)], vec![end], None).await?,
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
        let mut committed = Vec::new();
        if let Some((claim, claimed)) = self.claim(delivery).await? {
            project(&claimed, &self.state).map_err(RunError::Project)?;
            let finished = self.wait_for(&claim, delivery, execute).await?;
            committed = self.commit(&claim, finished).await?;
        }
        self.journal.done(delivery)?;
        Ok(committed)
    }

    /// Claims what was delivered. None when it is not what the run waits for: a delivery may come twice.
    async fn claim(&mut self, delivery: &Delivery) -> Result<Option<(Claim, Vec<Record>)>, RunError> {
        let Some(open) = self.state.open.as_ref().filter(|open| open.task == delivery.task) else { return Ok(None) };
        let (claim, expect) = (Claim::new(open, &self.worker), vec![(Subject::Task(open.task.clone()), open.head)]);
        let started = StageStarted { attempt: claim.attempt.clone(), worker: self.worker.clone() };
        let records = self.append(expect, vec![Event::StageStarted(started)], None).await?;
        let token = records.first().map_or(0, |record| record.seq);
        Ok(Some((Claim { token, ..claim }, records)))
    }

    /// Commits an attempt and everything that follows, expecting its token: a newer claim has moved the head, and then nothing
    /// of this is stored.
    async fn commit(&mut self, claim: &Claim, mut finished: StageFinished) -> Result<Vec<Record>, RunError> {
        let mut events = Vec::new();
        let mut is_final = false;
        if self.asked_to_stop() {
            let canceled = self.cancellation().await;
            is_final = !canceled.is_stop();
            events.push(Event::RunCanceled(canceled));
        }
        attempt::admit_context(&self.state, &mut finished);
        self.disk.iter().for_each(|disk| disk.note(&finished));
        // A stop by a signal decides nothing: whether another attempt follows is written as if the run went on.
        finalize_attempt(self.pipeline, &self.state, is_final, &mut finished);
        events.push(Event::StageFinished(Box::new(finished)));
        let task = claim.attempt.task.clone();
        let expect = vec![
            (Subject::Branch(task.branch.clone()), self.state.branch_head),
            (Subject::Task(task), claim.token),
            (Subject::Run, self.state.run_head),
        ];
        self.append(expect, events, None).await
    }

    async fn cancel(&mut self) -> Result<Vec<Record>, RunError> {
        let canceled = Event::RunCanceled(self.cancellation().await);
        self.append(vec![(Subject::Run, self.state.run_head)], vec![canceled], None).await
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
        self.append(vec![(Subject::Run, 0)], vec![started], None).await
    }

    /// Records facts from which nothing follows.
    pub async fn note(&mut self, events: Vec<Event>) -> Result<Vec<Record>, RunError> {
        self.append(vec![(Subject::Run, self.state.run_head)], events, None).await
    }

    /// Takes over a run that `last` was the last event of. An attempt that was under way is abandoned: its worker's token is
    /// stale from here on.
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
        self.append(vec![(Subject::Run, self.state.run_head)], events, last).await
    }

    /// Appends events and all that follows from them, in one piece. `because` stands in for the first one's cause: an event of
    /// the past whose consequences may be outstanding.
    async fn append(
        &mut self,
        expect: Vec<(Subject, u64)>,
        mut events: Vec<Event>,
        mut because: Option<Event>,
    ) -> Result<Vec<Record>, RunError> {
        let at = whole_milliseconds(Timestamp::now());
        let mut folded = 0;
        while let Some(event) = events.get(folded) {
            self.state.fold(at, event);
            let cause = because.take();
            let follow = schedule(self.pipeline, &self.state, cause.as_ref().unwrap_or(event));
            events.extend(follow);
            folded += 1;
        }
        let records = match self.journal.append(expect, at, events.clone()).await {
            Err(PortError::Ambiguous(what)) => self.look_again(what, &events)?,
            answer => answer?,
        };
        records.iter().for_each(|record| self.state.place(record));
        Ok(records)
    }

    /// "Unknown" is never "no": what was appended is either there now or it is not.
    fn look_again(&self, what: String, events: &[Event]) -> Result<Vec<Record>, RunError> {
        let found = self.journal.read(self.state.seq + 1, events.len())?;
        let same =
            found.len() == events.len() && found.iter().zip(events).all(|(record, event)| record.event == *event);
        if same { Ok(found) } else { Err(PortError::Ambiguous(what).into()) }
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
