//! Machines in this process whose attempts outlive a driver, as those of other computers do.
//!
//! A machine works on one attempt at a time, also while no driver waits for it, and keeps the result. A machine can be
//! restarted, which loses the attempt that it works on.

use glovebox_engine::assignment::{Assignment, AttemptResult};
use glovebox_engine::driver::{Executors, Fault, MadeAttempt, Seat};
use glovebox_journal::event::{Attempt, AttemptId, Ending, MachineId, Moved, NodeId, StageFinished, Task};
use glovebox_journal::ports::Delivery;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How a machine makes an attempt: the time that it takes, and its result.
pub(crate) type Work = fn(&Attempt) -> (Duration, StageFinished);

/// The machines. All clones share them.
#[derive(Clone)]
pub(crate) struct Machines(Arc<Shared>);

struct Shared {
    work: Work,
    pool: Mutex<Pool>,
    changed: Notify,
}

#[derive(Default)]
struct Pool {
    free: Vec<MachineId>,
    /// The stages of machines that cannot make all of them.
    stages: BTreeMap<MachineId, Arc<BTreeSet<NodeId>>>,
    jobs: BTreeMap<AttemptId, Job>,
    /// Number of times that the work of a task was completed.
    made: BTreeMap<(Task, u32), usize>,
    begun: usize,
}

struct Job {
    machine: MachineId,
    stop: Arc<AtomicBool>,
    state: JobState,
    working: JoinHandle<()>,
}

#[derive(Clone)]
enum JobState {
    Running,
    Made(Box<AttemptResult>),
    Lost,
}

impl Machines {
    pub(crate) fn new(names: &[&str], work: Work) -> Self {
        let pool = Pool { free: names.iter().map(|name| MachineId::from(*name)).collect(), ..Pool::default() };
        Self(Arc::new(Shared { work, pool: Mutex::new(pool), changed: Notify::new() }))
    }

    /// Lets a machine make only these stages.
    pub(crate) fn limit(&self, machine: &str, stages: &[&str]) {
        let stages = stages.iter().map(|stage| NodeId::from(*stage)).collect();
        self.lock().stages.insert(machine.into(), Arc::new(stages));
    }

    /// Restarts a machine. It loses the attempt that it works on.
    pub(crate) fn restart(&self, machine: &str) {
        let mut pool = self.lock();
        let running = pool.jobs.values_mut().find(|job| job.machine == machine && job.is_running());
        if let Some(job) = running {
            job.working.abort();
            job.state = JobState::Lost;
            pool.free.push(machine.into());
        }
        drop(pool);
        self.0.changed.notify_waiters();
    }

    /// Cuts a machine off: its attempt counts as lost, but the machine goes on.
    pub(crate) fn cut_off(&self, machine: &str) {
        self.lock().jobs.retain(|_, job| job.machine != machine);
        self.0.changed.notify_waiters();
    }

    /// Waits until this many attempts have begun.
    pub(crate) async fn until_begun(&self, count: usize) {
        self.until(|pool| (pool.begun >= count).then_some(())).await;
    }

    /// Waits until the work of every attempt that was begun has ended.
    pub(crate) async fn until_idle(&self) {
        self.until(|pool| pool.jobs.values().all(|job| !job.is_running()).then_some(())).await;
    }

    /// Returns how often the work of each attempt of a task was completed.
    pub(crate) fn made(&self) -> BTreeMap<(Task, u32), usize> {
        self.lock().made.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.0.pool.lock().unwrap()
    }

