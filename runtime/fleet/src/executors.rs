//! The machines of a fleet, as the driver of a run sees them.
//!
//! The driver waits for a machine that asks for a task, claims the attempt for it, and waits for the result in the stream. A
//! machine that is silent for the lease of the fleet has lost its attempt, which is then made again by whoever asks for it. The attempts
//! outlive the driver: another one adopts them, and finds the results of those that have ended meanwhile.

use crate::blobs::ObjectBlobs;
use crate::caller::{AnswerSigner, lock};
use crate::desk::{Desk, FleetSeat, Look, Running, Tasks, Waiting, Wanted};
use crate::eligibility::Eligibility;
use crate::fleet::Fleet;
use crate::held::HeldLease;
use crate::jetstream::{JetStream, Publish};
use crate::result::ExpectedResult;
use crate::run_key::Secrecy;
use crate::wire::{Answer, Pointer};
use futures_util::StreamExt as _;
use glovebox_engine::assignment::{Assignment, AttemptResult};
use glovebox_engine::driver::{Executors, Fault, MadeAttempt, Seat};
use glovebox_engine::run::ResultCheck;
use glovebox_host::budget::Budget;
use glovebox_journal::event::{AttemptId, Ending, MachineId, Moved, NodeId, RunId, StageFinished, Task};
use glovebox_journal::ports::Delivery;
use glovebox_plan::prepare::executor::Executor;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Time after which a task that no machine asks for is pointed to again, for the first time and later. The pointer that came
/// with the record may be in the hands of a machine that died.
const OFFER_AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];
/// Time without a machine after which the people who follow the run are told.
const NOBODY_AFTER: Duration = Duration::from_secs(6);
/// How long the next stage of a branch waits for the machine that made the last one, by default; and if stages left files at ignored
/// paths there.
const WAIT_WARM: Duration = Duration::from_secs(5);
const WAIT_WARM_FILES: Duration = Duration::from_secs(600);
/// Number of machines that may be lost with one task before its attempt fails.
const LOSSES_MAX: u32 = 5;
/// Number of questions that are answered at the same time.
const QUESTIONS_MAX: usize = 64;

/// The machines that make the attempts of one run.
pub struct FleetExecutors {
    desk: Arc<Desk>,
    jetstream: JetStream,
    blobs: ObjectBlobs,
    run: RunId,
    secrecy: Secrecy,
    fleet: Fleet,
    check: ResultCheck,
    answering: AbortHandle,
}

impl Drop for FleetExecutors {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

impl FleetExecutors {
    /// Begins to answer the machines that ask about a run.
    ///
    /// # Errors
    ///
    /// No server answers.
    pub(crate) async fn new(
        fleet: &Fleet,
        blobs: ObjectBlobs,
        run: RunId,
        executor: &Executor,
        budget: Budget,
        held: &HeldLease,
        secrecy: &Secrecy,
    ) -> Result<Self, Fault> {
        let jetstream = fleet.jetstream.clone();
        let questions = fleet.client.subscribe(jetstream.name.questions(&run)).await?;
        let (tasks, changed) = (Mutex::default(), Notify::new());
        let plan = &executor.plan;
        let (key, wait_warm) = (secrecy.key().cloned(), plan.placement.wait_warm);
        let (eligibility, plan) = (Eligibility::new(plan).encrypted(key.is_some()), plan.digest());
        let since = Instant::now();
        let signer =
            Arc::new(AnswerSigner { fleet: fleet.clone(), run: run.clone(), key, lease: Arc::clone(held.state()) });
        let desk =
            Arc::new(Desk { plan, wait_warm, eligibility, budget, lease: fleet.lease, signer, since, tasks, changed });
        let (asked, answering, about) = (fleet.clone(), Arc::clone(&desk), run.clone());
        let answering = tokio::spawn(async move {
            // A machine about which the servers must be asked does not keep the others waiting.
            let (asked, desk, about) = (&asked, &answering, &about);
            questions.for_each_concurrent(QUESTIONS_MAX, |message| desk.reply(asked, about, message)).await;
        });
        let (fleet, check, answering) = (fleet.clone(), ResultCheck::new(executor), answering.abort_handle());
        let secrecy = secrecy.clone();
        Ok(Self { desk, fleet, jetstream, blobs, run, secrecy, check, answering })
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
        let Self { fleet, blobs, run, secrecy, check, .. } = self;
        ExpectedResult { fleet, blobs, run, secrecy, check, assignment, machine, role }.find().await
    }

