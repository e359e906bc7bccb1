//! A machine of a fleet: it asks for attempts, makes them, and stores their results.
//!
//! A seat makes one attempt at a time. It takes a pointer from the queue, asks the driver of the run for the attempt, and tells
//! the driver that it lives while it works. The result is in the stream before anybody is told about it, so it counts also if
//! the driver dies meanwhile. A machine that hears neither a driver nor the stream for two thirds of the lease ends its attempt:
//! another machine may have it soon.

use crate::blobs::ObjectBlobs;
use crate::consumer::{Consumer, Leased};
use crate::exchanges::AttemptExchanges;
use crate::fleet::{Fleet, FleetError};
use crate::jetstream::{JetStream, Publish, RequestError};
use crate::log::NatsLog;
use crate::question::{DriverAnswer, NoAnswer, ask_driver};
use crate::repetition::patiently;
use crate::result::RESULT_BYTES_MAX;
use crate::run_key::{SealedKey, Secrecy, TextKind};
use crate::wire::{Answer, Ask, Made, MadeMessage, Order, PROTOCOL, Pointer};
use glovebox_engine::assignment::AttemptResult;
use glovebox_engine::run::{AttemptControl, ClaimedTask, MachineError, MachineRun};
use glovebox_host::budget::Till;
use glovebox_jail::jail;
use glovebox_journal::event::{AttemptId, Digest, MachineId, NodeId, RunId, Task};
use glovebox_journal::ports::{BlobStore as _, PortError};
use glovebox_plan::plan::ProgramFolders;
use glovebox_record::placement::{MachineFacts, ProgramName};
use glovebox_record::spend::Spend;
use glovebox_record::{Failure, FailureClass, FailureCode};
use glovebox_signing::envelope::PayloadType;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

/// Delay before a pointer is delivered again whose run has no driver at the moment, or whose driver does not know yet.
const LATER: Duration = Duration::from_millis(500);
/// How long a machine leaves the stages of a run that it cannot make to others.
const CANNOT_FOR: Duration = Duration::from_secs(300);
/// Delay before a task is offered to other machines, or to this one again, after the driver did not give it to this one.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// Number of times that a machine asks for a task without an answer. The driver points to it again if it needs it.
const CLAIMS_MAX: u64 = 120;
/// Number of times that a driver is asked for a task, because it does not answer or asks back, before the task is left to others.
const CLAIM_ROUNDS: u32 = 2;
/// Time after which no driver is told of a result any more, in leases. The next driver finds the result by itself.
const TOLD_LEASES: u32 = 2;
/// Maximum size in bytes of a result that is in its message. The envelope has it in base64, and a server accepts messages of
/// 1 MiB by default.
const MESSAGE_BYTES_MAX: usize = 640 * 1024;
/// How long a driver has to say that it drives a run.
const DRIVEN_WITHIN: Duration = Duration::from_secs(1);
/// Delay after an error of the servers.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The run of an attempt, prepared on this machine.
pub type RunHere = MachineRun<NatsLog, ObjectBlobs>;

/// Why a run is not prepared on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPrepared {
    /// The stores did not answer. A later try may succeed.
    Unavailable(String),
    /// This machine cannot make the stages of the run.
    Impossible(String),
}

/// Prepares runs on this machine.
pub trait Prepare {
    /// Returns a run that is prepared, or prepares it: its files, and its plan, which must have this digest.
    fn run(&self, run: &RunId, plan: &Digest) -> impl Future<Output = Result<Arc<RunHere>, NotPrepared>>;

    /// Looks for programs where commands of a run find them, and returns which are there.
    fn programs(&self, programs: &BTreeSet<ProgramName>, folders: ProgramFolders) -> BTreeMap<ProgramName, bool>;

    /// Removes everything of a run from this machine that nothing else needs.
    fn remove(&self, run: &RunId) -> impl Future<Output = ()>;
}

