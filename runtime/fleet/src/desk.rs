//! What the driver of a run knows of the machines that ask for its tasks, and what it answers them.

use crate::caller::{AnswerSigner, Caller, Claimant, PendingAnswer, Unanswered, lock, question};
use crate::eligibility::Eligibility;
use crate::fleet::Fleet;
use crate::lease::Lease;
use crate::roster::Signed;
use crate::run_key::SealedKey;
use crate::statement::{Admission, Role};
use crate::wire::{Answer, Ask, Order, Question};
use glovebox_engine::assignment::Assignment;
use glovebox_engine::run::ClaimedTask;
use glovebox_host::budget::{Budget, Till as _};
use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{Attempt, AttemptId, Digest, MachineId, NodeId, RunId, StageFinished, Task};
use glovebox_record::Failure;
use glovebox_record::placement::MachineFacts;
use glovebox_record::spend::Spend;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};

/// Maximum number of machines that wait for a task for which the driver has not asked yet.
const EARLY_MAX: usize = 64;
/// How long such a machine waits. The driver asks a moment after it has made a task ready, unless as many stages of the run are made as
/// may be at a time. The machine has other tasks to make then.
const EARLY_FOR: Duration = Duration::from_millis(300);
/// Time after which a new driver has adopted all attempts in progress.
const ADOPTED_WITHIN: Duration = Duration::from_secs(1);
/// Maximum length of the reason of a machine, which the people who follow the run are told.
const REASON_CHARS_MAX: usize = 1000;

/// The tasks for which machines are wanted, and the attempts in progress.
pub(crate) struct Desk {
    pub(crate) plan: Digest,
    /// How long the next stage of a branch waits for the machine of the last one. `None` for the default.
    pub(crate) wait_warm: Option<Duration>,
    /// Which machines may make which stages.
    pub(crate) eligibility: Eligibility,
    /// The budget of the run.
    pub(crate) budget: Budget,
    pub(crate) lease: Lease,
    pub(crate) signer: Arc<AnswerSigner>,
    /// When this driver began to answer.
    pub(crate) since: Instant,
    pub(crate) tasks: Mutex<Tasks>,
    pub(crate) changed: Notify,
}

#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) wanted: HashMap<Task, Wanted>,
    /// Machines that asked for a task just before the driver did.
    pub(crate) early: HashMap<Task, Claimant>,
    pub(crate) running: BTreeMap<AttemptId, Running>,
    /// The machines whose attempt is committed while they wait for the next one, by the attempt that they made.
    pub(crate) seated: HashMap<AttemptId, Arc<Mutex<Option<Caller>>>>,
    /// The next order of the machine that made an attempt, for a question that comes twice.
    pub(crate) next: BTreeMap<AttemptId, AttemptId>,
    /// The tasks whose attempts were lost.
    pub(crate) lost: BTreeSet<Task>,
    /// Number of times that machines were lost while they made the attempt of a task.
    pub(crate) losses: HashMap<Task, u32>,
    /// What attempts have paid or reserved that were lost or wait for a quota, until the next attempt of the task says how much that is.
    pub(crate) held: HashMap<Task, (NodeId, Spend)>,
    /// Machines that were lost or gave an attempt of the run back. No branch waits for them.
    pub(crate) left: BTreeSet<MachineId>,
    /// Why the last machine that asked for a task did not make it.
    pub(crate) lacking: HashMap<Task, String>,
}

/// A task for which a machine is wanted.
pub(crate) struct Wanted {
    pub(crate) sender: oneshot::Sender<Claimant>,
    /// The machine for which the task waits first, because the branch is there, and until when.
    pub(crate) warm: Option<(MachineId, Instant)>,
}

impl Wanted {
    /// Returns true if the task still waits for another machine.
    pub(crate) fn waits_for_other(&self, machine: &MachineId) -> bool {
        self.warm.as_ref().is_some_and(|(warm, until)| warm != machine && Instant::now() < *until)
    }
}

