//! One attempt from its claim to its end.
//!
//! An attempt owns its assignment. While it runs, the lease of its delivery is extended. It is asked to stop when the run is
//! canceled or out of time, and abandoned if it does not stop. This module does not examine the result any further.

use super::claim::ClaimedAttempt;
use super::heartbeat::Heartbeats;
use super::{Driver, Fault, Follow, LEASE_MS, RunError, Stops};
use crate::assignment::AttemptResult;
use crate::clock::RunClock;
use crate::executors::{Executors, MadeAttempt, Seat};
use glovebox_journal::event::{Attempt, AttemptId, BranchId, Ending, Event, StageFinished};
use glovebox_journal::ports::{ClaimQueue, Delivery, RunLog, Signals};
use glovebox_pipeline::key;
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, Outcome};
use glovebox_state::context::{StoredUpdates, filter_updates};
use glovebox_state::decide::{out_of_time, time_of_node_exceeded};
use glovebox_state::run_state::Branch;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum time that an attempt may take to end after it was asked to stop.
pub const GRACE: Duration = Duration::from_secs(10);

/// Time between two extensions of a lease, and between two heartbeats.
pub const HEARTBEAT: Duration = Duration::from_millis(LEASE_MS / 3);

/// An attempt that ended.
pub(super) struct EndedAttempt<X> {
    pub(super) delivery: Delivery,
    pub(super) token: u64,
    pub(super) id: AttemptId,
    pub(super) result: AttemptResult,
    /// Why the attempt was asked to stop. `None` if it was not.
    pub(super) stop: Option<Stop>,
    /// The seat, if its machine keeps it for the next attempt.
    pub(super) seat: Option<X>,
    /// True if no machine has the attempt any more. The result is then that of an attempt that was canceled.
    pub(super) is_lost: bool,
}

/// Why an attempt was asked to stop.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    Canceled,
    OutOfTime,
    NodeOutOfTime,
}