/// A machine of a fleet.
pub struct Machine {
    fleet: Fleet,
    jetstream: JetStream,
    log: Arc<NatsLog>,
    id: MachineId,
    stages: Consumer,
    facts: MachineFacts,
    is_draining: Arc<AtomicBool>,
    /// The runs whose stages this machine cannot make, and since when.
    cannot: Mutex<HashMap<RunId, Instant>>,
    /// The attempts that seats of this machine make. A driver that repeats an order does not know which seat got it.
    making: Mutex<HashSet<AttemptId>>,
    /// Number of them.
    busy: Arc<AtomicUsize>,
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
        id: MachineId,
        facts: MachineFacts,
        is_draining: Arc<AtomicBool>,
    ) -> Result<Self, FleetError> {
        let jetstream = fleet.jetstream.clone();
        let pointers = jetstream.name.stages();
        let stages = patiently(fleet.patience, || jetstream.consumer("stages", &pointers, fleet.lease)).await;
        let stages = stages.map_err(|error| fleet.failed(error))?;
        let (fleet, cannot, making, busy) = (fleet.clone(), Mutex::default(), Mutex::default(), Arc::default());
        Ok(Self { fleet, jetstream, log, id, stages, facts, is_draining, cannot, making, busy })
    }

    /// Returns the number of attempts that the machine makes, which changes.
    pub fn busy(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.busy)
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
        match self.claim(leased, &run, seq, &task, prepare).await {
            Some(DriverAnswer { answer: Answer::Order(order), key }) => {
                // From here on, the driver watches the attempt and points to the task again if this machine is lost.
                self.settle(self.jetstream.done(leased).await);
                self.work(&run, GivenOrder { order, key }, prepare).await;
            }
            None | Some(DriverAnswer { answer: Answer::Later, .. }) if leased.deliveries < CLAIMS_MAX => {
                self.settle(self.jetstream.give_back(leased, LATER).await);
            }
            Some(DriverAnswer { answer: Answer::Refused { reason }, .. }) => {
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

    /// Asks the driver of a run for a task, and keeps the pointer to it meanwhile. `None` if there was no answer.
    async fn claim(
        &self,
        leased: &Leased,
        run: &RunId,
        ready_seq: u64,
        task: &Task,
        prepare: &impl Prepare,
    ) -> Option<DriverAnswer> {
        // A program that listens to all subjects keeps the servers from saying that nobody drives the run.
        if !self.fleet.is_driven(run, DRIVEN_WITHIN).await {
            return None;
        }
        let mut facts = self.facts.clone();
        for _ in 0..CLAIM_ROUNDS {
            let ask = Ask::Claim { task: task.clone(), ready_seq, facts: facts.clone() };
            match ask_driver(&self.fleet, &self.id, run, ask).await {
                // Next time they may be installed, so nothing of it is remembered.
                Ok(DriverAnswer { answer: Answer::LookFor { programs, folders }, .. }) => {
                    facts.programs.extend(prepare.programs(&programs, folders));
                }
                Ok(told) => return Some(told),
                Err(NoAnswer::NoDriver) => return None,
                // The driver may have claimed the task for this machine, and its answer was lost or is late.
                Err(NoAnswer::Silence) => self.settle(self.jetstream.extend(leased).await),
            }
        }
        None
    }

    /// Makes an attempt, and all further ones that the driver gives to this machine afterwards.
    async fn work(&self, run: &RunId, first: GivenOrder, prepare: &impl Prepare) {
        let is_encrypted = first.key.is_some();
        let mut next = Some(first);
        while let Some(given) = next.take() {
            // Another seat has it.
            let Some(_making) = Making::begin(self, &given.order.task.attempt) else { break };
            next = self.work_on(run, given, prepare).await;
        }
        if is_encrypted {
            prepare.remove(run).await;
        }
    }

    /// Makes one attempt. Returns the next order.
    async fn work_on(&self, run: &RunId, given: GivenOrder, prepare: &impl Prepare) -> Option<GivenOrder> {
        let GivenOrder { order: Order { task, plan }, key } = given;
        let (attempt, is_encrypted) = (task.attempt.clone(), key.is_some());
        match self.try_work_on(run, task, &plan, key, prepare).await {
            Ok(true) => self.told(run, &attempt).await,
            Ok(false) => None,
            // The driver tells the reason to everybody, and it may name what is secret.
            Err(reason) if is_encrypted => {
                tracing::error!(%run, %attempt, reason, "an attempt of an encrypted run failed here");
                self.give_back(run, attempt, "an error of the machine, which is in its log".to_owned()).await;
                None
            }
            Err(reason) => {
                self.give_back(run, attempt, reason).await;
                None
            }
        }
    }

    /// Makes one attempt, and stores its result. False if the attempt does not count any more.
    async fn try_work_on(
        &self,
        run: &RunId,
        task: ClaimedTask,
        plan: &Digest,
        key: Option<SealedKey>,
        prepare: &impl Prepare,
    ) -> Result<bool, String> {
        let is_encrypted = key.is_some();
        let _lent = key.map(|key| self.fleet.take_key(run, &key)).transpose().map_err(|error| error.to_string())?;
        // The first frame of the run says whether it is encrypted, and with which key.
        let secrecy = self.log.secrecy(run).await.map_err(|error| error.to_string())?;
        if secrecy.key().is_some() != is_encrypted {
            return Err("the order and the first frame of the run do not agree whether it is encrypted".to_owned());
        }
        let watch = Watch::begin(self, run, &task, &secrecy);
        let here = prepare.run(run, plan).await.map_err(|error| match error {
            NotPrepared::Unavailable(reason) => reason,
            NotPrepared::Impossible(reason) => {
                self.cannot.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), Instant::now());
                reason
            }
        })?;
        match self.make(&here, &task, &watch).await? {
            Some(result) => self.store(run, &task, result, &watch, &secrecy).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Gives an attempt back to the driver, which gives it to another machine.
    async fn give_back(&self, run: &RunId, attempt: AttemptId, reason: String) {
        tracing::error!(%run, %attempt, reason, "this machine cannot make an attempt");
        let _another_gets_it = ask_driver(&self.fleet, &self.id, run, Ask::GiveBack { attempt, reason }).await;
        // The reason may concern all attempts, such as a store of blobs that does not answer.
        sleep(AFTER_ERROR).await;
    }

    /// Makes an attempt. `None` if it does not count any more. An error is one of this machine.
    async fn make(&self, here: &RunHere, task: &ClaimedTask, watch: &Watch) -> Result<Option<AttemptResult>, String> {
        let made = here.make(task, &watch.control).await;
        if watch.has_given_up() {
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

    /// Stores the result of an attempt in the stream. The first result of an attempt counts. Nothing runs any more, so the machine
    /// waits for servers longer than an attempt may.
    async fn store(
        &self,
        run: &RunId,
        task: &ClaimedTask,
        result: AttemptResult,
        watch: &Watch,
        secrecy: &Secrecy,
    ) -> Result<(), String> {
        let AttemptResult { ingested, finished } = result;
        let not_stored =
            |error: &dyn std::error::Error| format!("the result of an attempt could not be stored: {error}");
        let fleet = self.fleet.id().map_err(|error| not_stored(&error))?.to_owned();
        let (machine, token) = (self.id.clone(), task.token);
        let made = Made { protocol: PROTOCOL, fleet, machine, token, finished, ingested };
        let message = self.message(made, secrecy).await.map_err(|error| not_stored(&error))?;
        let subject = self.jetstream.name.result(run, &task.attempt);
        let message = Publish { subject: subject.clone(), payload: message.into() };
        let (begun, mut head) = (Instant::now(), 0);
        loop {
            let error = match self.jetstream.append(std::slice::from_ref(&message), Some(head), "").await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if begun.elapsed() > self.fleet.patience || watch.is_overtaken() {
                return Err(not_stored(&error));
            }
            // The answer to an earlier round was lost, or somebody else stored a message that does not count.
            if matches!(error, RequestError::WrongHead)
                && let Ok(Some(last)) = self.jetstream.last(&subject).await
            {
                if last.payload == message.payload {
                    return Ok(());
                }
                head = last.seq;
                continue;
            }
            sleep(self.fleet.lease.beat()).await;
        }
    }

    /// Returns the message of a result, signed.
    async fn message(&self, made: Made, secrecy: &Secrecy) -> Result<Vec<u8>, PortError> {
        let unavailable = |error: &dyn std::error::Error| PortError::Unavailable(error.to_string());
        let sign = |message: &MadeMessage| {
            let mut bytes = serde_json::to_vec(message).map_err(|error| unavailable(&error))?;
            if let Some(key) = secrecy.key() {
                let encrypted = MadeMessage::Encrypted(key.encrypt_text(TextKind::Result, &bytes));
                bytes = serde_json::to_vec(&encrypted).map_err(|error| unavailable(&error))?;
            }
            let signed = self.fleet.sign(PayloadType::FLEET_RESULT, &bytes);
            Ok::<_, PortError>((bytes.len(), signed?))
        };
        let (bytes, message) = sign(&MadeMessage::Made(Box::new(made.clone())))?;
        if bytes <= MESSAGE_BYTES_MAX {
            return Ok(message);
        }
        let bytes = serde_json::to_vec(&made).map_err(|error| unavailable(&error))?;
        if bytes.len() as u64 > RESULT_BYTES_MAX {
            let reason = format!("it has {} bytes, and a driver reads {RESULT_BYTES_MAX}", bytes.len());
            return Err(PortError::Unavailable(reason));
        }
        let blobs = self.log.blobs_with(secrecy);
        let put = tokio::task::spawn_blocking(move || blobs.put_bytes(&bytes));
        let digest = put.await.map_err(|error| unavailable(&error))??;
        sign(&MadeMessage::Blob(digest)).map(|(_, message)| message)
    }

    /// Tells the driver that a result is in the stream. Returns the next attempt for this machine, if it goes on.
    async fn told(&self, run: &RunId, attempt: &AttemptId) -> Option<GivenOrder> {
        let (begun, lease) = (Instant::now(), self.fleet.lease);
        while begun.elapsed() < lease.duration() * TOLD_LEASES {
            let goes_on = !self.is_draining.load(Ordering::Relaxed);
            let ask = Ask::Made { attempt: attempt.clone(), goes_on };
            match ask_driver(&self.fleet, &self.id, run, ask).await {
                Ok(DriverAnswer { answer: Answer::Order(order), key }) => return Some(GivenOrder { order, key }),
                Err(_) | Ok(DriverAnswer { answer: Answer::Later, .. }) => sleep(lease.beat()).await,
                Ok(_) => return None,
            }
        }
        None
    }
}

/// An order, and the key of its run if that is encrypted.
struct GivenOrder {
    order: Order,
    key: Option<SealedKey>,
}

/// An attempt that a seat of this machine makes. It ends with the value.
struct Making<'a> {
    machine: &'a Machine,
    attempt: AttemptId,
}

impl<'a> Making<'a> {
    /// Returns `None` if another seat makes the attempt.
    fn begin(machine: &'a Machine, attempt: &AttemptId) -> Option<Self> {
        let is_new = machine.making.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt.clone());
        is_new.then(|| {
            machine.busy.fetch_add(1, Ordering::Relaxed);
            Self { machine, attempt: attempt.clone() }
        })
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.machine.making.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.attempt);
        self.machine.busy.fetch_sub(1, Ordering::Relaxed);
    }
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
                let _gone = answer.send(ask_driver(&fleet, &machine, &run, ask).await);
            });
            match answered.recv().map(|told| told.map(|told| told.answer)) {
                Ok(Ok(Answer::Granted)) => {
                    *held = held.plus(wanted);
                    return Ok(());
                }
                Ok(Ok(Answer::Denied(failure))) => return Err(*failure),
                Ok(Ok(Answer::Overtaken)) => break,
                _ => std::thread::sleep(self.fleet.lease.beat()),
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

/// Watches over an attempt from its order until its result is stored.
struct Watch {
    control: AttemptControl,
    end: Arc<Mutex<Option<EarlyEnd>>>,
    _beating: AbortOnDrop,
}

/// Why an attempt ends before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EarlyEnd {
    /// The run does not wait for it any more.
    Overtaken,
    /// Nobody was heard for so long that another machine may have it.
    Silence,
}

