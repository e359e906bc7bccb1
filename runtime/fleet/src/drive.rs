//! Drives runs of a fleet: takes the lease of a run that needs a driver, takes the run over, and gives its attempts to machines.
//!
//! Whoever pulls the pointer to a run has its lease. The lease is extended while the run is driven. When its holder dies, the
//! pointer is delivered to another process, which takes the run over and adopts the attempts in progress. A run that only
//! waits, for a person or for a time, has no driver: its pointer is delivered again when the time has come, or when a message
//! to the run is sent.

use crate::blobs::ObjectBlobs;
use crate::consumer::Consumer;
use crate::executors::{FleetExecutors, Machines};
use crate::fleet::{Fleet, FleetError};
use crate::held::HeldLease;
use crate::jetstream::{JetStream, RequestError};
use crate::lease::Lease;
use crate::log::NatsLog;
use crate::machine::RunHere;
use crate::mail::NatsMail;
use crate::repetition::patiently;
use crate::wire::Pointer;
use bytes::Bytes;
use glovebox_engine::driver::{Fault, RunError};
use glovebox_engine::inbox::{Attendance, Inbox};
use glovebox_engine::run::{DriveLimits, ResumeTerms, RunDir, Session, budget};
use glovebox_engine::signals::LocalSignals;
use glovebox_engine::stores::{OpenStores, Stores};
use glovebox_journal::event::RunId;
use glovebox_journal::ports::{Leases, PortError};
use glovebox_state::run_state::RunState;
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Delay before a run is driven again that could not continue because of an error, for the first time and at most. It is never longer
/// than the lease.
const AFTER_ERROR: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Delay before a run is offered to another driver whose key this machine does not have.
const WITHOUT_KEY: Duration = Duration::from_secs(1);
/// The longest delay of a run that waits for a time.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// The stores of a fleet.
pub struct FleetStores;

impl Stores for FleetStores {
    type Log = Arc<NatsLog>;
    type Blobs = ObjectBlobs;
    type Lease = DriveQueue;
    type Mail = NatsMail;
}

/// The runs that need a driver. Clones share the leases.
#[derive(Clone)]
pub struct DriveQueue {
    jetstream: JetStream,
    runs: Consumer,
    lease: Lease,
    pulled: Arc<Mutex<HashMap<RunId, Arc<HeldLease>>>>,
}

/// A run that this process may drive.
pub struct DriveTurn {
    /// The run.
    pub run: RunId,
    /// It is extended from the beginning, because preparing a run may take longer than the lease.
    held: Arc<HeldLease>,
}

impl DriveTurn {
    /// Returns true if the pointer was delivered before, so the run may have a driver.
    fn comes_again(&self) -> bool {
        self.held.state().leased.deliveries > 1
    }
}

/// How the turn of a driver ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The run has ended, or waits for a message.
    Done,
    /// The run waits for a time, could not continue, or has another driver, and is looked at again after this time.
    Again(Duration),
}

impl DriveQueue {
    /// Opens the queue of a fleet.
    ///
    /// # Errors
    ///
    /// The stream does not exist, or no server answers.
    pub async fn open(fleet: &Fleet) -> Result<Self, FleetError> {
        let jetstream = fleet.jetstream.clone();
        let drives = jetstream.name.drives();
        let runs = patiently(fleet.patience, || jetstream.consumer("drivers", &drives, fleet.lease)).await;
        let runs = runs.map_err(|error| fleet.failed(error))?;
        Ok(Self { jetstream, runs, lease: fleet.lease, pulled: Arc::default() })
    }

    /// Takes the lease of the next run. `None` if there was none for some seconds.
    pub async fn next(&self) -> Option<DriveTurn> {
        let leased = match self.jetstream.pull(&self.runs).await {
            Ok(leased) => leased?,
            Err(RequestError::NoAnswer(_)) => return None,
            Err(error) => {
                tracing::warn!(%error, "no run could be taken from the queue");
                sleep(AFTER_ERROR[0]).await;
                return None;
            }
        };
        match serde_json::from_slice(&leased.payload) {
            Ok(Pointer { run, .. }) => {
                let held = Arc::new(HeldLease::begin(self.jetstream.clone(), leased, self.lease));
                Some(DriveTurn { run, held })
            }
            Err(error) => {
                tracing::warn!(%error, "a pointer of another form was removed from the queue");
                let _again = self.jetstream.done(&leased).await;
                None
            }
        }
    }