    async fn until<T>(&self, mut look: impl FnMut(&mut Pool) -> Option<T>) -> T {
        loop {
            let changed = self.0.changed.notified();
            let found = look(&mut self.lock());
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }

    fn begin(&self, machine: MachineId, assignment: &Assignment) {
        let (machines, attempt, stop) = (self.clone(), assignment.attempt.clone(), Arc::clone(&assignment.stop));
        let mut pool = self.lock();
        pool.begun += 1;
        let working = tokio::spawn({
            let machine = machine.clone();
            async move { machines.work(machine, &attempt).await }
        });
        pool.jobs.insert(assignment.attempt.id.clone(), Job { machine, stop, state: JobState::Running, working });
        drop(pool);
        self.0.changed.notify_waiters();
    }

    async fn work(&self, machine: MachineId, attempt: &Attempt) {
        let (time, mut finished) = (self.0.work)(attempt);
        let asked_to_stop = async {
            while !self.lock().jobs.get(&attempt.id).is_some_and(|job| job.stop.load(Ordering::SeqCst)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let is_stopped = tokio::time::timeout(time, asked_to_stop).await.is_ok();
        if is_stopped {
            let failure = Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, "asked to stop");
            finished = StageFinished::new(attempt.clone(), Outcome::failed(failure));
            finished.ending = Ending::Canceled;
        }
        finished.machine = Some(machine.clone());
        let mut pool = self.lock();
        if !is_stopped {
            *pool.made.entry((attempt.task.clone(), attempt.ordinal)).or_default() += 1;
        }
        if let Some(job) = pool.jobs.get_mut(&attempt.id) {
            job.state = JobState::Made(Box::new(finished.into()));
        }
        pool.free.push(machine);
        drop(pool);
        self.0.changed.notify_waiters();
    }

    /// Waits for the result of an attempt. If its machine is still free, the machine keeps its seat.
    async fn result(&self, attempt: &AttemptId) -> Option<MadeAttempt<MachineSeat>> {
        let made = self.until(|pool| {
            let Some(job) = pool.jobs.get(attempt) else { return Some(None) };
            let (machine, state) = (job.machine.clone(), job.state.clone());
            match state {
                JobState::Running => None,
                JobState::Lost => Some(None),
                JobState::Made(result) => {
                    let free = pool.free.iter().position(|free| *free == machine);
                    Some(Some((*result, free.map(|index| pool.free.remove(index)))))
                }
            }
        });
        let (result, machine) = made.await?;
        Some(MadeAttempt { result, seat: machine.map(|machine| MachineSeat::new(self, machine)) })
    }
}

impl Job {
    fn is_running(&self) -> bool {
        matches!(self.state, JobState::Running)
    }
}

/// A place on one of the machines.
pub(crate) struct MachineSeat {
    machines: Machines,
    machine: MachineId,
    stages: Option<Arc<BTreeSet<NodeId>>>,
    /// True until the machine gets an attempt.
    is_free: bool,
}

impl MachineSeat {
    fn new(machines: &Machines, machine: MachineId) -> Self {
        let stages = machines.lock().stages.get(&machine).cloned();
        Self { machines: machines.clone(), machine, stages, is_free: true }
    }
}

impl Drop for MachineSeat {
    fn drop(&mut self) {
        if self.is_free {
            self.machines.lock().free.push(self.machine.clone());
            self.machines.0.changed.notify_waiters();
        }
    }
}

impl Executors for Machines {
    type Seat = MachineSeat;

    const OUTLIVE_DRIVER: bool = true;

    async fn seat(&self, delivery: &Delivery, _place: Option<&Moved>) -> Result<MachineSeat, Fault> {
        let stage = delivery.task.stage();
        let machine = self.until(|Pool { free, stages, .. }| {
            let can = |machine: &MachineId| stages.get(machine).is_none_or(|stages| stages.contains(&stage));
            let index = free.iter().position(can)?;
            Some(free.remove(index))
        });
        Ok(MachineSeat::new(self, machine.await))
    }

    async fn adopt(&self, assignment: Assignment) -> Result<Option<MadeAttempt<MachineSeat>>, Fault> {
        if let Some(job) = self.lock().jobs.get_mut(&assignment.attempt.id) {
            job.stop = Arc::clone(&assignment.stop);
        }
        Ok(self.result(&assignment.attempt.id).await)
    }
}

impl Seat for MachineSeat {
    fn machine(&self) -> Option<&MachineId> {
        Some(&self.machine)
    }

    fn stages(&self) -> Option<&Arc<BTreeSet<NodeId>>> {
        self.stages.as_ref()
    }

    async fn make(mut self, assignment: Assignment) -> Result<Option<MadeAttempt<Self>>, Fault> {
        let machines = self.machines.clone();
        self.is_free = false;
        machines.begin(self.machine.clone(), &assignment);
        Ok(machines.result(&assignment.attempt.id).await)
    }
}
