//! The machines of a fleet, as the driver of a run sees them.
//!
//! The driver waits for a machine that asks for a task, claims the attempt for it, and waits for the result in the stream. A
//! machine that is silent for the lease of the fleet has lost its attempt, which is then made again by whoever asks for it. The attempts
//! outlive the driver: another one adopts them, and finds the results of those that have ended meanwhile.

use crate::blobs::ObjectBlobs;
use crate::caller::{Answers, Caller, Claimant, Unanswered, Voice, lock, question};
use crate::eligibility::Eligibility;
use crate::fleet::Fleet;
use crate::held::HeldLease;
use crate::jetstream::{JetStream, Publish};
use crate::lease::Lease;
use crate::result::ExpectedResult;
use crate::statement::Admission;
use crate::wire::{Answer, Ask, Order, Pointer, Question};
use futures_util::StreamExt as _;
use glovebox_engine::assignment::{Assignment, AttemptResult};
use glovebox_engine::driver::{Executors, Fault, MadeAttempt, Seat};
use glovebox_engine::run::{ClaimedTask, ResultCheck};
use glovebox_host::budget::{Budget, Till as _};
use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{Attempt, AttemptId, Digest, Ending, MachineId, NodeId, RunId, StageFinished, Task};
use glovebox_journal::ports::Delivery;
use glovebox_plan::prepare::executor::Executor;
use glovebox_record::placement::MachineFacts;
use glovebox_record::spend::Spend;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Time after which a task that no machine asks for is pointed to again, for the first time and later. The pointer that came
/// with the record may be in the hands of a machine that died.
const OFFER_AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];
/// Time without a machine after which the people who follow the run are told.
const NOBODY_AFTER: Duration = Duration::from_secs(6);
/// Number of machines that may be lost with one task before its attempt fails.
const LOSSES_MAX: u32 = 5;
/// Maximum number of machines that wait for a task for which the driver has not asked yet.
const EARLY_MAX: usize = 64;
/// Number of questions that are answered at the same time.
const QUESTIONS_MAX: usize = 64;
/// Time after which a new driver has adopted all attempts in progress.
const ADOPTED_WITHIN: Duration = Duration::from_secs(1);
/// Maximum length of the reason of a machine, which the people who follow the run are told.
const REASON_CHARS_MAX: usize = 1000;

/// The machines that make the attempts of one run.
pub struct FleetExecutors {
    desk: Arc<Desk>,
    jetstream: JetStream,
    blobs: ObjectBlobs,
    run: RunId,
    fleet: Fleet,
    check: ResultCheck,
    answering: AbortHandle,
}

