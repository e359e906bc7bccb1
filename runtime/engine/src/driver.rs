//! The loop that drives a run: it takes a ready attempt, claims it, has it executed, and commits the result with everything
//! that follows.
//!
//! The driver owns the clock and the waiting. All decisions are made by [`glovebox_state::decide`]. Memory does not
//! grow with the run, because records are folded and then dropped. Each append expects the stream heads on which its
//! decisions are based, so the result of an attempt that another driver replaced is discarded.

mod attempt;
mod claim;
mod commit;
mod expiry;
mod heartbeat;
mod people;
mod quota;
mod seats;
mod stall;
mod stops;
mod takeover;
#[cfg(test)]
mod tests;

pub use crate::assignment::{Assignment, AttemptResult};
pub use crate::executors::{Executors, Here, MadeAttempt, Seat};
pub use crate::follow::{Fault, Follow};
use attempt::EndedAttempt;
pub use attempt::{GRACE, HEARTBEAT};
use claim::ClaimedAttempt;
use commit::{Batch, Committed};
use seats::Seats;
use stall::StallWatch;
use stops::Stops;

use crate::clock::RunClock;
use crate::disk::DiskGauge;
use crate::edge_check::EdgeCheck;
use crate::inbox::{Inbox, Mail};
use crate::liveness::LivenessStream;
use crate::merge_check::MergeCheck;
use futures_util::stream::{FuturesUnordered, StreamExt};
use glovebox_journal::event::{
    BranchId, DriverId, Event, NodeId, Record, RunCanceled, RunId, RunResumed, StageFinished, StageReady, StreamKey,
    Verdict,
};
use glovebox_journal::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Failure;
use glovebox_record::no_change::NoChangeRule;
use glovebox_state::decide::{failed, finalize_attempt, next_due, out_of_time, with_exits};
use glovebox_state::evidence::Replay;
use glovebox_state::run_state::{OpenTask, PendingDecisions, RunState};
use jiff::Timestamp;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Duration of the lease of a delivery, in milliseconds. It is extended after each third of this time.
const LEASE_MS: u64 = 30_000;
/// Number of records that are read at a time.
const CHUNK: usize = 256;