    /// Ends a turn. A pointer whose lease was lost is left alone: another process may have it, and would lose it.
    pub async fn end(&self, turn: &DriveTurn, end: &TurnEnd) {
        let state = turn.held.state();
        if !state.is_held() {
            tracing::debug!(run = %turn.run, "the lease of a run was lost before its turn ended");
            return;
        }
        let ended = match end {
            TurnEnd::Done => self.jetstream.done(&state.leased).await,
            TurnEnd::Again(delay) => self.jetstream.give_back(&state.leased, *delay).await,
        };
        if let Err(error) = ended {
            tracing::debug!(run = %turn.run, %error, "the pointer to a run will be delivered again");
        }
    }

    /// Returns the delay after an error of a turn.
    pub fn after_error(&self, turn: &DriveTurn) -> TurnEnd {
        let times = u32::try_from(turn.held.state().leased.deliveries.saturating_sub(1)).unwrap_or(u32::MAX);
        TurnEnd::Again(
            AFTER_ERROR[0].saturating_mul(2_u32.saturating_pow(times)).min(AFTER_ERROR[1]).min(self.lease.duration()),
        )
    }
}

impl Leases for DriveQueue {
    /// `None` for a process that only starts a run.
    type Held = Option<Arc<HeldLease>>;

    async fn take(&self, run: &RunId) -> Result<Self::Held, PortError> {
        let pulled = self.pulled.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        match pulled {
            Some(held) => Ok(Some(held)),
            None => Err(PortError::Unavailable(format!("another process may drive run `{run}`"))),
        }
    }

    async fn keep(&self, held: &Self::Held) -> PortError {
        let Some(held) = held else { return std::future::pending().await };
        held.lost().await;
        let silence = self.lease.silence_max();
        PortError::Unavailable(format!("the lease of the run could not be extended for {silence:?}"))
    }
}

/// Drives runs for a fleet.
pub struct Drivers {
    /// The connection.
    pub fleet: Fleet,
    /// The journals.
    pub log: Arc<NatsLog>,
    /// The queue of runs.
    pub queue: DriveQueue,
}

impl Drivers {
    /// Returns how the turn ends if this machine may not drive the run: it is encrypted, and its first frame has no key for this machine. A
    /// key that was lent for an attempt is not one to drive with.
    ///
    /// # Errors
    ///
    /// The servers do not answer, or the first frame of the run does not count.
    pub async fn left_to_others(&self, turn: &DriveTurn) -> Result<Option<TurnEnd>, PortError> {
        match self.log.secrecy(&turn.run).await {
            Ok(_) if self.fleet.keys.kept(&turn.run).is_some() => Ok(None),
            Ok(_) | Err(PortError::NoKey { .. }) => {
                // Once a minute if there is no other driver.
                if turn.held.state().leased.deliveries % 60 == 1 {
                    tracing::warn!(run = %turn.run, "this machine has no key of the run, and leaves it to other drivers");
                }
                Ok(Some(TurnEnd::Again(WITHOUT_KEY)))
            }
            Err(error) => Err(error),
        }
    }

