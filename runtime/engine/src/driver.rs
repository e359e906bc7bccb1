//! The loop that drives a run: take what is ready, claim it, have it executed, commit it with everything that follows.
//!
//! It owns the clock and the waiting, and decides nothing: [`glovebox_state::decide`] does. Memory does not grow with the run, records
//! are folded and let go. Each append expects the heads it was decided on, so the result of an attempt that was overtaken is dropped.

mod attempt;
mod claim;
mod commit;
mod expiry;
mod people;
mod stops;
#[cfg(test)]
mod tests;

pub use crate::assignment::Assignment;
pub use crate::follow::{Fault, Follow};
use attempt::EndedAttempt;
pub use attempt::GRACE;
use commit::{Batch, Committed};
use stops::Stops;

use crate::disk::DiskGauge;
use crate::inbox::Inbox;
use crate::merge_check::MergeCheck;
use futures_util::stream::{FuturesUnordered, StreamExt};
use glovebox_journal::event::{
    BranchId, Event, NodeId, Record, RunCanceled, RunId, RunResumed, StageFinished, StageReady, StreamKey, Verdict,
};
use glovebox_journal::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Failure;
use glovebox_record::no_change::NoChangeRule;
use glovebox_state::decide::{failed, finalize_attempt, next_due, out_of_time};
use glovebox_state::evidence::Replay;
use glovebox_state::run_state::{OpenTask, PendingDecisions, RunState};
use jiff::Timestamp;
use std::error::Error;
use std::sync::Arc;
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
        /// The run.
        run_id: RunId,
        /// How it ended.
        verdict: Verdict,
    },
    /// A person canceled the run for good.
    #[error("run `{run_id}` was canceled for good by {by}")]
    Canceled {
        /// The run.
        run_id: RunId,
        /// Who.
        by: Arc<str>,
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

/// A run in the hands of its driver.
pub struct Driver<'a, J, S, F = ()> {
    /// The run.
    pub run: RunId,
    /// The checked pipeline.
    pub pipeline: &'a Pipeline,
    /// Journal and queue.
    pub journal: &'a J,
    /// Delivers requests to stop.
    pub signals: &'a S,
    /// The name of the worker, for the record.
    pub worker: String,
    /// How long an attempt may take to end after it was asked to; [`GRACE`] unless there is a reason.
    pub grace: Duration,
    /// The operator's rule for agents that change nothing; none without one.
    pub no_change: Option<&'a NoChangeRule>,
    /// The disk gauge of the run; none where disk space has no bound.
    pub disk: Option<&'a DiskGauge>,
    /// Checks the result of each merge at a fan-in; none where nothing is merged.
    pub merge_check: Option<MergeCheck<'a>>,
    /// Most attempts under way at once, of all branches together.
    pub parallel_max: usize,
    /// Answers and steering messages from other processes; empty for a run that takes none.
    pub inbox: Inbox,
    /// The run so far: the one fold of its records, which everything else borrows.
    pub replay: Replay,
    /// Gets every record with the run after it.
    pub follower: F,
    /// Events whose follow-up decisions are not appended yet.
    pub pending: PendingDecisions,
}

/// An attempt that was claimed, and its place in the queue.
type Claimed = (Assignment, Delivery);

/// The event that ended a wait of the loop.
enum Arrival {
    /// An attempt ended.
    Ended(Box<EndedAttempt>),
    /// Somebody asks the run to stop.
    Cancel(String),
    /// A bound of the run is met, and this is how it ends.
    End(Box<Event>),
    /// An attempt may start.
    Ready(Delivery),
    /// The queue has none, and none is under way.
    Idle,
    /// An attempt may start now that had to wait.
    Due,
}