/// Why a run could not continue. The run is not lost: a later resume continues it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A store failed, or another driver appended first.
    #[error(transparent)]
    Port(#[from] PortError),
    /// An attempt could not be executed because of an error of the runtime, not of the stage.
    #[error("could not execute node `{node}`")]
    Execute {
        /// The id of the node.
        node: NodeId,
        /// The error of the attempt.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The run's files could not be written. The journal is ahead of them, and a resume writes them.
    #[error("could not write the run's files")]
    Project(#[source] Box<dyn Error + Send + Sync>),
    /// The workspace could not be created or updated.
    #[error("could not create or update the run's copy of the project")]
    Workspace(#[source] Box<dyn Error + Send + Sync>),
    /// The hold-outs could not be sealed, or differ from those with which the run began.
    #[error("could not seal or verify the hold-outs")]
    Holdouts(#[source] Box<dyn Error + Send + Sync>),
    /// The run has ended, and there is nothing to resume.
    #[error("run `{run_id}` has ended ({verdict}), expected one that failed or was interrupted")]
    Ended {
        /// The run's id.
        run_id: RunId,
        /// How the run ended.
        verdict: Verdict,
    },
    /// A person canceled the run for good.
    #[error("run `{run_id}` was canceled for good by {by}")]
    Canceled {
        /// The run's id.
        run_id: RunId,
        /// The name of the person.
        by: Arc<str>,
    },
    /// The run has used up a limit that the resume does not raise.
    #[error("{}", .0.reason)]
    LimitReached(Failure),
    /// Another driver took the run over. It drives the run from here on.
    #[error("another driver took the run over, on `{machine}`")]
    TakenOver {
        /// The machine of the other driver.
        machine: String,
    },
    /// No attempt is ready and none is in progress, at this node.
    #[error("the run is at node `{0}`, but no attempt is ready or running")]
    NothingReady(NodeId),
    /// The journal has no `run.started` event.
    #[error("the journal is empty, expected a run that was started")]
    NotStarted,
}

/// Drives one run.
pub struct Driver<'a, J, S, F = ()> {
    /// The run's id.
    pub run: RunId,
    /// The checked pipeline.
    pub pipeline: &'a Pipeline,
    /// The journal and the queue.
    pub journal: &'a J,
    /// Delivers requests to stop.
    pub signals: &'a S,
    /// The name of the worker in the records.
    pub worker: String,
    /// Maximum time that an attempt may take to end after it was asked to stop. Normally [`GRACE`].
    pub grace: Duration,
    /// Time between two extensions of a lease, and between two heartbeats. Normally [`HEARTBEAT`].
    pub heartbeat: Duration,
    /// The operator's rule for agents that change nothing. `None` if there is no rule.
    pub no_change: Option<&'a NoChangeRule>,
    /// The disk gauge of the run. `None` if its disk space has no limit.
    pub disk: Option<&'a DiskGauge>,
    /// Checks the result of each merge at a fan-in. `None` if nothing is merged.
    pub merge_check: Option<MergeCheck<'a>>,
    /// Judges each edge before it is taken. `None` if there are no policies.
    pub edge_check: Option<EdgeCheck<'a>>,
    /// Maximum number of attempts in progress at once, of all branches together.
    pub parallel_max: usize,
    /// The stream of the attempts' signs of life. `None` if nobody gets it.
    pub liveness: Option<&'a LivenessStream<'a>>,
    /// The time of the run.
    pub clock: RunClock,
    /// The state of the run so far. It is the only fold of the records, and all other parts borrow it.
    pub replay: Replay,
    /// Gets every record, and the state of the run after it.
    pub follower: F,
    /// Events whose follow-up decisions are not appended yet.
    pub pending: PendingDecisions,
    /// The id of the takeover by this driver. `None` if it started or resumed the run.
    pub takeover: Option<DriverId>,
}

/// What ended a wait of the loop.
enum Arrival<S> {
    /// An attempt ended.
    Ended(Box<EndedAttempt<S>>),
    /// A process or a person asks the run to stop.
    Cancel(String),
    /// The run reached a limit, and this event ends it.
    End(Box<Event>),
    /// An attempt may start.
    Ready(Delivery),
    /// A machine has a seat for an attempt.
    Seated(Delivery, S),
    /// The queue is empty, and no attempt is in progress.
    Idle,
    /// A time for which the loop waited has come.
    Due,
}

/// What the loop does next.
enum NextStep<S> {
    /// Handle this immediately.
    Now(Arrival<S>),
    /// Wait until this time, or until something else happens.
    Later(Option<Timestamp>),
}

/// What follows from an arrival, in addition to the records that were appended.
enum Begin<S> {
    /// No attempt begins.
    Nothing,
    /// The attempt was claimed.
    Attempt(ClaimedAttempt<S>),
    /// A machine is asked for a seat for the attempt of a delivery.
    Seat(Delivery),
}

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Drives the run to its end. `execute` executes one attempt in this process and returns the result to commit.
    /// [`Driver::follower`] gets every record after it is durable.
    pub async fn drive<E>(&mut self, execute: E) -> Result<(), RunError>
    where
        E: AsyncFn(Assignment) -> Result<AttemptResult, Fault>,
    {
        self.drive_on(&Here(&execute), Inbox::default()).await
    }

    /// As [`Driver::drive`], but the attempts are made by `executors`, and answers and messages come from `inbox`. After a
    /// takeover, the attempts in progress are adopted first.
    pub async fn drive_on<X, M>(&mut self, executors: &X, mut inbox: Inbox<M>) -> Result<(), RunError>
    where
        X: Executors,
        M: Mail,
    {
        self.clock.advance_to(self.replay.state.at);
        let bounds = self.replay.state.run.as_ref().and_then(|run| run.bounds.stall.bounds());
        let mut stops = Stops::new(bounds.map(StallWatch::new));
        let (mut under_way, mut seats) = (FuturesUnordered::new(), Seats::new());
        for adopted in self.adopted().await? {
            under_way.push(self.attempt(adopted, executors, &mut stops));
        }
        stops.stop_unneeded(&self.replay.state);
        inbox.look(self.signals);
        let driven = async {
            while self.replay.state.verdict.is_none() {
                if let Some(records) = self.note_one(&mut inbox, &mut stops).await? {
                    self.pass_on(&mut stops, &records)?;
                    continue;
                }
                let step = match seats.ready() {
                    Some(seated) => NextStep::Now(seated?),
                    None => self.look(under_way.len(), seats.len(), inbox.is_pausing()).await?,
                };
                let arrival = match step {
                    NextStep::Now(Arrival::Idle) if self.waits_for_people() || inbox.is_pausing() => {
                        let (records, goes_on) = self.wait_for_people(&mut inbox).await?;
                        self.follower.appended(&records).map_err(RunError::Project)?;
                        if goes_on {
                            continue;
                        }
                        break;
                    }
                    NextStep::Now(arrival) => arrival,
                    NextStep::Later(due) => {
                        let is_idle = under_way.is_empty();
                        tokio::select! {
                            biased;
                            Some(ended) = under_way.next() => Arrival::Ended(Box::new(ended?)),
                            Some(seated) = seats.next() => seated?,
                            by = self.signals.canceled(), if is_idle && self.replay.state.canceled.is_none() => Arrival::Cancel(by),
                            end = self.deadline(), if is_idle => Arrival::End(Box::new(end)),
                            () = self.clock.wait_until(due) => Arrival::Due,
                            () = self.clock.wait_until(next_due(&self.replay.state)) => Arrival::Due,
                            () = stops.look_due(), if !is_idle => Arrival::Due,
                            () = inbox.arrival(self.signals) => Arrival::Due,
                        }
                    }
                };
                let (begin, records) = self.follow(arrival, &mut stops, &mut inbox).await?;
                match begin {
                    Begin::Nothing => {}
                    Begin::Attempt(claimed) => under_way.push(self.attempt(claimed, executors, &mut stops)),
                    Begin::Seat(delivery) => seats.ask(delivery, |delivery| self.ask(executors, delivery)),
                }
                self.pass_on(&mut stops, &records)?;
            }
            Ok(())
        };
        let driven = driven.await;
        if X::OUTLIVE_DRIVER && driven.is_err() {
            return driven;
        }
        // No attempt may continue after the end of the run.
        stops.all();
        while under_way.next().await.is_some() {}
        driven
    }

    /// Tells running attempts and the follower what was appended.
    fn pass_on(&mut self, stops: &mut Stops, records: &[Record]) -> Result<(), RunError> {
        stops.tell(records);
        self.follower.appended(records).map_err(RunError::Project)
    }

    /// Handles what ended a wait of the loop, by appending its events. Returns the appended records, and what begins now.
    async fn follow<X: Seat, M: Mail>(
        &mut self,
        arrival: Arrival<X>,
        stops: &mut Stops,
        inbox: &mut Inbox<M>,
    ) -> Result<(Begin<X>, Vec<Record>), RunError> {
        let records = match arrival {
            Arrival::Ended(ended) => {
                stops.forget(&ended.delivery.task.branch);
                return match ended.is_lost && self.is_needed(&ended) {
                    true => Ok((Begin::Seat(ended.delivery), Vec::new())),
                    false => self.settle(ended, inbox).await,
                };
            }
            Arrival::Ready(delivery) => return Ok((Begin::Seat(delivery), Vec::new())),
            Arrival::Seated(delivery, seat) => return self.begin(delivery, seat, inbox.is_pausing()).await,
            Arrival::Cancel(by) => self.cancel(RunCanceled { by }).await?,
            Arrival::End(end) => self.end(*end).await?,
            Arrival::Idle => self.look_for_work().await?,
            Arrival::Due => self.go_on().await?,
        };
        Ok((Begin::Nothing, records))
    }

    /// Commits an attempt that ended, unless it waits for a quota.
    async fn settle<X: Seat, M: Mail>(
        &mut self,
        ended: Box<EndedAttempt<X>>,
        inbox: &mut Inbox<M>,
    ) -> Result<(Begin<X>, Vec<Record>), RunError> {
        match self.held(ended) {
            Ok(held) => Ok((Begin::Nothing, self.hold(held, inbox).await?)),
            Err(ended) => {
                let (claimed, records) = self.commit(*ended, inbox.is_pausing()).await?;
                Ok((claimed.map_or(Begin::Nothing, Begin::Attempt), records))
            }
        }
    }

    /// Asks the queue for an attempt that may start, if one is waiting and the maximum of attempts is not reached. `asked`
    /// is the number of attempts for which a machine is asked for a seat.
    async fn look<X>(&self, under_way: usize, asked: usize, is_pausing: bool) -> Result<NextStep<X>, RunError> {
        let is_idle = under_way == 0;
        let has_room = under_way + asked < self.parallel_max.max(1) && self.replay.state.has_unclaimed();
        let has_pending = !self.pending.0.is_empty();
        let is_ending = self.replay.state.is_ending() || self.is_asked_to_stop();
        if is_ending
            || out_of_time(&self.replay.state, self.clock.now()).is_some()
            || !(is_idle || has_room || has_pending)
        {
            return Ok(NextStep::Later(None));
        }
        if is_pausing {
            return Ok(if is_idle { NextStep::Now(Arrival::Idle) } else { NextStep::Later(None) });
        }
        if (self.replay.state.has_unclaimed() || has_pending)
            && let Some(end) = self.out_of_disk()?
        {
            return Ok(if is_idle { NextStep::Now(Arrival::End(Box::new(end))) } else { NextStep::Later(None) });
        }
        // A ready attempt is started before pending decisions continue, because a loop of control nodes may never end.
        let next = if is_idle && asked == 0 || has_room {
            self.journal.next(&self.run, self.clock.now(), LEASE_MS).await?
        } else {
            Next::Empty
        };
        Ok(match next {
            Next::Due(delivery) => NextStep::Now(Arrival::Ready(delivery)),
            _ if has_pending => NextStep::Later(Some(self.clock.now())),
            Next::At(due) => NextStep::Later(Some(due)),
            Next::Empty if is_idle && asked == 0 => NextStep::Now(Arrival::Idle),
            Next::Empty => NextStep::Later(None),
        })
    }

    /// Handles the case that no attempt is ready and none is in progress. If another driver has appended records, they are
    /// applied. If not, the run cannot continue.
    async fn look_for_work(&mut self) -> Result<Vec<Record>, RunError> {
        let read = self.catch_up().await?;
        match read.is_empty() {
            true => {
                let node = self.replay.state.main().node.as_ref().unwrap_or(&self.pipeline.start);
                Err(RunError::NothingReady(node.clone()))
            }
            false => Ok(read),
        }
    }

    /// Commits an attempt and everything that follows, together with the claim of the next attempt. The append expects
    /// the attempt's token. No part of an attempt is stored if a newer claim has moved the task's head, or if another
    /// driver abandoned the attempt.
    async fn commit<X: Seat>(
        &mut self,
        ended: EndedAttempt<X>,
        is_pausing: bool,
    ) -> Result<(Option<ClaimedAttempt<X>>, Vec<Record>), RunError> {
        let canceled =
            if self.is_asked_to_stop() { Some(RunCanceled { by: self.signals.canceled().await }) } else { None };
        let EndedAttempt { delivery, token, id, result, stop, seat, .. } = ended;
        let AttemptResult { ingested, finished } = self.finished(&delivery.task.branch, result, stop);
        let (pipeline, no_change, task) = (self.pipeline, self.no_change, &delivery.task);
        let seat = seat.filter(|_| canceled.is_none() && !is_pausing);
        let claim = seat.as_ref().map(|seat| self.next_claim(&task.branch, seat));
        let claim = if self.has_room(&finished)? { claim } else { None };
        let committed = self.append(|state| {
            let branch = state.branch(&task.branch);
            branch.open().filter(|open| open.task == *task && open.attempt_id.as_ref() == Some(&id))?;
            let canceled = canceled.as_ref().filter(|_| state.canceled.is_none());
            // A stop by a signal does not change the decision: whether another attempt follows is decided as if the run continued.
            let is_final = canceled.is_some_and(|canceled| !canceled.is_stop());
            let mut finished = finished.clone();
            finalize_attempt(pipeline, no_change, state, is_final, &mut finished);
            let canceled = canceled.cloned().map(Event::RunCanceled);
            let expect = vec![
                (StreamKey::from(&task.branch), branch.head),
                (StreamKey::from(task), token),
                (StreamKey::Run, state.head),
            ];
            let ingested = ingested.clone().map(Event::StatusIngested);
            let finished = Event::StageFinished(Box::new(finished));
            let events = canceled.into_iter().chain(ingested).chain([finished]).collect();
            Some(Batch { expect, events, because: Vec::new(), claim: claim.clone() })
        });
        let Committed { records, is_stored } = committed.await?;
        if !is_stored {
            tracing::warn!(%task, "another worker has already finished this attempt, so this result is discarded");
            return Ok((None, records));
        }
        self.journal.done(&delivery).await?;
        let next = match claim.zip(seat) {
            Some((claim, seat)) => self.claimed(claim, seat, &records).await?,
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
        let committed = self.append(|state| {
            let is_wanted = state.verdict.is_none();
            is_wanted.then(|| Batch::of_run(state, &with_exits(state, end.clone())))
        });
        Ok(committed.await?.records)
    }

    fn is_asked_to_stop(&self) -> bool {
        self.replay.state.canceled.is_none() && self.signals.flag().load(Ordering::SeqCst)
    }

    /// Returns true if another stage may begin after this one. Does not measure the whole folder.
    fn has_room(&self, finished: &StageFinished) -> Result<bool, RunError> {
        let room = |disk: &DiskGauge| disk.note(finished).and_then(|()| disk.has_room());
        self.disk.map_or(Ok(true), room).map_err(|error| RunError::Project(Box::new(error)))
    }

    /// Returns the event that ends the run if the run directory is larger than its limit.
    fn out_of_disk(&self) -> Result<Option<Event>, RunError> {
        let over = self.disk.map_or(Ok(None), DiskGauge::over);
        Ok(over.map_err(|error| RunError::Project(Box::new(error)))?.map(failed))
    }
}

impl<'a, J, S, F: Follow> Driver<'a, J, S, F> {
    /// Creates the driver of a run that has no records yet, with one attempt at a time.
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
            heartbeat: HEARTBEAT,
            no_change: None,
            disk: None,
            merge_check: None,
            edge_check: None,
            parallel_max: 1,
            liveness: None,
            clock: RunClock::start(),
            replay: Replay::default(),
            follower,
            pending: PendingDecisions::default(),
            takeover: None,
        }
    }
}

impl<J: RunLog, S, F: Follow> Driver<'_, J, S, F> {
    /// Starts the run: appends `started` and everything that follows from it to the empty journal, in one append.
    pub async fn start(&mut self, started: Event) -> Result<Vec<Record>, RunError> {
        let started = [started];
        let first =
            |state: &RunState| Some(Batch { expect: vec![(StreamKey::Run, 0)], ..Batch::of_run(state, &started) });
        let records = self.append(first).await?.records;
        self.told(records)
    }

    /// Appends events from which nothing follows.
    pub async fn note(&mut self, events: Vec<Event>) -> Result<Vec<Record>, RunError> {
        let records = self.append(|state| Some(Batch::of_run(state, &events))).await?.records;
        self.told(records)
    }

    /// Takes over a run that no process drives, and ends it for good.
    pub async fn cancel_idle(&mut self, canceled: RunCanceled) -> Result<Vec<Record>, RunError> {
        let resumed = RunResumed { worker: self.worker.clone(), ..RunResumed::default() };
        let (resumed, canceled) = (Event::RunResumed(Box::new(resumed)), Event::RunCanceled(canceled));
        let events = [resumed, canceled];
        let committed = self.append(|state| {
            // If the process was killed before its attempts ended, the request to cancel is already recorded.
            let is_known = state.canceled.is_some() && state.stopped.is_none();
            let events = if is_known { &events[..1] } else { &events[..] };
            (!state.is_over()).then(|| Batch::of_run(state, events))
        });
        let records = committed.await?.records;
        self.told(records)
    }

    /// Takes over a run with its pending decisions. Attempts that were in progress are abandoned: their results will be
    /// discarded. If the run restarts at another node, its pending decisions are dropped.
    pub async fn resume(&mut self, pending: PendingDecisions, resumed: RunResumed) -> Result<Vec<Record>, RunError> {
        let continues = resumed.from.is_none();
        let because: Vec<Event> = pending.0.into_iter().filter(|_| continues).collect();
        let mut events = vec![Event::RunResumed(Box::new(RunResumed { worker: self.worker.clone(), ..resumed }))];
        // When a stopped run ended, its queue was emptied. A branch whose attempt ended gets its next attempt from the
        // pending decisions instead.
        let has_ended =
            |id: &BranchId| because.iter().any(|event| event.stage_finished().is_some() && event.branch() == Some(id));
        let stopped = self.replay.state.stopped.iter().filter(|_| continues).flat_map(|stopped| &stopped.branches);
        let waiting = stopped.filter(|(id, _)| !has_ended(id)).filter_map(|(_, branch)| branch.open());
        let again =
            |open: &OpenTask| StageReady { task: open.task.clone(), ordinal: open.ordinal, due_at: open.due_at };
        events.extend(waiting.map(again).map(Event::StageReady));
        // A person who resumes a paused run has a reason to try at once.
        let paused = Some(&self.replay.state).filter(|state| continues && state.paused);
        let held = paused.into_iter().flat_map(RunState::waiting_for_quota).map(|(open, _)| again(open));
        events.extend(held.map(|ready| Event::StageReady(StageReady { due_at: None, ..ready })));
        let seq = self.replay.state.seq;
        let resumed = self.append(|state| {
            // The pending decisions were read from the journal. If another driver has appended since, it has taken the run over.
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

    /// Returns the run, and the events whose follow-up decisions are not appended.
    pub fn into_parts(self) -> (Replay, PendingDecisions) {
        (self.replay, self.pending)
    }
}