    /// Drives a run until it ends or only waits. `here` has its plan; `dir` is its directory on this machine, in which nothing
    /// is written.
    ///
    /// # Errors
    ///
    /// The run could not continue. Another driver may continue it.
    pub async fn drive(&self, turn: &DriveTurn, here: &RunHere, dir: RunDir) -> Result<TurnEnd, Fault> {
        let executor = here.executor();
        let (run, lease) = (&turn.run, self.fleet.lease);
        if turn.comes_again() && self.fleet.is_driven(run, lease.third()).await {
            return Ok(TurnEnd::Again(lease.duration()));
        }
        self.queue.pulled.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), Arc::clone(&turn.held));
        let held = self.queue.take(run).await?;
        let secrecy = self.log.secrecy(run).await?;
        let run_blobs = self.log.blobs_with(&secrecy);
        let mail = NatsMail::open(&self.fleet, run, secrecy.clone()).await?;
        let (journal, blobs, queue) = (Arc::clone(&self.log), Arc::new(run_blobs.clone()), self.queue.clone());
        let stores = OpenStores::<FleetStores> { journal, blobs, mail, lease: queue, held };
        let session = Session::read_from(dir, stores, run, executor.worker.clone(), &mut ()).await?;
        let mut session = session.without_workspace();
        let pipeline = &executor.plan.pipeline;
        let is_paused = session.state().paused;
        let mut mail = session.take_mail();
        let resumes = mail.as_ref().is_some_and(|mail| mail.resumes(session.state().seq));
        if session.verdict().is_some() && !resumes {
            return Ok(TurnEnd::Done);
        }
        // The end of the turn in which the run was paused may not have reached the servers. Nobody asks to continue it.
        let has_cause = resumes || mail.as_ref().is_some_and(|mail| mail.has_messages) || is_due(session.state());
        if is_paused && !has_cause {
            return Ok(waits_until(session.state()));
        }
        if resumes && let Some(mail) = &mut mail {
            mail.forget_requests().await;
        }
        if !turn.held.state().is_held() {
            return Err(self.queue.keep(&Some(Arc::clone(&turn.held))).await.into());
        }
        let begun = match resumes || is_paused {
            true => session.resume(pipeline, ResumeTerms::default(), None, &mut ()).await,
            false => session.take_over(pipeline, &mut ()).await,
        };
        match begun {
            Ok(_) => {}
            Err(RunError::Ended { .. }) => return Ok(TurnEnd::Done),
            Err(RunError::TakenOver { machine }) => return Ok(taken_over(run, &machine, lease)),
            Err(error) => return Err(error.into()),
        }
        let budget = budget(&executor.plan, session.state());
        let executors =
            FleetExecutors::new(&self.fleet, run_blobs, run.clone(), executor, budget, &turn.held, &secrecy).await?;
        let limits = DriveLimits { inbox: Inbox::new(Attendance::default(), mail), disk: None, liveness: None };
        let driven =
            session.drive_on(&executor.plan, &LocalSignals::new(), limits, &mut (), &Machines(&executors)).await;
        match driven {
            Ok(()) => Ok(waits_until(session.state())),
            Err(RunError::TakenOver { machine }) => Ok(taken_over(run, &machine, lease)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Fleet {
    /// Returns true if a driver of the run that has its lease answers within this time.
    pub(crate) async fn is_driven(&self, run: &RunId, within: Duration) -> bool {
        let answer = self.jetstream.request(self.jetstream.name.questions(run), Bytes::new(), within);
        answer.await.is_ok()
    }
}

/// Keeps the pointer to a run that another driver has. That driver may have no pointer of its own: one that was stopped for a while
/// can take a run over without the lease.
fn taken_over(run: &RunId, machine: &str, lease: Lease) -> TurnEnd {
    tracing::info!(%run, machine, "another driver has the run");
    TurnEnd::Again(lease.duration())
}

/// Returns true if a time has come for which the run waits.
fn is_due(state: &RunState) -> bool {
    matches!(waits_until(state), TurnEnd::Again(left) if left.is_zero())
}

/// Returns when a run that is not driven must be driven again.
fn waits_until(state: &RunState) -> TurnEnd {
    if state.verdict.is_some() {
        return TurnEnd::Done;
    }
    let questions = state.questions().filter_map(|open| open.asked.due_at);
    let quotas = state.waiting_for_quota().map(|(_, wait)| wait.resume_at);
    match questions.chain(quotas).min() {
        Some(due) => {
            let left = Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default();
            TurnEnd::Again(left.min(WAIT_MAX))
        }
        None => TurnEnd::Done,
    }
}