impl Drop for FleetExecutors {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// The tasks for which machines are wanted, and the attempts in progress.
struct Desk {
    plan: Digest,
    /// Which machines may make which stages.
    eligibility: Eligibility,
    /// The budget of the run.
    budget: Budget,
    lease: Lease,
    voice: Arc<Voice>,
    /// When this driver began to answer.
    since: Instant,
    tasks: Mutex<Tasks>,
    changed: Notify,
}

#[derive(Default)]
struct Tasks {
    wanted: HashMap<Task, oneshot::Sender<Claimant>>,
    /// Machines that asked for a task just before the driver did.
    early: HashMap<Task, Claimant>,
    running: BTreeMap<AttemptId, Running>,
    /// The machines whose attempt is committed while they wait for the next one, by the attempt that they made.
    seated: HashMap<AttemptId, Arc<Mutex<Option<Caller>>>>,
    /// The next order of the machine that made an attempt, for a question that comes twice.
    next: BTreeMap<AttemptId, AttemptId>,
    /// The tasks whose attempts were lost.
    lost: BTreeSet<Task>,
    /// Number of times that machines were lost while they made the attempt of a task.
    losses: HashMap<Task, u32>,
    /// Why the last machine that asked for a task did not make it.
    lacking: HashMap<Task, String>,
}

/// An attempt in progress.
struct Running {
    task: Task,
    attempt: Attempt,
    /// The machine for which the attempt was claimed.
    machine: MachineId,
    /// The stages that the machine can make. `None` for all.
    stages: Option<Arc<BTreeSet<NodeId>>>,
    order: Order,
    stop: Arc<AtomicBool>,
    steering: Steering,
    pulse: Pulse,
    heard: Instant,
    /// The machine that waits for the next attempt, because the result is in the stream.
    made: Option<Caller>,
    /// True if the result may be in the stream, and the driver has not looked since.
    is_made: bool,
    /// True if the machine gave the attempt back.
    is_given_back: bool,
    /// The amount that the attempt has paid or reserved, and its node.
    held: Option<(NodeId, Spend)>,
}

impl Tasks {
    /// Gives a task to a machine, or has the machine wait for the driver's decision.
    fn claim(&mut self, task: Task, Caller { machine, answers }: Caller, can_make: Option<Arc<BTreeSet<NodeId>>>) {
        match self.running.values().find(|running| running.task == task) {
            Some(running) if running.machine == machine => {
                answers.send(&Answer::Order(running.order.clone()));
            }
            Some(_) => answers.send(&Answer::NotNeeded),
            None => match self.wanted.remove(&task) {
                // The driver may have given up the request meanwhile: then the caller is dropped, and told so.
                Some(wanted) => drop(wanted.send((Caller { machine, answers }, can_make))),
                None => {
                    if self.early.len() >= EARLY_MAX {
                        self.early.clear();
                    }
                    let answers = answers.or(Answer::Later);
                    self.early.insert(task, (Caller { machine, answers }, can_make));
                }
            },
        }
    }

    /// As [`Tasks::claim`], unless the machine lacks something for the task.
    fn claim_or_refuse(
        &mut self,
        task: Task,
        lacks: &[String],
        caller: Caller,
        can_make: Option<Arc<BTreeSet<NodeId>>>,
    ) {
        if lacks.is_empty() {
            return self.claim(task, caller, can_make);
        }
        let Caller { machine, answers } = caller;
        let reason = format!("`{}` needs {}", task.node, lacks.join(", "));
        // A machine can ask for tasks that do not exist.
        if self.wanted.contains_key(&task) {
            self.lacking.insert(task, format!("`{machine}` lacks {}", lacks.join(", ")));
        }
        answers.send(&Answer::Refused { reason });
    }

    /// Notes that a machine does not make an attempt. Returns false if the machine does not have it.
    fn give_back(&mut self, attempt: &AttemptId, machine: &MachineId, reason: &str) -> bool {
        let running = self.running.get_mut(attempt);
        let Some(running) = running.filter(|running| running.machine == *machine) else { return false };
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        tracing::warn!(%attempt, %machine, reason, "a machine gave an attempt back");
        running.is_given_back = true;
        let task = running.task.clone();
        self.lacking.insert(task, format!("`{machine}` gave it back: {reason}"));
        true
    }
}

impl FleetExecutors {
    /// Begins to answer the machines that ask about a run.
    ///
    /// # Errors
    ///
    /// No server answers.
    pub async fn new(
        fleet: &Fleet,
        blobs: ObjectBlobs,
        run: RunId,
        executor: &Executor,
        budget: Budget,
        held: &HeldLease,
    ) -> Result<Self, Fault> {
        let jetstream = fleet.jetstream.clone();
        let questions = fleet.client.subscribe(jetstream.name.questions(&run)).await?;
        let (tasks, changed) = (Mutex::default(), Notify::new());
        let plan = &executor.plan;
        let (eligibility, plan, since) = (Eligibility::new(plan), plan.digest(), Instant::now());
        let voice = Arc::new(Voice { client: fleet.client.clone(), lease: Arc::clone(held.state()) });
        let desk = Desk { plan, eligibility, budget, lease: fleet.lease, voice, since, tasks, changed };
        let desk = Arc::new(desk);
        let (asked, answering, about) = (fleet.clone(), Arc::clone(&desk), run.clone());
        let answering = tokio::spawn(async move {
            // A machine about which the servers must be asked does not keep the others waiting.
            let (asked, desk, about) = (&asked, &answering, &about);
            questions.for_each_concurrent(QUESTIONS_MAX, |message| desk.reply(asked, about, message)).await;
        });
        let (fleet, check, answering) = (fleet.clone(), ResultCheck::new(executor), answering.abort_handle());
        Ok(Self { desk, fleet, jetstream, blobs, run, check, answering })
    }

