//! A machine of a fleet: it asks for attempts, makes them, and stores their results.
//!
//! A seat makes one attempt at a time. It takes a pointer from the queue, asks the driver of the run for the attempt, and tells
//! the driver that it lives while it works. The result is in the stream before anybody is told about it, so it counts also if
//! the driver dies meanwhile. A machine that hears neither a driver nor the stream for [`SILENCE_MAX`] ends its attempt:
//! another machine may have it by then.

use crate::blobs::ObjectBlobs;
use crate::consumer::{Consumer, Leased};
use crate::fleet::{Fleet, FleetError};
use crate::jetstream::{JetStream, Publish, RequestError};
use crate::log::NatsLog;
use crate::result::RESULT_BYTES_MAX;
use crate::wire::{Answer, Ask, Made, MadeMessage, Order, PROTOCOL, Pointer, Question};
use glovebox_engine::assignment::AttemptResult;
use glovebox_engine::run::{AttemptControl, ClaimedTask, MachineError, MachineRun};
use glovebox_host::budget::Till;
use glovebox_jail::jail;
use glovebox_journal::event::{AttemptId, Digest, MachineId, NodeId, RunId, Task};
use glovebox_journal::ports::{BlobStore as _, PortError};
use glovebox_record::placement::MachineFacts;
use glovebox_record::spend::Spend;
use glovebox_record::{Failure, FailureClass, FailureCode};
use glovebox_signing::envelope::PayloadType;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// Time without any sign of a driver or of the stream after which a machine ends its attempt.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Time between two signs of life of an attempt.
const BEAT: Duration = Duration::from_secs(1);
/// How long a driver may take to claim an attempt.
const CLAIM_WAIT: Duration = Duration::from_secs(10);
/// Delay before a pointer is delivered again whose run has no driver at the moment, or whose driver does not know yet.
const LATER: Duration = Duration::from_millis(500);
/// How long a machine leaves the stages of a run that it cannot make to others.
const CANNOT_FOR: Duration = Duration::from_secs(300);
/// Delay before a task is offered to other machines, or to this one again, after the driver did not give it to this one.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// Number of times that a machine asks for a task without an answer. The driver points to it again if it needs it.
const CLAIMS_MAX: u64 = 120;
/// Number of times that a driver is told of a result. It finds the result by itself later.
const TOLD_MAX: u32 = 10;
/// Maximum size in bytes of a result that is in its message. The envelope has it in base64, and a server accepts messages of
/// 1 MiB by default.
const MESSAGE_BYTES_MAX: usize = 640 * 1024;
/// Delay after an error of the servers.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The run of an attempt, prepared on this machine.
pub type RunHere = MachineRun<NatsLog, ObjectBlobs>;

/// Prepares runs on this machine.
pub trait Prepare {
    /// Returns a run that is prepared, or prepares it: its files, and its plan, which must have this digest.
    fn run(&self, run: &RunId, plan: &Digest) -> impl Future<Output = Result<Arc<RunHere>, String>>;
}

/// A machine of a fleet.
pub struct Machine {
    fleet: Fleet,
    jetstream: JetStream,
    log: Arc<NatsLog>,
    blobs: ObjectBlobs,
    id: MachineId,
    stages: Consumer,
    facts: MachineFacts,
    is_draining: Arc<AtomicBool>,
    /// The runs whose stages this machine cannot make, and since when.
    cannot: Mutex<HashMap<RunId, Instant>>,
}

impl Machine {
    /// Creates a machine that makes attempts of all runs of the fleet. It takes no further attempt after `is_draining` is set.
    ///
    /// # Errors
    ///
    /// The stream does not exist, or no server answers.
    pub async fn new(
        fleet: &Fleet,
        log: Arc<NatsLog>,
        blobs: ObjectBlobs,
        id: MachineId,
        facts: MachineFacts,
        is_draining: Arc<AtomicBool>,
    ) -> Result<Self, FleetError> {
        let jetstream = fleet.jetstream.clone();
        let stages = jetstream.consumer("stages", &jetstream.name.stages()).await;
        let stages = stages.map_err(|error| fleet.failed(error))?;
        let (fleet, cannot) = (fleet.clone(), Mutex::default());
        Ok(Self { fleet, jetstream, log, blobs, id, stages, facts, is_draining, cannot })
    }

    /// Returns the journals of the fleet's runs, as this machine reads them.
    pub fn log(&self) -> &Arc<NatsLog> {
        &self.log
    }

