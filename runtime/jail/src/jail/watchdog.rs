//! Samples the processes of a running command and their resources, and reports the first exceeded limit.
//!
//! A command can exceed a limit between two samples, so limits that only the watchdog enforces are called soft. A slow
//! sample is followed by a longer pause, and the pauses become longer while the command only waits.

use super::Jail;
use super::poll_interval::PollInterval;
use super::processes::Sample;
use super::waker::Waker;
use glovebox_record::{LimitName, Limits};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The pause between two samples is at least this many times the duration of a sample.
const PAUSE_FACTOR: u32 = 3;

/// The state of a running command, shared by the threads that watch it.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Wakes the thread that waits for the command.
    pub(super) waker: Waker,
    progress: Mutex<Progress>,
    changed: Condvar,
    over: OnceLock<LimitName>,
    /// Size of unlinked files on disk in the last sample, bytes.
    pub(super) held_disk_bytes: AtomicU64,
    /// True if there may be files that were not measured.
    pub(super) hides_disk: AtomicBool,
    peaks: Mutex<Peaks>,
}

/// The condition that the watching threads wait for.
#[derive(Debug, Default)]
struct Progress {
    has_ended: bool,
    /// Number of samples at which the folders of the command may have grown.
    disk_changes: u64,
}

/// The peak usage of a command. A value is `None` if the command ended before the first sample.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peaks {
    /// Memory of all processes and their files, bytes. Only without a control group.
    pub(super) memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub(super) processes: Option<u64>,
    /// Number of descriptors of one process.
    pub(super) descriptors: Option<u64>,
    /// Length of the largest file that was open for writing, bytes.
    pub(super) file_bytes: Option<u64>,
}

impl Watchdog {
    /// Creates the state of a command that has not started.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Waker::new()?,
            progress: Mutex::default(),
            changed: Condvar::new(),
            over: OnceLock::new(),
            held_disk_bytes: AtomicU64::new(0),
            hides_disk: AtomicBool::new(false),
            peaks: Mutex::default(),
        })
    }

    /// Takes samples until a limit is exceeded or the command has ended. `killed_before` is the number of processes
    /// that the kernel had killed because of the memory limit before the command.
    pub(super) fn watch(&self, jail: &Jail, killed_before: Option<u64>, canceled: &AtomicBool) {
        let mut pace = PollInterval::new(jail.cgroup.is_some());
        while !self.has_ended() {
            let begin = Instant::now();
            let sample = jail.processes.sample();
            if let Some(limit) = self.check(jail, &sample).or_else(|| out_of_memory(jail, killed_before)) {
                return self.report(limit);
            }
            if pace.note(&sample, jail.disk.free()) {
                self.progress().disk_changes += 1;
                self.changed.notify_all();
            }
            if pace.works() {
                jail.pulse.beat();
            }
            if canceled.load(Ordering::Relaxed) {
                // This is for a flag that was set without a call of `cancel`.
                self.waker.wake();
            }
            self.pause((begin.elapsed() * PAUSE_FACTOR).max(pace.period()));
        }
    }

    /// Reports an exceeded limit, and wakes the thread that waits for the command. Only the first reported limit is
    /// stored.
    pub(super) fn report(&self, limit: LimitName) {
        let _ = self.over.set(limit);
        self.waker.wake();
    }

    /// Returns the first limit that was reported.
    pub(super) fn over(&self) -> Option<LimitName> {
        self.over.get().copied()
    }

    /// Returns true if the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.progress().has_ended
    }

    /// Notes the end of the command, and wakes the threads that wait for it.
    pub(super) fn end(&self) {
        self.progress().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for this time, or until the command ends.
    pub(super) fn pause(&self, time: Duration) {
        let progress = self.progress();
        drop(self.changed.wait_timeout_while(progress, time, |progress| !progress.has_ended));
    }

    /// Returns the number of samples at which the folders of the command may have grown.
    pub(super) fn disk_changes(&self) -> u64 {
        self.progress().disk_changes
    }

    /// Waits until [`Self::disk_changes`] differs from `seen`, the time is over, or the command has ended.
    pub(super) fn await_disk_change(&self, seen: u64, time: Duration) {
        let progress = self.progress();
        let is_same = |progress: &mut Progress| !progress.has_ended && progress.disk_changes == seen;
        drop(self.changed.wait_timeout_while(progress, time, is_same));
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the peak usage so far.
    pub(super) fn peaks(&self) -> Peaks {
        *self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, jail: &Jail, sample: &Sample) -> Option<LimitName> {
        self.held_disk_bytes.store(sample.held.disk_bytes, Ordering::Relaxed);
        self.hides_disk.store(sample.held.hides_disk, Ordering::Relaxed);
        let max = jail.limits.command_memory_bytes;
        let memory = jail.cgroup.is_none().then(|| jail.processes.memory_bytes(sample, max));
        let hides = jail.cgroup.is_none() && jail.processes.hides_memory(sample, max);
        self.note(sample, memory);
        if memory.is_some_and(|bytes| bytes > max) || hides {
            return Some(LimitName::CommandMemoryBytes);
        }
        over(sample, &jail.limits)
    }

    fn note(&self, sample: &Sample, memory: Option<u64>) {
        if sample.processes.is_empty() {
            return;
        }
        let mut peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        peaks.memory_bytes = peaks.memory_bytes.max(memory);
        peaks.processes = peaks.processes.max(Some(threads(sample)));
        peaks.descriptors = peaks.descriptors.max(Some(sample.held.descriptors));
        peaks.file_bytes = peaks.file_bytes.max(Some(sample.held.file_bytes));
    }
}

/// Returns the limit on memory if the kernel has killed a process because of it since the command started.
fn out_of_memory(jail: &Jail, killed_before: Option<u64>) -> Option<LimitName> {
    let (group, before) = jail.cgroup.as_ref().zip(killed_before)?;
    (group.killed() > before).then_some(LimitName::CommandMemoryBytes)
}

/// Returns the limit that the processes exceeded, if any.
fn over(sample: &Sample, limits: &Limits) -> Option<LimitName> {
    let cpu_ticks_max = limits.cpu_ms.div_ceil(1000).saturating_mul(rustix::param::clock_ticks_per_second());
    if threads(sample) > limits.processes {
        return Some(LimitName::Processes);
    }
    sample.processes.iter().any(|one| one.cpu_ticks >= cpu_ticks_max.max(1)).then_some(LimitName::CpuMs)
}

fn threads(sample: &Sample) -> u64 {
    sample.processes.iter().map(|one| one.threads).sum()
}