    /// Points to a task again.
    async fn offer(&self, delivery: &Delivery) {
        let pointer = Pointer::new(&self.run, delivery.ready_seq, Some(delivery.task.clone()));
        let subject = self.jetstream.name.stage(&self.run, &delivery.task);
        let message = Publish { subject, payload: pointer.payload() };
        if let Err(error) = self.jetstream.append(&[message], None, "").await {
            tracing::debug!(%error, "a task could not be offered again");
        }
    }

    /// Reads the result of an attempt that a machine was given. `None` if no stored one counts.
    async fn result(&self, assignment: &Assignment, machine: &MachineId) -> Result<Option<AttemptResult>, Fault> {
        let role = self.desk.eligibility.role(&assignment.stage());
        let Self { fleet, blobs, run, check, .. } = self;
        ExpectedResult { fleet, blobs, run, check, assignment, machine, role }.find().await
    }

    /// Notes that the machine of an attempt was lost. Returns the result of the attempt if that happened too often.
    fn lose(&self, id: &AttemptId) -> Option<AttemptResult> {
        let mut tasks = self.desk.lock();
        let Running { task, machine, attempt, .. } = tasks.running.remove(id)?;
        tracing::warn!(attempt = %id, ?machine, "an attempt was lost");
        tasks.lost.insert(task.clone());
        let losses = tasks.losses.entry(task).or_default();
        *losses += 1;
        if *losses < LOSSES_MAX {
            return None;
        }
        let reason = format!("{LOSSES_MAX} machines were lost while they made the attempt");
        let failure = Failure::new(FailureClass::Transient, FailureCode::MACHINE_LOST, reason);
        let finished = StageFinished::new(attempt, Outcome::failed(failure));
        Some(StageFinished { ending: Ending::MachineLost, machine: Some(machine), ..finished }.into())
    }

    /// Tells the people who follow the run that no machine can make a task.
    fn tell_if_nobody_can(&self, delivery: &Delivery, since: Instant) {
        if since.elapsed() < NOBODY_AFTER {
            return;
        }
        let lacking = self.desk.lock().lacking.get(&delivery.task).cloned();
        let why = lacking.unwrap_or_else(|| "no machine asks for it".to_owned());
        let note = format!("`{}` waits for a machine: {why}", delivery.task.node);
        tracing::warn!(run = %self.run, note, "a stage waits");
        let (client, subject) = (self.fleet.client.clone(), self.jetstream.name.notes(&self.run));
        // A note is only a hint, and may be lost.
        tokio::spawn(async move { client.publish(subject, note.into()).await });
    }

    /// Waits for the result of an attempt. `None` if its machine was lost. Of an adopted attempt, the result may be there already.
    async fn wait(
        &self,
        assignment: &Assignment,
        machine: &MachineId,
    ) -> Result<Option<MadeAttempt<FleetSeat>>, Fault> {
        let id = &assignment.attempt.id;
        let _running = RunningGuard { desk: &self.desk, id };
        loop {
            let changed = self.desk.changed.notified();
            let Look { seat, is_made, is_silent } = self.desk.look(id);
            if is_made || is_silent {
                if let Some(result) = self.result(assignment, machine).await? {
                    self.desk.settle(id, &result.finished);
                    // The machine may have asked meanwhile.
                    let seat = seat.or_else(|| self.desk.look(id).seat);
                    return Ok(Some(MadeAttempt { result, seat }));
                }
                if is_silent {
                    return Ok(self.lose(id).map(|result| MadeAttempt { result, seat: None }));
                }
            }
            let _quiet = timeout(self.desk.lease.beat(), changed).await;
        }
    }
}

/// What is known of an attempt in progress.
struct Look {
    /// The machine that waits for the next attempt.
    seat: Option<FleetSeat>,
    /// True if the result may be in the stream.
    is_made: bool,
    /// True if the attempt is lost, unless it has a result.
    is_silent: bool,
}

/// Forgets an attempt when nobody waits for it any more.
struct RunningGuard<'a> {
    desk: &'a Desk,
    id: &'a AttemptId,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.desk.lock().running.remove(self.id);
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question that arrived, if it may be asked.
    async fn reply(&self, fleet: &Fleet, run: &RunId, message: async_nats::Message) {
        let answers = Answers::new(&self.voice, message.reply);
        // Another driver asks whether the run has one.
        if message.payload.is_empty() {
            return answers.send(&Answer::NotNeeded);
        }
        match question(fleet, run, &message.payload).await {
            Ok((question, admission)) => self.answer(question, &admission, answers),
            Err(Unanswered::Refused(reason)) => answers.send(&Answer::Refused { reason }),
            Err(Unanswered::Unknown) => answers.withhold(),
        }
    }