/// An attempt in progress.
pub(crate) struct Running {
    pub(crate) task: Task,
    pub(crate) attempt: Attempt,
    /// The machine for which the attempt was claimed.
    pub(crate) machine: MachineId,
    /// The stages that the machine can make. `None` for all.
    pub(crate) stages: Option<Arc<BTreeSet<NodeId>>>,
    pub(crate) order: Order,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) steering: Steering,
    pub(crate) pulse: Pulse,
    pub(crate) heard: Instant,
    /// The machine that waits for the next attempt, because the result is in the stream.
    pub(crate) next_caller: Option<Caller>,
    /// True if the result may be in the stream, and the driver has not looked since.
    pub(crate) may_have_result: bool,
    /// True if the machine gave the attempt back.
    pub(crate) is_given_back: bool,
    /// The amount that the attempt has paid or reserved, and its node.
    pub(crate) held: Option<(NodeId, Spend)>,
}

impl Tasks {
    /// Gives a task to a machine, or has the machine wait for the driver's decision.
    fn claim(&mut self, task: Task, caller: Caller, can_make: Option<Arc<BTreeSet<NodeId>>>) {
        match self.running.values().find(|running| running.task == task) {
            Some(running) if running.machine == caller.machine => caller.order(&running.order),
            Some(_) => caller.pending.send(&Answer::NotNeeded),
            None if self.wanted.get(&task).is_some_and(|wanted| wanted.waits_for_other(&caller.machine)) => {
                caller.pending.send(&Answer::Later);
            }
            None => match self.wanted.remove(&task) {
                // The driver may have given up the request meanwhile: then the caller is dropped, and told so.
                Some(wanted) => drop(wanted.sender.send((caller, can_make))),
                None => {
                    if self.early.len() >= EARLY_MAX {
                        self.early.clear();
                    }
                    self.early.insert(task, (caller.or(Answer::Later), can_make));
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
        let Caller { machine, pending, .. } = caller;
        let reason = format!("`{}` needs {}", task.node, lacks.join(", "));
        // A machine can ask for tasks that do not exist.
        if let Some(wanted) = self.wanted.get_mut(&task) {
            wanted.warm = wanted.warm.take().filter(|(warm, _)| *warm != machine);
            self.lacking.insert(task, format!("`{machine}` lacks {}", lacks.join(", ")));
        }
        pending.send(&Answer::Refused { reason });
    }

    /// Returns true if the machine that asked this question waits for a task for which the driver has not asked yet.
    fn is_early(&self, task: &Task, question: Digest) -> bool {
        self.early.get(task).is_some_and(|(caller, _)| caller.pending.question() == question)
    }

    /// Has the machine that asked this question ask again later, if it still waits for the driver to ask for the task.
    fn give_up_early(&mut self, task: &Task, question: Digest) {
        if self.is_early(task, question) {
            self.early.remove(task);
        }
    }

    /// Notes that a machine does not make an attempt. Returns false if the machine does not have it.
    pub(crate) fn give_back(&mut self, attempt: &AttemptId, machine: &MachineId, reason: &str) -> bool {
        let running = self.running.get_mut(attempt);
        let Some(running) = running.filter(|running| running.machine == *machine) else { return false };
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        tracing::warn!(%attempt, %machine, reason, "a machine gave an attempt back");
        running.is_given_back = true;
        self.left.insert(machine.clone());
        let task = running.task.clone();
        self.lacking.insert(task, format!("`{machine}` gave it back: {reason}"));
        true
    }
}

/// What is known of an attempt in progress.
pub(crate) struct Look {
    /// The machine that waits for the next attempt.
    pub(crate) seat: Option<FleetSeat>,
    /// True if the result may be in the stream.
    pub(crate) may_have_result: bool,
    /// True if the attempt is lost, unless it has a result.
    pub(crate) is_silent: bool,
}

impl Desk {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question that arrived, if it may be asked.
    pub(crate) async fn reply(self: &Arc<Self>, fleet: &Fleet, run: &RunId, message: async_nats::Message) {
        let pending = PendingAnswer::new(&self.signer, &message);
        // An empty question asks whether the run has a driver. Drivers and machines ask it.
        if message.payload.is_empty() {
            return pending.send(&Answer::NotNeeded);
        }
        match question(fleet, run, &message.payload).await {
            Ok((question, signed)) => {
                let (asked, claimed) = (pending.question(), question.claimed().cloned());
                self.answer(question, &signed, pending);
                if let Some(task) = claimed.filter(|task| self.lock().is_early(task, asked)) {
                    let desk = Arc::clone(self);
                    tokio::spawn(async move {
                        sleep(EARLY_FOR).await;
                        desk.lock().give_up_early(&task, asked);
                    });
                }
            }
            Err(Unanswered::Refused(reason)) => pending.send(&Answer::Refused { reason }),
            Err(Unanswered::Unknown) => pending.withhold(),
        }
    }

    /// Looks at an attempt in progress. The machine that waits for the next one is taken.
    pub(crate) fn look(self: &Arc<Self>, id: &AttemptId) -> Look {
        let mut tasks = self.lock();
        let Tasks { running, seated, .. } = &mut *tasks;
        let Some(running) = running.get_mut(id) else {
            return Look { seat: None, may_have_result: false, is_silent: true };
        };
        let is_silent = running.is_given_back || running.heard.elapsed() > self.lease.duration();
        let seat = running.next_caller.take().map(|caller| {
            let (machine, newest) = (caller.machine.clone(), Arc::new(Mutex::new(Some(caller))));
            seated.insert(id.clone(), Arc::clone(&newest));
            let waiting = Waiting { desk: Arc::clone(self), after: Some(id.clone()), newest };
            FleetSeat { machine, waiting, stages: running.stages.clone() }
        });
        Look { seat, may_have_result: std::mem::take(&mut running.may_have_result), is_silent }
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

    /// Returns the key of the run for a machine, if the run is encrypted and the machine may have it.
    fn key_for(&self, Signed { machine, admission, .. }: &Signed) -> Option<SealedKey> {
        let AnswerSigner { fleet, run, key, .. } = &*self.signer;
        let key = key.as_ref().filter(|_| admission.has_any(&[Role::Verify]))?;
        key.seal(fleet.id().ok()?, run, machine)
    }

    /// Answers a machine, now or when the driver has decided.
    fn answer(&self, question: Question, signed: &Signed, pending: PendingAnswer) {
        let Question { machine, ask, .. } = question;
        let mut tasks = self.lock();
        match ask {
            Ask::Claim { task, facts, .. } => {
                if let Some((programs, folders)) = self.eligibility.unknown(&task.stage(), &facts, &signed.admission) {
                    return pending.send(&Answer::LookFor { programs, folders });
                }
                let (lacks, can_make) = self.eligible(&task, &facts, &signed.admission);
                let key = if lacks.is_empty() { self.key_for(signed) } else { None };
                tasks.claim_or_refuse(task, &lacks, Caller { machine, key, pending }, can_make);
            }
            Ask::Beat { attempt, counts, waits_for, steered } => match tasks.running.get_mut(&attempt) {
                Some(running) if running.machine == machine => {
                    running.heard = Instant::now();
                    running.pulse.copy_from(counts, waits_for);
                    pending.send(&match running.stop.load(Ordering::Relaxed) {
                        true => Answer::Stop,
                        false => Answer::GoOn { steering: running.steering.after(steered) },
                    });
                }
                Some(_) => pending.send(&Answer::Overtaken),
                None => pending.send(&self.unknown()),
            },
            Ask::Reserve { attempt, node, held, wanted } => {
                let running = tasks.running.get_mut(&attempt).filter(|running| running.machine == machine);
                pending.send(&match running {
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
                pending.send(&Answer::NotNeeded);
            }
            Ask::Made { attempt, goes_on } => {
                drop(tasks);
                self.made(&attempt, goes_on, Caller { machine, key: self.key_for(signed), pending });
            }
        }
    }

    /// Answers a machine whose result is in the stream: with its next attempt, now or when the driver has decided.
    fn made(&self, attempt: &AttemptId, goes_on: bool, caller: Caller) {
        let mut tasks = self.lock();
        let next = tasks.next.get(attempt).and_then(|next| tasks.running.get(next));
        if let Some(next) = next.filter(|next| next.machine == caller.machine) {
            return caller.order(&next.order);
        }
        match tasks.running.get_mut(attempt).filter(|running| running.machine == caller.machine) {
            Some(running) => {
                running.may_have_result = true;
                // A machine that does not go on is told so by the caller that is dropped.
                running.next_caller = goes_on.then_some(caller);
                running.heard = Instant::now();
                drop(tasks);
                self.changed.notify_waiters();
            }
            None => match tasks.seated.get(attempt) {
                // The driver commits the result. The machine waits for the answer to this question from now on.
                Some(newest) if goes_on => {
                    let mut newest = lock(newest);
                    // Another machine cannot take the place.
                    if newest.as_ref().is_some_and(|seated| seated.machine == caller.machine) {
                        drop(newest.replace(caller));
                    }
                }
                None if self.since.elapsed() < ADOPTED_WITHIN => caller.pending.send(&Answer::Later),
                _ => caller.pending.send(&Answer::NotNeeded),
            },
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
    pub(crate) fn settle(&self, attempt: &AttemptId, finished: &StageFinished) {
        let mut tasks = self.lock();
        let held = tasks.running.get_mut(attempt).and_then(|running| running.held.take());
        if let Some((node, held)) = held {
            let spent = Spend::new(finished.model.tokens, finished.model.cost);
            self.budget.settle(&node, held, spent);
            // The attempt is made again with the answers that it has, and then says again what they cost.
            if finished.outcome.failure.as_ref().is_some_and(Failure::is_of_quota) {
                tasks.held.insert(finished.attempt.task.clone(), (node, spent));
            }
        }
    }

    /// Returns the answer about an attempt that is not known. A driver that has just taken the run over may still adopt it.
    fn unknown(&self) -> Answer {
        if self.since.elapsed() < self.lease.duration() { Answer::Later } else { Answer::Overtaken }
    }

    /// Begins to wait for an attempt. The result of an adopted one may be there already.
    pub(crate) fn begin(
        &self,
        assignment: &Assignment,
        machine: MachineId,
        stages: Option<Arc<BTreeSet<NodeId>>>,
        is_adopted: bool,
    ) -> Order {
        let (attempt, task) = (assignment.attempt.id.clone(), assignment.attempt.task.clone());
        let mut tasks = self.lock();
        let held = tasks.held.remove(&task);
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
            next_caller: None,
            may_have_result: is_adopted,
            is_given_back: false,
            held,
        };
        tasks.running.insert(attempt, running);
        order
    }
}

/// A machine that waits for an attempt.
pub(crate) struct FleetSeat {
    pub(crate) machine: MachineId,
    pub(crate) waiting: Waiting,
    /// The stages that the machine can make. `None` for all.
    pub(crate) stages: Option<Arc<BTreeSet<NodeId>>>,
}

/// The newest question of a machine for an attempt. If it is dropped, the machine gets none.
pub(crate) struct Waiting {
    pub(crate) desk: Arc<Desk>,
    /// The attempt that the machine made before.
    pub(crate) after: Option<AttemptId>,
    pub(crate) newest: Arc<Mutex<Option<Caller>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(after) = &self.after {
            self.desk.lock().seated.remove(after);
        }
    }
}