    /// Makes attempts, one after the other, until the machine drains.
    pub async fn seat(&self, prepare: &impl Prepare) {
        while !self.is_draining.load(Ordering::Relaxed) {
            match self.jetstream.pull(&self.stages).await {
                Ok(Some(leased)) => self.pointed(&leased, prepare).await,
                Ok(None) | Err(RequestError::NoAnswer(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, "no task could be taken from the queue");
                    sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    /// Handles one pointer to a task.
    async fn pointed(&self, leased: &Leased, prepare: &impl Prepare) {
        let pointer: Option<Pointer> = serde_json::from_slice(&leased.payload).ok();
        let Some((run, seq, task)) = pointer.and_then(|Pointer { run, seq, task }| Some((run, seq, task?))) else {
            tracing::warn!("a pointer of another form was removed from the queue");
            return self.settle(self.jetstream.done(leased).await);
        };
        if self.cannot_make(&run) {
            return self.settle(self.jetstream.give_back(leased, LATER).await);
        }
        match self.claim(&run, seq, &task).await {
            Some(Answer::Order(order)) => {
                // From here on, the driver watches the attempt and points to the task again if this machine is lost.
                self.settle(self.jetstream.done(leased).await);
                self.work(&run, order, prepare).await;
            }
            None | Some(Answer::Later) if leased.deliveries < CLAIMS_MAX => {
                self.settle(self.jetstream.give_back(leased, LATER).await);
            }
            Some(Answer::Refused { reason }) => {
                tracing::warn!(%run, reason, "the driver of the run gives no attempt to this machine");
                self.settle(self.jetstream.give_back(leased, AFTER_REFUSAL).await);
            }
            _ => self.settle(self.jetstream.done(leased).await),
        }
    }

    /// Returns true if this machine could not make a stage of the run a short time ago. The reason may have gone since.
    fn cannot_make(&self, run: &RunId) -> bool {
        let mut cannot = self.cannot.lock().unwrap_or_else(PoisonError::into_inner);
        cannot.retain(|_, since| since.elapsed() < CANNOT_FOR);
        cannot.contains_key(run)
    }

    /// Notes that the servers did not confirm the end of a lease: the message is then delivered again.
    fn settle(&self, settled: Result<(), RequestError>) {
        if let Err(error) = settled {
            tracing::debug!(%error, "a pointer will be delivered again");
        }
    }

    async fn claim(&self, run: &RunId, ready_seq: u64, task: &Task) -> Option<Answer> {
        self.ask(run, Ask::Claim { task: task.clone(), ready_seq, facts: self.facts.clone() }, CLAIM_WAIT).await
    }

    /// Asks the driver of a run. `None` if there was no answer.
    async fn ask(&self, run: &RunId, ask: Ask, wait: Duration) -> Option<Answer> {
        ask_driver(&self.fleet, &self.id, run, ask, wait).await
    }

    /// Makes an attempt, and all further ones that the driver gives to this machine afterwards.
    async fn work(&self, run: &RunId, first: Order, prepare: &impl Prepare) {
        let mut next = Some(first);
        while let Some(Order { task, plan }) = next.take() {
            let here = match prepare.run(run, &plan).await {
                Ok(here) => here,
                Err(reason) => {
                    self.cannot.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), Instant::now());
                    return self.give_back(run, task.attempt, reason).await;
                }
            };
            let result = match self.make(run, &here, &task).await {
                Ok(Some(result)) => result,
                Ok(None) => return,
                Err(reason) => return self.give_back(run, task.attempt, reason).await,
            };
            if self.store(run, &task, result).await.is_err() {
                return;
            }
            next = self.told(run, &task.attempt).await;
        }
    }

    /// Gives an attempt back to the driver, which gives it to another machine.
    async fn give_back(&self, run: &RunId, attempt: AttemptId, reason: String) {
        tracing::error!(%run, %attempt, reason, "this machine cannot make an attempt");
        let _another_gets_it = self.ask(run, Ask::GiveBack { attempt, reason }, CLAIM_WAIT).await;
    }

    /// Makes an attempt. `None` if it does not count any more. An error is one of this machine.
    async fn make(&self, run: &RunId, here: &RunHere, task: &ClaimedTask) -> Result<Option<AttemptResult>, String> {
        let till = DriverTill {
            fleet: self.fleet.clone(),
            machine: self.id.clone(),
            run: run.clone(),
            attempt: task.attempt.clone(),
            stop: Arc::default(),
            held: Mutex::default(),
            runtime: Handle::current(),
        };
        let control = AttemptControl { stop: Arc::clone(&till.stop), ..AttemptControl::default() };
        let control = AttemptControl { till: Some(Arc::new(till)), ..control };
        let is_overtaken = Arc::new(AtomicBool::new(false));
        let beats = Beats {
            fleet: self.fleet.clone(),
            machine: self.id.clone(),
            run: run.clone(),
            attempt: task.attempt.clone(),
            control: control.clone(),
            is_overtaken: Arc::clone(&is_overtaken),
        };
        let beating = AbortOnDrop(tokio::spawn(beats.send()).abort_handle());
        let made = here.make(task, &control).await;
        drop(beating);
        if is_overtaken.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match made {
            Ok(result) => Ok(Some(result)),
            Err(MachineError::Overtaken(attempt)) => {
                tracing::info!(%attempt, "the run does not wait for the attempt any more");
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Stores the result of an attempt in the stream. The first result of an attempt counts.
    async fn store(&self, run: &RunId, task: &ClaimedTask, result: AttemptResult) -> Result<(), ()> {
        let AttemptResult { ingested, finished } = result;
        let not_stored = |error: PortError| {
            tracing::error!(attempt = %task.attempt, %error, "the result of an attempt could not be stored");
        };
        let (fleet, machine) = (self.fleet.id().map_err(not_stored)?.to_owned(), self.id.clone());
        let made = Made { protocol: PROTOCOL, fleet, machine, token: task.token, finished, ingested };
        let message = self.message(made).await.map_err(not_stored)?;
        let subject = self.jetstream.name.result(run, &task.attempt);
        let message = Publish { subject: subject.clone(), payload: message.into() };
        let (begun, mut head) = (Instant::now(), 0);
        loop {
            match self.jetstream.append(std::slice::from_ref(&message), Some(head), "").await {
                Ok(_) => return Ok(()),
                // The answer to an earlier round was lost, or somebody else stored a message that does not count.
                Err(RequestError::WrongHead) if begun.elapsed() <= SILENCE_MAX => {
                    let Ok(Some(last)) = self.jetstream.last(&subject).await else {
                        sleep(BEAT).await;
                        continue;
                    };
                    if last.payload == message.payload {
                        return Ok(());
                    }
                    head = last.seq;
                }
                Err(error) if begun.elapsed() > SILENCE_MAX => {
                    tracing::error!(attempt = %task.attempt, %error, "the result of an attempt could not be stored");
                    return Err(());
                }
                Err(_) => sleep(BEAT).await,
            }
        }
    }

    async fn message(&self, made: Made) -> Result<Vec<u8>, PortError> {
        let unavailable = |error: &dyn std::error::Error| PortError::Unavailable(error.to_string());
        let bytes =
            serde_json::to_vec(&MadeMessage::Made(Box::new(made.clone()))).map_err(|error| unavailable(&error))?;
        if bytes.len() <= MESSAGE_BYTES_MAX {
            return self.fleet.sign(PayloadType::FLEET_RESULT, &bytes);
        }
        let bytes = serde_json::to_vec(&made).map_err(|error| unavailable(&error))?;
        if bytes.len() as u64 > RESULT_BYTES_MAX {
            let reason = format!("it has {} bytes, and a driver reads {RESULT_BYTES_MAX}", bytes.len());
            return Err(PortError::Unavailable(reason));
        }
        let blobs = self.blobs.clone();
        let put = tokio::task::spawn_blocking(move || blobs.put_bytes(&bytes));
        let digest = put.await.map_err(|error| unavailable(&error))??;
        let bytes = serde_json::to_vec(&MadeMessage::Blob(digest)).map_err(|error| unavailable(&error))?;
        self.fleet.sign(PayloadType::FLEET_RESULT, &bytes)
    }

    /// Tells the driver that a result is in the stream. Returns the next attempt for this machine, if it goes on.
    async fn told(&self, run: &RunId, attempt: &AttemptId) -> Option<Order> {
        for _ in 0..TOLD_MAX {
            let goes_on = !self.is_draining.load(Ordering::Relaxed);
            match self.ask(run, Ask::Made { attempt: attempt.clone(), goes_on }, CLAIM_WAIT).await {
                Some(Answer::Order(order)) => return Some(order),
                None | Some(Answer::Later) => sleep(BEAT).await,
                Some(_) => return None,
            }
        }
        None
    }
}

async fn ask_driver(fleet: &Fleet, machine: &MachineId, run: &RunId, ask: Ask, wait: Duration) -> Option<Answer> {
    let id = fleet.id().ok()?.to_owned();
    let question = Question { protocol: PROTOCOL, fleet: id, run: run.clone(), machine: machine.clone(), ask };
    let text = fleet.sign(PayloadType::FLEET_QUESTION, &serde_json::to_vec(&question).ok()?).ok()?;
    let jetstream = &fleet.jetstream;
    let answer = jetstream.request(jetstream.name.questions(run), text.into(), wait).await.ok()?;
    serde_json::from_slice(&answer.payload).ok()
}

/// Ends a task when it is dropped.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The budget of the run, which its driver keeps.
struct DriverTill {
    fleet: Fleet,
    machine: MachineId,
    run: RunId,
    attempt: AttemptId,
    stop: Arc<AtomicBool>,
    /// The amount that the attempt has paid or reserved. One call at a time asks the driver.
    held: Mutex<Spend>,
    runtime: Handle,
}

impl fmt::Debug for DriverTill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverTill").field("attempt", &self.attempt).field("held", &self.held).finish_non_exhaustive()
    }
}

impl Till for DriverTill {
    /// Asks the driver until there is one that decides, or until the attempt must stop.
    fn reserve(&self, node: &NodeId, wanted: Spend) -> Result<(), Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stop.load(Ordering::Relaxed) {
            let ask = Ask::Reserve { attempt: self.attempt.clone(), node: node.clone(), held: *held, wanted };
            let (fleet, machine, run) = (self.fleet.clone(), self.machine.clone(), self.run.clone());
            let (answer, answered) = mpsc::sync_channel(1);
            // This thread may belong to a guest, and must not run the tasks of the runtime.
            self.runtime.spawn(async move {
                let _gone = answer.send(ask_driver(&fleet, &machine, &run, ask, CLAIM_WAIT).await);
            });
            match answered.recv().ok().flatten() {
                Some(Answer::Granted) => {
                    *held = held.plus(wanted);
                    return Ok(());
                }
                Some(Answer::Denied(failure)) => return Err(*failure),
                Some(Answer::Overtaken) => break,
                _ => std::thread::sleep(BEAT),
            }
        }
        let reason = "the attempt was stopped before the driver of the run allowed the call";
        Err(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, reason))
    }

    fn settle(&self, _node: &NodeId, reserved: Spend, spent: Spend) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // The driver learns it with the next question, or with the result.
        *held = held.minus(reserved).plus(spent);
    }
}