    /// Looks at an attempt in progress. The machine that waits for the next one is taken.
    fn look(self: &Arc<Self>, id: &AttemptId) -> Look {
        let mut tasks = self.lock();
        let Tasks { running, seated, .. } = &mut *tasks;
        let Some(running) = running.get_mut(id) else { return Look { seat: None, is_made: false, is_silent: true } };
        let is_silent = running.is_given_back || running.heard.elapsed() > self.lease.duration();
        let seat = running.made.take().map(|caller| {
            let (machine, newest) = (caller.machine.clone(), Arc::new(Mutex::new(Some(caller))));
            seated.insert(id.clone(), Arc::clone(&newest));
            let waiting = Waiting { desk: Arc::clone(self), after: Some(id.clone()), newest };
            FleetSeat { machine, waiting, stages: running.stages.clone() }
        });
        Look { seat, is_made: std::mem::take(&mut running.is_made), is_silent }
    }

    /// Returns what a machine lacks for a task, and the stages that it can make.
    fn eligible(
        &self,
        task: &Task,
        facts: &MachineFacts,
        admission: &Admission,
    ) -> (Vec<String>, Option<Arc<BTreeSet<NodeId>>>) {
        let lacks = self.eligibility.lacking(&task.stage(), facts, admission);
        (lacks, self.eligibility.can_make(facts, admission))
    }

    /// Answers a machine, now or when the driver has decided.
    fn answer(&self, question: Question, admission: &Admission, answers: Answers) {
        let Question { machine, ask, .. } = question;
        let mut tasks = self.lock();
        match ask {
            Ask::Claim { task, facts, .. } => {
                let (lacks, can_make) = self.eligible(&task, &facts, admission);
                tasks.claim_or_refuse(task, &lacks, Caller { machine, answers }, can_make);
            }
            Ask::Beat { attempt, counts, waits_for, steered } => match tasks.running.get_mut(&attempt) {
                Some(running) if running.machine == machine => {
                    running.heard = Instant::now();
                    running.pulse.copy_from(counts, waits_for);
                    answers.send(&match running.stop.load(Ordering::Relaxed) {
                        true => Answer::Stop,
                        false => Answer::GoOn { steering: running.steering.after(steered) },
                    });
                }
                Some(_) => answers.send(&Answer::Overtaken),
                None => answers.send(&self.unknown()),
            },
            Ask::Reserve { attempt, node, held, wanted } => {
                let running = tasks.running.get_mut(&attempt).filter(|running| running.machine == machine);
                answers.send(&match running {
                    // A machine spends from the budget of its own node only.
                    Some(running) if running.task.node != node && running.task.stage() != node => {
                        Answer::Refused { reason: format!("the attempt is not one of `{node}`") }
                    }
                    Some(running) => self.reserve(running, node, held, wanted),
                    None => self.unknown(),
                });
            }
            Ask::GiveBack { attempt, reason } => {
                if tasks.give_back(&attempt, &machine, &reason) {
                    drop(tasks);
                    self.changed.notify_waiters();
                }
                answers.send(&Answer::NotNeeded);
            }
            Ask::Made { attempt, goes_on } => {
                let next = tasks.next.get(&attempt).and_then(|next| tasks.running.get(next));
                if let Some(next) = next.filter(|next| next.machine == machine) {
                    return answers.send(&Answer::Order(next.order.clone()));
                }
                match tasks.running.get_mut(&attempt).filter(|running| running.machine == machine) {
                    Some(running) => {
                        running.is_made = true;
                        // A machine that does not go on is told so by the caller that is dropped.
                        running.made = goes_on.then_some(Caller { machine, answers });
                        running.heard = Instant::now();
                        drop(tasks);
                        self.changed.notify_waiters();
                    }
                    None => match tasks.seated.get(&attempt) {
                        // The driver commits the result. The machine waits for the answer to this question from now on.
                        Some(newest) if goes_on => {
                            let mut newest = lock(newest);
                            // Another machine cannot take the place.
                            if newest.as_ref().is_some_and(|caller| caller.machine == machine) {
                                drop(newest.replace(Caller { machine, answers }));
                            }
                        }
                        None if self.since.elapsed() < ADOPTED_WITHIN => answers.send(&Answer::Later),
                        _ => answers.send(&Answer::NotNeeded),
                    },
                }
            }
        }
    }