/// The next delivery of the queue, or when one is due.
enum Look {
    /// Something to do at once.
    Now(Arrival),
    /// Nothing before this moment, or before something else happens.
    Later(Option<Timestamp>),
}

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Drives the run to its end. `execute` makes one attempt and answers with what is to be committed. [`Driver::follower`] gets every record
    /// after it is durable.
    pub async fn drive<E>(&mut self, execute: E) -> Result<(), RunError>
    where
        E: AsyncFn(Assignment) -> Result<StageFinished, Fault>,
    {
        let (mut under_way, mut stops) = (FuturesUnordered::new(), Stops::default());
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.look(self.signals);
        let driven = async {
            while self.replay.state.verdict.is_none() {
                if let Some(records) = self.note_one(&mut inbox).await? {
                    stops.tell(&records);
                    self.follower.appended(&records).map_err(RunError::Project)?;
                    continue;
                }
                let arrival = match self.look(under_way.len(), inbox.is_pausing()).await? {
                    Look::Now(Arrival::Idle) if self.waits_for_people() || inbox.is_pausing() => {
                        let (records, goes_on) = self.wait_for_people(&mut inbox).await?;
                        self.follower.appended(&records).map_err(RunError::Project)?;
                        if goes_on {
                            continue;
                        }
                        break;
                    }
                    Look::Now(arrival) => arrival,
                    Look::Later(due) => {
                        let is_idle = under_way.is_empty();
                        tokio::select! {
                            biased;
                            Some(ended) = under_way.next() => Arrival::Ended(Box::new(ended?)),
                            by = self.signals.canceled(), if is_idle && self.replay.state.canceled.is_none() => Arrival::Cancel(by),
                            end = self.deadline(), if is_idle => Arrival::End(Box::new(end)),
                            () = until(due) => Arrival::Due,
                            () = until(next_due(&self.replay.state)) => Arrival::Due,
                            () = inbox.arrival(self.signals) => Arrival::Due,
                        }
                    }
                };
                let arrival = match self.held(arrival) {
                    Ok((held, branch)) => {
                        stops.forget(&branch);
                        inbox.hold(held);
                        continue;
                    }
                    Err(arrival) => arrival,
                };
                let (next, records) = self.follow(arrival, &mut stops, inbox.is_pausing()).await?;
                under_way.extend(next.map(|(one, delivery)| self.attempt(one, delivery, &execute, &mut stops)));
                stops.tell(&records);
                self.follower.appended(&records).map_err(RunError::Project)?;
            }
            Ok(())
        };
        let driven = driven.await;
        // Nothing of a run goes on behind its end.
        stops.all();
        while under_way.next().await.is_some() {}
        driven
    }

    /// The consequences of an arrival: records, and the attempt that begins with them.
    async fn follow(
        &mut self,
        arrival: Arrival,
        stops: &mut Stops,
        is_pausing: bool,
    ) -> Result<(Option<Claimed>, Vec<Record>), RunError> {
        let records = match arrival {
            Arrival::Ended(ended) => {
                stops.forget(&ended.delivery.task.branch);
                return self.commit(*ended, is_pausing).await;
            }
            Arrival::Ready(delivery) => {
                let (assignment, records) = self.claim(&delivery).await?;
                return Ok((assignment.map(|one| (one, delivery)), records));
            }
            Arrival::Cancel(by) => self.cancel(RunCanceled { by }).await?,
            Arrival::End(end) => self.end(*end).await?,
            Arrival::Idle => self.look_for_work().await?,
            Arrival::Due => self.go_on().await?,
        };
        Ok((None, records))
    }

    /// Asks the queue for an attempt that may start, while there is room for one and something waits.
    async fn look(&self, under_way: usize, is_pausing: bool) -> Result<Look, RunError> {
        let is_idle = under_way == 0;
        let has_room = under_way < self.parallel_max.max(1) && self.replay.state.has_unclaimed();
        let has_pending = !self.pending.0.is_empty();
        let is_ending = self.replay.state.canceled.is_some() || self.is_asked_to_stop();
        if is_ending
            || out_of_time(&self.replay.state, Timestamp::now()).is_some()
            || !(is_idle || has_room || has_pending)
        {
            return Ok(Look::Later(None));
        }
        if is_pausing {
            return Ok(if is_idle { Look::Now(Arrival::Idle) } else { Look::Later(None) });
        }
        if (self.replay.state.has_unclaimed() || has_pending)
            && let Some(end) = self.out_of_disk()?
        {
            return Ok(if is_idle { Look::Now(Arrival::End(Box::new(end))) } else { Look::Later(None) });
        }
        // What is ready does not wait for a branch that comes to no stage.
        let next = if is_idle || has_room {
            self.journal.next(&self.run, Timestamp::now(), LEASE_MS).await?
        } else {
            Next::Empty
        };
        Ok(match next {
            Next::Due(delivery) => Look::Now(Arrival::Ready(delivery)),
            _ if has_pending => Look::Later(Some(Timestamp::now())),
            Next::At(due) => Look::Later(Some(due)),
            Next::Empty if is_idle => Look::Now(Arrival::Idle),
            Next::Empty => Look::Later(None),
        })
    }

    /// With nothing ready and nothing under way, another driver may have moved the run. If it did not, the run cannot go on.
    async fn look_for_work(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.catch_up().await?;
        match read.is_empty() {
            true => {
                let node = self.replay.state.main().node.as_ref().unwrap_or(&self.pipeline.start);
                Err(RunError::Stalled(node.clone()))
            }
            false => Ok(read),
        }
    }

    /// Commits an attempt and everything that follows, expecting its token, with the claim of the next attempt. Nothing is stored of an
    /// attempt that was overtaken: a newer claim has moved the task's head, or another driver abandoned the attempt.
    async fn commit(
        &mut self,
        ended: EndedAttempt,
        is_pausing: bool,
    ) -> Result<(Option<Claimed>, Vec<Record>), RunError> {
        let canceled =
            if self.is_asked_to_stop() { Some(RunCanceled { by: self.signals.canceled().await }) } else { None };
        let EndedAttempt { delivery, token, id, finished, stop } = ended;
        let finished = self.finished(&delivery.task.branch, finished, stop);
        let (pipeline, no_change, task) = (self.pipeline, self.no_change, &delivery.task);
        let claim = Some(self.next_claim(&task.branch)).filter(|_| canceled.is_none() && !is_pausing);
        let claim = if self.has_room(&finished)? { claim } else { None };
        let committed = self.append(|state| {
            let branch = state.branch(&task.branch);
            branch.open().filter(|open| open.task == *task && open.attempt_id.as_ref() == Some(&id))?;
            let canceled = canceled.as_ref().filter(|_| state.canceled.is_none());
            // A stop by a signal decides nothing: whether another attempt follows is written as if the run went on.
            let is_final = canceled.is_some_and(|canceled| !canceled.is_stop());
            let mut finished = finished.clone();
            finalize_attempt(pipeline, no_change, state, is_final, &mut finished);
            let canceled = canceled.cloned().map(Event::RunCanceled);
            let expect = vec![
                (StreamKey::from(&task.branch), branch.head),
                (StreamKey::from(task), token),
                (StreamKey::Run, state.head),
            ];
            let events = canceled.into_iter().chain([Event::StageFinished(Box::new(finished))]).collect();
            Some(Batch { expect, events, because: Vec::new(), claim: claim.clone() })
        });
        let Committed { records, is_stored } = committed.await?;
        if !is_stored {
            tracing::warn!(%task, "another worker was faster, the result is dropped");
            return Ok((None, records));
        }
        self.journal.done(&delivery).await?;
        let next = match claim {
            Some(claim) => self.claimed(claim, &records).await?,
            None => None,
        };
        Ok((next, records))
    }

    async fn cancel(&mut self, canceled: RunCanceled) -> Result<Vec<Record>, RunError> {
        let canceled = [Event::RunCanceled(canceled)];
        let is_wanted = |state: &RunState| state.canceled.is_none() && state.verdict.is_none();
        let committed = self.append(|state| is_wanted(state).then(|| Batch::of_run(state, &canceled)));
        Ok(committed.await?.records)
    }

    async fn end(&mut self, end: Event) -> Result<Vec<Record>, RunError> {
        let end = [end];
        let committed = self.append(|state| state.verdict.is_none().then(|| Batch::of_run(state, &end)));
        Ok(committed.await?.records)
    }

    fn is_asked_to_stop(&self) -> bool {
        self.replay.state.canceled.is_none() && self.signals.flag().load(Ordering::SeqCst)
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

impl<'a, J, S, F: Follow> Driver<'a, J, S, F> {
    /// The driver of a run that has no records yet, one attempt at a time.
    pub fn new(
        run: RunId,
        pipeline: &'a Pipeline,
        journal: &'a J,
        signals: &'a S,
        worker: String,
        follower: F,
    ) -> Self {
        Self {
            run,
            pipeline,
            journal,
            signals,
            worker,
            grace: GRACE,
            no_change: None,
            disk: None,
            merge_check: None,
            parallel_max: 1,
            inbox: Inbox::default(),
            replay: Replay::default(),
            follower,
            pending: PendingDecisions::default(),
        }
    }
}

impl<J: RunLog, S, F: Follow> Driver<'_, J, S, F> {
    /// Starts the run: `started` and what follows from it, in one append on an empty journal.
    pub async fn start(&mut self, started: Event) -> Result<Vec<Record>, RunError> {
        let started = [started];
        let first =
            |state: &RunState| Some(Batch { expect: vec![(StreamKey::Run, 0)], ..Batch::of_run(state, &started) });
        let records = self.append(first).await?.records;
        self.told(records)
    }

    /// Records facts from which nothing follows.
    pub async fn note(&mut self, events: Vec<Event>) -> Result<Vec<Record>, RunError> {
        let records = self.append(|state| Some(Batch::of_run(state, &events))).await?.records;
        self.told(records)
    }

    /// Takes over a run that nobody drives, and ends it for good.
    pub async fn cancel_idle(&mut self, canceled: RunCanceled) -> Result<Vec<Record>, RunError> {
        let resumed = RunResumed { worker: self.worker.clone(), ..RunResumed::default() };
        let (resumed, canceled) = (Event::RunResumed(Box::new(resumed)), Event::RunCanceled(canceled));
        let events = [resumed, canceled];
        let committed = self.append(|state| {
            // A process that was killed before its attempts ended has recorded the request already.
            let is_known = state.canceled.is_some() && state.stopped.is_none();
            let events = if is_known { &events[..1] } else { &events[..] };
            (!state.is_over()).then(|| Batch::of_run(state, events))
        });
        let records = committed.await?.records;
        self.told(records)
    }

    /// Takes over a run with what is pending in it. Attempts that were under way are abandoned: their results will be dropped.
    /// A run that begins again at a node forgets what was pending.
    pub async fn resume(&mut self, pending: PendingDecisions, resumed: RunResumed) -> Result<Vec<Record>, RunError> {
        let continues = resumed.from.is_none();
        let because: Vec<Event> = pending.0.into_iter().filter(|_| continues).collect();
        let mut events = vec![Event::RunResumed(Box::new(RunResumed { worker: self.worker.clone(), ..resumed }))];
        // The end of a stopped run emptied the queue. Where an attempt ended, what follows makes the next one ready.
        let has_ended =
            |id: &BranchId| because.iter().any(|event| event.stage_finished().is_some() && event.branch() == Some(id));
        let stopped = self.replay.state.stopped.iter().filter(|_| continues).flat_map(|stopped| &stopped.branches);
        let waiting = stopped.filter(|(id, _)| !has_ended(id)).filter_map(|(_, branch)| branch.open());
        let again =
            |open: &OpenTask| StageReady { task: open.task.clone(), ordinal: open.ordinal, due_at: open.due_at };
        events.extend(waiting.map(again).map(Event::StageReady));
        let seq = self.replay.state.seq;
        let resumed = self.append(|state| {
            // What is pending was read from the journal: another driver that appended since has taken the run over.
            let batch = Batch { because: because.clone(), ..Batch::of_run(state, &events) };
            (state.seq == seq).then_some(batch)
        });
        let Committed { records, is_stored } = resumed.await?;
        match is_stored {
            true => self.told(records),
            false => Err(PortError::Unavailable("another driver took the run over".into()).into()),
        }
    }
}

impl<J, S, F: Follow> Driver<'_, J, S, F> {
    /// Tells the follower that these records are appended, and returns them.
    fn told(&mut self, records: Vec<Record>) -> Result<Vec<Record>, RunError> {
        self.follower.appended(&records).map_err(RunError::Project)?;
        Ok(records)
    }

    /// Gives the run back, with the events whose follow-up decisions are not appended.
    pub fn into_parts(self) -> (Replay, PendingDecisions) {
        (self.replay, self.pending)
    }
}

async fn until(due: Option<Timestamp>) {
    match due {
        Some(due) => {
            tokio::time::sleep(Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO))
                .await;
        }
        None => std::future::pending().await,
    }
}
