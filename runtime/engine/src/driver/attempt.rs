//! Waiting for one attempt.
//!
//! Holds its delivery while it lasts, asks it to stop when the run is canceled or out of time, and gives up on one that does not
//! listen. It looks at no result beyond that.

use super::{Driver, LEASE_MS, RunError};
use crate::context::filter_updates;
use crate::event::{Attempt, AttemptId, Ending, StageFinished};
use crate::ports::{ClaimQueue, Delivery, RunLog, Signals};
use crate::schedule::out_of_time;
use crate::state::{OpenTask, RunState};
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, Outcome};
use jiff::Timestamp;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an attempt may take to end after it was asked to.
pub const GRACE: Duration = Duration::from_secs(10);

/// An attempt that is this driver's to make.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The attempt.
    pub attempt: Attempt,
    /// Sequence number of its `stage.started`.
    pub token: u64,
    /// Set to ask the attempt to stop.
    pub canceled: Arc<AtomicBool>,
}

impl Claim {
    pub(super) fn new(open: &OpenTask, worker: &str) -> Self {
        tracing::debug!(task = %open.task, ordinal = open.ordinal, worker, "claiming");
        Self {
            attempt: Attempt {
                task: open.task.clone(),
                ordinal: open.ordinal,
                id: AttemptId::new(ulid::Ulid::generate().to_string()),
            },
            token: 0,
            canceled: Arc::default(),
        }
    }
}

/// Why an attempt was asked to stop.
enum Stop {
    Canceled,
    OutOfTime,
}

impl<J: RunLog + ClaimQueue, S: Signals> Driver<'_, J, S> {
    /// Waits for an attempt to end, by itself or because it is asked to.
    pub(super) async fn wait_for<E>(
        &self,
        claim: &Claim,
        delivery: &Delivery,
        execute: &E,
    ) -> Result<StageFinished, RunError>
    where
        E: AsyncFn(&Claim, &RunState) -> Result<StageFinished, Box<dyn Error + Send + Sync>>,
    {
        let mut attempt = std::pin::pin!(execute(claim, &self.state));
        let stop = tokio::select! {
            biased;
            finished = &mut attempt => return finished.map_err(|source| execute_error(claim, source)),
            stop = self.reason_to_stop() => stop,
            error = self.keep_lease(delivery) => return Err(error),
        };
        claim.canceled.store(true, Ordering::SeqCst);
        let finished = match tokio::time::timeout(self.grace, attempt).await {
            Ok(finished) => finished.map_err(|source| execute_error(claim, source))?,
            Err(_) => abandoned(claim, self.grace),
        };
        Ok(match stop {
            Stop::OutOfTime if finished.ending == Ending::Canceled => self.cut_for_time(finished),
            Stop::Canceled if !did_succeed(&finished) => cut(finished),
            _ => finished,
        })
    }

    /// Time the run still has; none when it has no bound.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let wall_max_ms = self.state.run.as_ref()?.wall_max_ms?;
        let since = self.state.at.map_or(0, |at| Timestamp::now().as_millisecond().saturating_sub(at.as_millisecond()));
        let driven_ms = self.state.driven_ms.saturating_add(u64::try_from(since).unwrap_or(0));
        Some(Duration::from_millis(wall_max_ms.saturating_sub(driven_ms)))
    }

    async fn reason_to_stop(&self) -> Stop {
        let out_of_time = async {
            match self.time_left() {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.signals.canceled() => Stop::Canceled,
            () = out_of_time => Stop::OutOfTime,
        }
    }

    /// Extends the lease for as long as it is polled; ends only with an error of the queue. A lease that was lost all the same
    /// is no reason to stop: whether the commit counts is decided by its token.
    async fn keep_lease(&self, delivery: &Delivery) -> RunError {
        loop {
            tokio::time::sleep(Duration::from_millis(LEASE_MS / 3)).await;
            match self.journal.extend(delivery, Timestamp::now(), LEASE_MS) {
                Ok(true) => {}
                Ok(false) => tracing::warn!(task = %delivery.task, "the lease was lost"),
                Err(error) => return error.into(),
            }
        }
    }

    /// The run's bound, not somebody's wish, ended this attempt.
    fn cut_for_time(&self, finished: StageFinished) -> StageFinished {
        let failure = match out_of_time(&self.state, Timestamp::now()) {
            Some(crate::event::Event::RunFinished(ended)) => ended.failure,
            _ => None,
        };
        let reason = "the run's wall time ended during the attempt";
        let failure = failure.unwrap_or_else(|| Failure::new(FailureClass::Budget, "limit/max_wall_time", reason));
        StageFinished { outcome: Outcome::failed(failure), ..finished }
    }
}

/// True for an attempt that was asked to stop and had succeeded by then, every command of it run to its end.
fn did_succeed(finished: &StageFinished) -> bool {
    let is_whole = finished.receipts.iter().all(|receipt| receipt.how != CommandEnding::Canceled);
    finished.outcome.status.satisfies_gate() && is_whole
}

/// An attempt that was asked to stop changes nothing, also when its component had the time to answer (design §9 #22).
fn cut(finished: StageFinished) -> StageFinished {
    let reason = "the attempt was asked to stop";
    let outcome = match finished.ending {
        Ending::Canceled => finished.outcome,
        _ => Outcome::failed(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason)),
    };
    StageFinished { outcome, ending: Ending::Canceled, changes: Vec::new(), ..finished }
}

/// Keeps what a handler may set and reports the rest as refused (design §1: a stage cannot touch the record).
pub(super) fn admit_context(state: &RunState, finished: &mut StageFinished) {
    let updates = std::mem::take(&mut finished.outcome.context_updates);
    let (accepted, refusals) = filter_updates(&state.context, updates);
    finished.outcome.context_updates = accepted;
    finished.refusals_total = finished.refusals_total.saturating_add(refusals.len() as u64);
    finished.refusals.extend(refusals.into_iter().take(glovebox_sandbox::refusal::REFUSALS_MAX));
}

/// What is committed for an attempt that did not listen: nothing of it.
fn abandoned(claim: &Claim, grace: Duration) -> StageFinished {
    let reason = format!("the attempt did not end within {} ms of being asked to", grace.as_millis());
    StageFinished {
        attempt: claim.attempt.clone(),
        handler: String::new(),
        outcome: Outcome::failed(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason)),
        retrying: false,
        ending: Ending::Canceled,
        usage: Vec::new(),
        refusals: Vec::new(),
        refusals_total: 0,
        receipts: Vec::new(),
        network: None,
        changes: Vec::new(),
        quarantined: Vec::new(),
        artifacts: Vec::new(),
        isolation: None,
        stdout: None,
        stderr: None,
        turns_used: 0,
        duration_ms: 0,
    }
}

fn execute_error(claim: &Claim, source: Box<dyn Error + Send + Sync>) -> RunError {
    RunError::Execute { node: claim.attempt.task.node.clone(), source }
}