    /// Reserves an amount for a call of an attempt. `held` is what the attempt has paid or reserved so far, as its machine
    /// knows it, so a question that comes twice reserves nothing twice.
    fn reserve(&self, running: &mut Running, node: NodeId, held: Spend, wanted: Spend) -> Answer {
        let before = running.held.as_ref().map(|(_, held)| *held).unwrap_or_default();
        self.budget.settle(&node, before, held);
        let reserved = self.budget.reserve(&node, wanted);
        running.held = Some((node, if reserved.is_ok() { held.plus(wanted) } else { held }));
        match reserved {
            Ok(()) => Answer::Granted,
            Err(failure) => Answer::Denied(Box::new(failure)),
        }
    }

    /// Replaces what a finished attempt has reserved by what it has spent.
    fn settle(&self, attempt: &AttemptId, finished: &StageFinished) {
        let held = self.lock().running.get_mut(attempt).and_then(|running| running.held.take());
        if let Some((node, held)) = held {
            let model = &finished.model;
            self.budget.settle(&node, held, Spend::new(model.tokens, model.cost));
        }
    }

    /// Returns the answer about an attempt that is not known. A driver that has just taken the run over may still adopt it.
    fn unknown(&self) -> Answer {
        if self.since.elapsed() < self.lease.duration() { Answer::Later } else { Answer::Overtaken }
    }

    /// Begins to wait for an attempt. The result of an adopted one may be there already.
    fn begin(
        &self,
        assignment: &Assignment,
        machine: MachineId,
        stages: Option<Arc<BTreeSet<NodeId>>>,
        is_adopted: bool,
    ) -> Order {
        let (attempt, task) = (assignment.attempt.id.clone(), assignment.attempt.task.clone());
        let claimed = ClaimedTask { attempt: attempt.clone(), branch: task.branch.clone(), token: assignment.token };
        let order = Order { task: claimed, plan: self.plan };
        let running = Running {
            task,
            attempt: assignment.attempt.clone(),
            machine,
            stages,
            order: order.clone(),
            stop: Arc::clone(&assignment.stop),
            steering: assignment.steering.clone(),
            pulse: assignment.pulse.clone(),
            heard: Instant::now(),
            made: None,
            is_made: is_adopted,
            is_given_back: false,
            held: None,
        };
        self.lock().running.insert(attempt, running);
        order
    }
}

/// A machine that waits for an attempt.
pub struct FleetSeat {
    machine: MachineId,
    waiting: Waiting,
    /// The stages that the machine can make. `None` for all.
    stages: Option<Arc<BTreeSet<NodeId>>>,
}

/// The newest question of a machine for an attempt. If it is dropped, the machine gets none.
struct Waiting {
    desk: Arc<Desk>,
    /// The attempt that the machine made before.
    after: Option<AttemptId>,
    newest: Arc<Mutex<Option<Caller>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(after) = &self.after {
            self.desk.lock().seated.remove(after);
        }
    }
}