    /// Notes that the machine of an attempt was lost. Returns the result of the attempt if that happened too often.
    fn lose(&self, id: &AttemptId) -> Option<AttemptResult> {
        let mut tasks = self.desk.lock();
        let Running { task, machine, attempt, held, is_given_back, .. } = tasks.running.remove(id)?;
        tasks.left.insert(machine.clone());
        // What it has paid for is handed on to the next attempt, with the answers.
        tasks.held.extend(held.map(|held| (task.clone(), held)));
        tracing::warn!(attempt = %id, ?machine, "an attempt was lost");
        tasks.lost.insert(task.clone());
        // A machine that gives an attempt back has not begun it. The task waits for one that makes it.
        let losses = tasks.losses.entry(task).or_default();
        *losses += u32::from(!is_given_back);
        if *losses < LOSSES_MAX {
            return None;
        }
        let reason = format!("{LOSSES_MAX} machines were lost while they made the attempt");
        let failure = Failure::new(FailureClass::Transient, FailureCode::MACHINE_LOST, reason);
        let finished = StageFinished::new(attempt, Outcome::failed(failure));
        Some(StageFinished { ending: Ending::MachineLost, machine: Some(machine), ..finished }.into())
    }

    /// Returns the machine for which the next task of a branch waits, and until when. `None` if the machine does not take part in the run
    /// any more.
    fn warm(&self, place: &Moved, tasks: &Tasks) -> Option<(MachineId, Instant)> {
        let has_files = place.left.as_ref().is_some_and(|left| left.files > 0);
        let wait = self.desk.wait_warm.unwrap_or(if has_files { WAIT_WARM_FILES } else { WAIT_WARM });
        let is_here = !tasks.left.contains(&place.from);
        is_here.then(|| (place.from.clone(), Instant::now() + wait))
    }

    /// Has a task wait no longer for the machine of its branch if that machine does not say that it is there.
    async fn give_up_warm(&self, task: &Task) {
        let warm = self.desk.lock().wanted.get(task).and_then(|wanted| wanted.warm.clone());
        let Some((machine, until)) = warm.filter(|(_, until)| Instant::now() < *until) else { return };
        if self.fleet.presence(&machine).await.is_some() {
            return;
        }
        tracing::info!(run = %self.run, %task, %machine, ?until, "the machine of a branch is not there any more");
        if let Some(wanted) = self.desk.lock().wanted.get_mut(task) {
            wanted.warm = None;
        }
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
            let Look { seat, may_have_result, is_silent } = self.desk.look(id);
            if may_have_result || is_silent {
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

    async fn seat(&self, delivery: &Delivery, place: Option<&Moved>) -> Result<SeatAt<'e>, Fault> {
        let Self(executors) = *self;
        let (sender, mut taken) = oneshot::channel();
        let was_lost = {
            let mut tasks = executors.desk.lock();
            let third = executors.desk.lease.third();
            let warm = place.and_then(|place| executors.warm(place, &tasks));
            let wanted = Wanted { sender, warm };
            let early = tasks.early.remove(&delivery.task);
            let early = early.filter(|(caller, _)| caller.pending.is_awaited(third));
            match early.filter(|(caller, _)| !wanted.waits_for_other(&caller.machine)) {
                Some((caller, stages)) => drop(wanted.sender.send((caller.or(Answer::NotNeeded), stages))),
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
                () = sleep(wait) => {
                    executors.give_up_warm(&delivery.task).await;
                    executors.offer(delivery).await;
                }
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
        if let Some(caller) = newest {
            caller.order(&order);
        }
        drop(waiting);
        Ok(seated(executors.wait(&assignment, &machine).await?, executors))
    }
}

fn seated<'e>(made: Option<MadeAttempt<FleetSeat>>, executors: &'e FleetExecutors) -> Option<MadeAttempt<SeatAt<'e>>> {
    made.map(|MadeAttempt { result, seat }| MadeAttempt { result, seat: seat.map(|seat| SeatAt { seat, executors }) })
}