impl<'a, J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'a, J, S, F> {
    /// Makes or adopts one attempt, and supervises it. The returned future borrows nothing from the driver except its ports.
    pub(super) fn attempt<'e, X: Executors>(
        &self,
        claimed: ClaimedAttempt<X::Seat>,
        executors: &'e X,
        stops: &mut Stops,
    ) -> impl Future<Output = Result<EndedAttempt<X::Seat>, RunError>> + use<'a, 'e, J, S, F, X> {
        let ClaimedAttempt { assignment, delivery, seat } = claimed;
        let deadline = self.time_left().map(|left| Instant::now() + left);
        let node_deadline = self.node_time_left(&assignment.attempt).map(|left| Instant::now() + left);
        let unneeded = stops.of(&assignment);
        let Self { journal, signals, grace, heartbeat, clock, liveness, .. } = *self;
        let supervisor = Supervisor { journal, signals, grace, heartbeat, clock, deadline, node_deadline, unneeded };
        let heartbeats = Heartbeats::new(liveness, assignment.attempt.clone(), assignment.pulse.clone(), clock.now());
        let watched = WatchedAttempt {
            attempt: assignment.attempt.clone(),
            token: assignment.token,
            stop: Arc::clone(&assignment.stop),
            delivery,
        };
        let executing = async move {
            match seat {
                Some(seat) => seat.make(assignment).await,
                None => executors.adopt(assignment).await,
            }
        };
        supervisor.watch(watched, executing, heartbeats)
    }

    /// Returns the attempts in progress that this driver took over, and takes the leases of their deliveries.
    pub(super) async fn adopted<X>(&self) -> Result<Vec<ClaimedAttempt<X>>, RunError> {
        let mut adopted = Vec::new();
        let branches = self.replay.state.branches.iter().filter(|_| self.takeover.is_some());
        for (id, open) in branches.filter_map(|(id, branch)| Some((id, branch.open()?))) {
            let assignment = open.attempt_id.as_ref().and_then(|attempt| self.assignment(attempt, id));
            let Some(assignment) = assignment else { continue };
            let delivery = Delivery { run: self.run.clone(), task: open.task.clone(), ready_seq: open.ready_seq };
            self.journal.hold(&delivery, self.clock.now(), LEASE_MS).await?;
            adopted.push(ClaimedAttempt { assignment, delivery, seat: None });
        }
        Ok(adopted)
    }

    /// Returns the result to commit for an attempt, given why it was asked to stop.
    pub(super) fn finished(&self, branch: &BranchId, result: AttemptResult, stop: Option<Stop>) -> AttemptResult {
        let AttemptResult { ingested, finished } = result;
        let mut finished = match stop {
            Some(Stop::OutOfTime) if finished.ending == Ending::Canceled => self.cut_for_time(finished),
            Some(Stop::NodeOutOfTime) if finished.ending == Ending::Canceled => self.cut_for_time_of_node(finished),
            Some(Stop::Canceled) if !did_succeed(&finished) => cut(finished),
            _ => finished,
        };
        let (branch, stored_bytes) = (self.replay.state.branch(branch), self.replay.state.stored_bytes);
        match finished.files.recoverable {
            Some(_) => finished.with_own_outcome(|finished| filter_context(branch, finished, stored_bytes)),
            None => filter_context(branch, &mut finished, stored_bytes),
        }
        // Limits that were not measured or not used are left out of the record.
        finished.usage.retain(|row| row.used.is_some_and(|used| used > 0 || used >= row.limit));
        // A stage that was stopped has no answer.
        AttemptResult { ingested: ingested.filter(|_| finished.ending == Ending::Returned), finished }
    }

    /// Waits until the run's time is over, or forever if it has no limit. Returns the event that then ends the run.
    pub(super) async fn deadline(&self) -> Event {
        loop {
            if let Some(end) = out_of_time(&self.replay.state, self.clock.now()) {
                return end;
            }
            wait_until(self.time_left().map(|left| Instant::now() + left)).await;
        }
    }

    /// Returns the time that the run still has. `None` if it has no limit.
    fn time_left(&self) -> Option<Duration> {
        let wall_max_ms = self.replay.state.run.as_ref()?.bounds.wall_max_ms?;
        let since =
            self.replay.state.at.map_or(0, |at| self.clock.now().as_millisecond().saturating_sub(at.as_millisecond()));
        let driven_ms = self.replay.state.driven_ms.saturating_add(u64::try_from(since).unwrap_or(0));
        Some(Duration::from_millis(wall_max_ms.saturating_sub(driven_ms)))
    }

    /// Returns the time that the node of an attempt still has. `None` if the node has no limit.
    fn node_time_left(&self, attempt: &Attempt) -> Option<Duration> {
        let most = self.pipeline.node(&attempt.task.node)?.bounds.wall_max?;
        Some(most.saturating_sub(self.replay.state.node_usages.of(&attempt.task.node).time(self.clock.now())))
    }

    /// Returns the result of an attempt that was ended by its node's time limit: a failure of the node, which the pipeline
    /// can route.
    fn cut_for_time_of_node(&self, mut finished: StageFinished) -> StageFinished {
        let node = self.pipeline.node(&finished.attempt.task.node);
        let failure = node.and_then(|node| time_of_node_exceeded(&self.replay.state, node, self.clock.now()));
        let reason = "the node's wall time ended during the attempt";
        let failure =
            failure.unwrap_or_else(|| Failure::new(FailureClass::Budget, FailureCode::NODE_WALL_TIME, reason));
        let ending = Ending::LimitHit(key::MAX_WALL_TIME.as_str().to_owned());
        finished.files.changes.clear();
        StageFinished { outcome: Outcome::failed(failure), ending, ..finished }
    }

    /// Returns the result of an attempt that was ended by the run's time limit, not by a request.
    fn cut_for_time(&self, finished: StageFinished) -> StageFinished {
        let ended = out_of_time(&self.replay.state, self.clock.now());
        let failure = ended.and_then(|event| event.run_finished()?.failure.clone());
        let reason = "the run's wall time ended during the attempt";
        let failure = failure.unwrap_or_else(|| Failure::new(FailureClass::Budget, FailureCode::RUN_WALL_TIME, reason));
        StageFinished { outcome: Outcome::failed(failure), ..finished }
    }
}

/// Supervises one attempt: extends the lease of its delivery while it runs, and asks it to stop when the run is canceled or
/// out of time.
struct Supervisor<'a, J, S> {
    journal: &'a J,
    signals: &'a S,
    grace: Duration,
    heartbeat: Duration,
    clock: RunClock,
    deadline: Option<Instant>,
    /// When the time limit of the attempt's node ends. `None` if the node has no limit.
    node_deadline: Option<Instant>,
    /// Notified when the attempt's branch is no longer needed.
    unneeded: Arc<Notify>,
}

/// The attempt that is supervised.
struct WatchedAttempt {
    attempt: Attempt,
    token: u64,
    stop: Arc<AtomicBool>,
    delivery: Delivery,
}

impl WatchedAttempt {
    /// Returns the end of the attempt. Without a result, no machine has the attempt any more.
    fn ended<X>(
        self,
        clock: RunClock,
        heartbeats: Heartbeats<'_>,
        made: Option<MadeAttempt<X>>,
        stop: Option<Stop>,
    ) -> EndedAttempt<X> {
        let is_lost = made.is_none();
        let (result, seat) = match made {
            Some(MadeAttempt { result, seat }) => (result, seat),
            None => (lost(&self.attempt).into(), None),
        };
        let AttemptResult { ingested, finished } = result;
        let finished = StageFinished { liveness: heartbeats.end(clock.now()), ..finished };
        let Self { attempt, token, delivery, .. } = self;
        let result = AttemptResult { ingested, finished };
        EndedAttempt { delivery, token, id: attempt.id, result, stop, seat, is_lost }
    }
}