/// A seat of a fleet, with the executors that wait for its result.
pub struct SeatAt<'e> {
    seat: FleetSeat,
    executors: &'e FleetExecutors,
}

/// The machines of a fleet, borrowed by a driver.
#[derive(Clone, Copy)]
pub struct Machines<'e>(pub &'e FleetExecutors);

impl<'e> Executors for Machines<'e> {
    type Seat = SeatAt<'e>;

    const OUTLIVE_DRIVER: bool = true;

    async fn seat(&self, delivery: &Delivery) -> Result<SeatAt<'e>, Fault> {
        let Self(executors) = *self;
        let (wanted, mut taken) = oneshot::channel();
        let was_lost = {
            let mut tasks = executors.desk.lock();
            let third = executors.desk.lease.third();
            let early = tasks.early.remove(&delivery.task);
            match early.filter(|(caller, _)| caller.answers.is_awaited(third)) {
                Some((Caller { machine, answers }, stages)) => {
                    let answers = answers.or(Answer::NotNeeded);
                    drop(wanted.send((Caller { machine, answers }, stages)));
                }
                None => drop(tasks.wanted.insert(delivery.task.clone(), wanted)),
            }
            tasks.lost.remove(&delivery.task)
        };
        let begun = Instant::now();
        let mut wait = if was_lost { Duration::ZERO } else { OFFER_AGAIN[0] };
        loop {
            tokio::select! {
                biased;
                claimant = &mut taken => {
                    let (caller, stages) = claimant?;
                    let (machine, desk) = (caller.machine.clone(), Arc::clone(&executors.desk));
                    let waiting = Waiting { desk, after: None, newest: Arc::new(Mutex::new(Some(caller))) };
                    return Ok(SeatAt { seat: FleetSeat { machine, waiting, stages }, executors });
                }
                () = sleep(wait) => executors.offer(delivery).await,
            }
            executors.tell_if_nobody_can(delivery, begun);
            wait = OFFER_AGAIN[1];
        }
    }

    async fn adopt(&self, assignment: Assignment) -> Result<Option<MadeAttempt<SeatAt<'e>>>, Fault> {
        let Self(executors) = *self;
        // The record says for which machine the attempt was claimed. An attempt of a driver ended with it.
        let Some(machine) = assignment.branch.open().and_then(|open| open.machine.clone()) else { return Ok(None) };
        executors.desk.begin(&assignment, machine.clone(), None, true);
        // Nothing is known here of the stages that the machine can make, so it asks for the next one like any other.
        let made = executors.wait(&assignment, &machine).await?;
        Ok(made.map(|MadeAttempt { result, .. }| MadeAttempt { result, seat: None }))
    }
}

impl Seat for SeatAt<'_> {
    fn machine(&self) -> Option<&MachineId> {
        Some(&self.seat.machine)
    }

    fn stages(&self) -> Option<&Arc<BTreeSet<NodeId>>> {
        self.seat.stages.as_ref()
    }

    async fn make(self, assignment: Assignment) -> Result<Option<MadeAttempt<Self>>, Fault> {
        let Self { seat: FleetSeat { machine, waiting, stages }, executors } = self;
        let order = waiting.desk.begin(&assignment, machine.clone(), stages, false);
        if let Some(after) = &waiting.after {
            let mut tasks = waiting.desk.lock();
            let Tasks { running, next, .. } = &mut *tasks;
            next.retain(|_, next| running.contains_key(next));
            next.insert(after.clone(), assignment.attempt.id.clone());
        }
        let newest = lock(&waiting.newest).take();
        if let Some(Caller { answers, .. }) = newest {
            answers.send(&Answer::Order(order));
        }
        drop(waiting);
        Ok(seated(executors.wait(&assignment, &machine).await?, executors))
    }
}

fn seated<'e>(made: Option<MadeAttempt<FleetSeat>>, executors: &'e FleetExecutors) -> Option<MadeAttempt<SeatAt<'e>>> {
    made.map(|MadeAttempt { result, seat }| MadeAttempt { result, seat: seat.map(|seat| SeatAt { seat, executors }) })
}