impl Watch {
    fn begin(machine: &Machine, run: &RunId, task: &ClaimedTask, secrecy: &Secrecy) -> Self {
        let attempt = &task.attempt;
        let till = DriverTill {
            fleet: machine.fleet.clone(),
            machine: machine.id.clone(),
            run: run.clone(),
            attempt: attempt.clone(),
            stop: Arc::default(),
            held: Mutex::default(),
            runtime: Handle::current(),
        };
        let control = AttemptControl { stop: Arc::clone(&till.stop), ..AttemptControl::default() };
        let exchanges = Arc::new(AttemptExchanges {
            fleet: machine.fleet.clone(),
            blobs: machine.log.blobs_with(secrecy),
            secrecy: secrecy.clone(),
            run: run.clone(),
            token: task.token,
            kept: Arc::default(),
            stop: Arc::clone(&control.stop),
            runtime: Handle::current(),
        });
        let control = AttemptControl { till: Some(Arc::new(till)), exchanges: Some(exchanges), ..control };
        let end = Arc::default();
        let beats = Beats {
            fleet: machine.fleet.clone(),
            machine: machine.id.clone(),
            run: run.clone(),
            attempt: attempt.clone(),
            control: control.clone(),
            end: Arc::clone(&end),
        };
        let beating = AbortOnDrop(tokio::spawn(beats.send()).abort_handle());
        Self { control, end, _beating: beating }
    }