/// The signs of life of an attempt.
struct Beats {
    fleet: Fleet,
    machine: MachineId,
    run: RunId,
    attempt: AttemptId,
    control: AttemptControl,
    /// Set if the result does not count any more.
    is_overtaken: Arc<AtomicBool>,
}

impl Beats {
    /// Sends signs of life until the future is dropped, and passes on what the driver answers.
    async fn send(self) {
        let mut heard = Instant::now();
        loop {
            let AttemptControl { pulse, steering, .. } = &self.control;
            let (counts, waits_for, steered) = (pulse.counts(), pulse.waits_for(), steering.count());
            let ask = Ask::Beat { attempt: self.attempt.clone(), counts, waits_for, steered };
            match ask_driver(&self.fleet, &self.machine, &self.run, ask, BEAT * 3).await {
                Some(Answer::GoOn { steering: messages }) => {
                    heard = Instant::now();
                    messages.into_iter().for_each(|message| steering.push(message));
                }
                Some(Answer::Stop) => {
                    heard = Instant::now();
                    jail::cancel(&self.control.stop);
                }
                Some(Answer::Overtaken | Answer::NotNeeded) => {
                    return self.give_up("the run does not wait for it any more");
                }
                // There is no driver at the moment. The attempt goes on while the servers are there.
                _ => {
                    let jetstream = &self.fleet.jetstream;
                    if jetstream.last(&jetstream.name.run(&self.run)).await.is_ok() {
                        heard = Instant::now();
                    }
                }
            }
            if heard.elapsed() > SILENCE_MAX {
                return self.give_up("no server has answered for 20 seconds");
            }
            sleep(BEAT).await;
        }
    }

    fn give_up(&self, reason: &str) {
        tracing::warn!(attempt = %self.attempt, reason, "the attempt ends");
        self.is_overtaken.store(true, Ordering::Relaxed);
        jail::cancel(&self.control.stop);
    }
}
