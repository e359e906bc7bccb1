//! Samples the processes of a running command and what they hold, and reports the first limit that is exceeded.
//!
//! Between two samples a command can exceed a limit. So limits that only the watchdog enforces are called soft. A longer pause follows
//! a slow sample.

use super::Jail;
use super::processes::Sample;
use glovebox_record::{LimitName, Limits};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time from the start of a command to the first sample, and between two samples.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// The pause between two samples is at least this many times as long as one takes.
const PAUSE_FACTOR: u32 = 3;

/// What is known about a running command, shared by the threads that watch it.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    has_ended: Mutex<bool>,
    ending: Condvar,
    /// The first limit that was found to be passed.
    pub(super) over: OnceLock<LimitName>,
    /// Bytes of files without a name on disk, in the last sample.
    pub(super) held_disk_bytes: AtomicU64,
    /// Whether more of them may exist than were measured.
    pub(super) hides_disk: AtomicBool,
    peaks: Mutex<Peaks>,
}

/// The most that a command was seen to use; none when it ended before the first sample.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peaks {
    /// Of all processes and what they hold; only without a control group.
    pub(super) memory_bytes: Option<u64>,
    /// Processes and threads.
    pub(super) processes: Option<u64>,
    /// Descriptors of one process.
    pub(super) descriptors: Option<u64>,
    /// Length of a file that was open for writing.
    pub(super) file_bytes: Option<u64>,
}

impl Watchdog {
    /// Takes samples until a bound is passed or the command has ended.
    pub(super) fn watch(&self, jail: &Jail) {
        while !self.has_ended() {
            let begin = Instant::now();
            if let Some(limit) = self.check(jail) {
                // Another thread may have been first.
                let _ = self.over.set(limit);
                return;
            }
            self.pause((begin.elapsed() * PAUSE_FACTOR).max(PERIOD));
        }
    }

    /// True when the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        *self.has_ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of the command, and wakes who waits for it.
    pub(super) fn end(&self) {
        *self.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ending.notify_all();
    }

    /// Waits, but not beyond the end of the command.
    pub(super) fn pause(&self, time: Duration) {
        let has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.ending.wait_timeout_while(has_ended, time, |has_ended| !*has_ended));
    }

    /// Returns the most that was seen.
    pub(super) fn peaks(&self) -> Peaks {
        *self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, jail: &Jail) -> Option<LimitName> {
        let sample = jail.processes.sample();
        self.held_disk_bytes.store(sample.held.disk_bytes, Ordering::Relaxed);
        self.hides_disk.store(sample.held.hides_disk, Ordering::Relaxed);
        let max = jail.limits.command_memory_bytes;
        let memory = jail.cgroup.is_none().then(|| jail.processes.memory_bytes(&sample, max));
        let hides = jail.cgroup.is_none() && jail.processes.hides_memory(&sample, max);
        self.note(&sample, memory);
        if memory.is_some_and(|bytes| bytes > max) || hides {
            return Some(LimitName::CommandMemoryBytes);
        }
        over(&sample, &jail.limits)
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

/// Returns the limit that the processes themselves passed, if any.
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