    fn early_end(&self) -> Option<EarlyEnd> {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_given_up(&self) -> bool {
        self.early_end().is_some()
    }

    fn is_overtaken(&self) -> bool {
        self.early_end() == Some(EarlyEnd::Overtaken)
    }
}

/// The signs of life of an attempt.
struct Beats {
    fleet: Fleet,
    machine: MachineId,
    run: RunId,
    attempt: AttemptId,
    control: AttemptControl,
    end: Arc<Mutex<Option<EarlyEnd>>>,
}

impl Beats {
    /// Sends signs of life until the future is dropped, and passes on what the driver answers.
    async fn send(self) {
        let (mut heard, lease) = (Instant::now(), self.fleet.lease);
        loop {
            let sent = Instant::now();
            // The driver counts from when it gets the question, which is later. A machine that was stopped for too long ends at once.
            match timeout_at(heard + lease.silence_max(), self.beat()).await {
                Ok(Ok(true)) => heard = sent,
                Ok(Ok(false)) => {}
                Ok(Err(end)) => return self.give_up(end),
                Err(_) => return self.give_up(EarlyEnd::Silence),
            }
            sleep(lease.beat()).await;
        }
    }

    /// Sends a sign of life. Returns whether anybody was heard.
    async fn beat(&self) -> Result<bool, EarlyEnd> {
        let AttemptControl { pulse, steering, .. } = &self.control;
        let (counts, waits_for, steered) = (pulse.counts(), pulse.waits_for(), steering.count());
        let ask = Ask::Beat { attempt: self.attempt.clone(), counts, waits_for, steered };
        match ask_driver(&self.fleet, &self.machine, &self.run, ask).await.map(|told| told.answer) {
            Ok(Answer::GoOn { steering: messages }) => {
                messages.into_iter().for_each(|message| steering.push(message));
                Ok(true)
            }
            Ok(Answer::Stop) => {
                jail::cancel(&self.control.stop);
                Ok(true)
            }
            Ok(Answer::Overtaken | Answer::NotNeeded) => Err(EarlyEnd::Overtaken),
            // There is no driver at the moment. The attempt goes on while the servers are there.
            _ => {
                let jetstream = &self.fleet.jetstream;
                Ok(jetstream.last(&jetstream.name.run(&self.run)).await.is_ok())
            }
        }
    }

    fn give_up(&self, end: EarlyEnd) {
        tracing::warn!(attempt = %self.attempt, ?end, "the attempt ends");
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        jail::cancel(&self.control.stop);
    }
}