impl<J: ClaimQueue, S: Signals> Supervisor<'_, J, S> {
    async fn watch<X>(
        self,
        watched: WatchedAttempt,
        executing: impl Future<Output = Result<Option<MadeAttempt<X>>, Fault>>,
        mut heartbeats: Heartbeats<'_>,
    ) -> Result<EndedAttempt<X>, RunError> {
        let failed = |source| RunError::Execute { node: watched.attempt.task.node.clone(), source };
        let mut executing = std::pin::pin!(executing);
        let reason = tokio::select! {
            biased;
            made = &mut executing => {
                let made = made.map_err(failed)?;
                return Ok(watched.ended(self.clock, heartbeats, made, None));
            }
            reason = self.reason_to_stop() => reason,
            error = self.keep_lease(&watched.delivery, &mut heartbeats) => return Err(error),
        };
        glovebox_jail::jail::cancel(&watched.stop);
        let made = match tokio::time::timeout(self.grace, executing).await {
            Ok(made) => made.map_err(failed)?,
            Err(_) => Some(MadeAttempt { result: abandoned(&watched.attempt, self.grace).into(), seat: None }),
        };
        Ok(watched.ended(self.clock, heartbeats, made, Some(reason)))
    }

    async fn reason_to_stop(&self) -> Stop {
        tokio::select! {
            _ = self.signals.canceled() => Stop::Canceled,
            () = self.unneeded.notified() => Stop::Canceled,
            () = wait_until(self.deadline) => Stop::OutOfTime,
            () = wait_until(self.node_deadline) => Stop::NodeOutOfTime,
        }
    }

    /// Extends the lease for as long as the future is polled, and sends a heartbeat each time. Returns only if the queue
    /// fails. A lost lease is not a reason to stop, because the token decides whether the commit is accepted.
    async fn keep_lease(&self, delivery: &Delivery, heartbeats: &mut Heartbeats<'_>) -> RunError {
        loop {
            tokio::time::sleep(self.heartbeat).await;
            let now = self.clock.now();
            heartbeats.beat(now, self.heartbeat);
            match self.journal.extend(delivery, now, LEASE_MS).await {
                Ok(true) => {}
                Ok(false) => tracing::warn!(task = %delivery.task, "the lease was lost"),
                Err(error) => return error.into(),
            }
        }
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Returns true for an attempt that succeeded and none of whose commands was canceled.
fn did_succeed(finished: &StageFinished) -> bool {
    let is_whole = finished.commands.receipts.iter().all(|receipt| receipt.how != CommandEnding::Canceled);
    finished.outcome.status.satisfies_gate() && is_whole
}

/// Returns the result of an attempt that was asked to stop. It changes nothing, even if its component returned in time
/// (decision killed-stages-commit-nothing).
fn cut(mut finished: StageFinished) -> StageFinished {
    let reason = "the attempt was asked to stop";
    let outcome = match finished.ending {
        Ending::Canceled => finished.outcome,
        _ => Outcome::failed(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason)),
    };
    finished.files.changes.clear();
    StageFinished { outcome, ending: Ending::Canceled, ..finished }
}

/// Keeps the context updates that a handler may make, and records all others as refused (decision record-out-of-reach).
fn filter_context(branch: &Branch, finished: &mut StageFinished, run_bytes: u64) {
    let updates = std::mem::take(&mut finished.outcome.context_updates);
    let stored = StoredUpdates { keys: &finished.files.stored_values, run_bytes };
    let (accepted, refusals) = filter_updates(&branch.context, updates, stored);
    finished.files.stored_values.retain(|key| accepted.contains_key(key));
    finished.outcome.context_updates = accepted;
    finished.refusals.total = finished.refusals.total.saturating_add(refusals.len() as u64);
    finished.refusals.listed.extend(refusals.into_iter().take(glovebox_workspace::refusal::REFUSALS_MAX));
}

/// Returns the result of an attempt whose machine was lost, for a run that does not make it again.
fn lost(attempt: &Attempt) -> StageFinished {
    let reason = "the machine of the attempt was lost";
    let failure = Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason);
    StageFinished { ending: Ending::Canceled, ..StageFinished::new(attempt.clone(), Outcome::failed(failure)) }
}

/// Returns the result of an attempt that ignored its cancellation. None of its work is committed.
fn abandoned(attempt: &Attempt, grace: Duration) -> StageFinished {
    let reason = format!("the attempt did not end within {} ms of being asked to", grace.as_millis());
    let failure = Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason);
    StageFinished { ending: Ending::Canceled, ..StageFinished::new(attempt.clone(), Outcome::failed(failure)) }
}
