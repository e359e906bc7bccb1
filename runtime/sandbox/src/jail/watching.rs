//! The watch over one command: who is there and what they hold, again and again, and the bound that is passed.
//!
//! Between two looks more may be used, which is why bounds that only this watch holds are called soft. A look that takes long, because
//! there is much to look at, is followed by a pause in proportion.

use super::Jail;
use super::bounds::Bounds;
use super::census::Look;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time from the start of a command to the first look, and between two looks.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// Between two looks lies at least this many times what one took.
const PAUSE_FACTOR: u32 = 3;
/// How fast the end of a command ends the watching.
const NAP: Duration = Duration::from_millis(5);

/// What is known of a command that runs, shared by those who watch it.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// Set when the command has ended.
    pub(super) ended: AtomicBool,
    /// The first bound that was found to be passed.
    pub(super) over: OnceLock<&'static str>,
    /// Bytes of files without a name on disk, at the last look.
    pub(super) held_disk_bytes: AtomicU64,
    /// Whether there may be more of them than were measured.
    pub(super) hides_disk: AtomicBool,
    peaks: Mutex<Peaks>,
}

/// The most that was seen of a command; none where it ended before the first look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peaks {
    /// Of all processes and what they hold, where no control group counts.
    pub(super) memory_bytes: Option<u64>,
    /// Processes and threads.
    pub(super) processes: Option<u64>,
    /// Descriptors of one process.
    pub(super) descriptors: Option<u64>,
    /// Length of a file that was open for writing.
    pub(super) file_bytes: Option<u64>,
}

impl Watching {
    /// Looks until a bound is passed here, or the command has ended.
    pub(super) fn watch(&self, jail: &Jail) {
        while !self.has_ended() {
            let begin = Instant::now();
            if let Some(limit) = self.turn(jail) {
                // Another watch may have been first.
                let _ = self.over.set(limit);
                return;
            }
            self.pause((begin.elapsed() * PAUSE_FACTOR).max(PERIOD));
        }
    }

    /// True when nothing is left to watch.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits, but not beyond the end of the command.
    pub(super) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.has_ended() {
            std::thread::sleep(NAP);
        }
    }

    /// The most that was seen.
    pub(super) fn peaks(&self) -> Peaks {
        *self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, jail: &Jail) -> Option<&'static str> {
        let look = jail.census.look();
        self.held_disk_bytes.store(look.held.disk_bytes, Ordering::Relaxed);
        self.hides_disk.store(look.held.hides_disk, Ordering::Relaxed);
        let max = jail.bounds.command_memory_bytes;
        let memory = jail.cgroup.is_none().then(|| jail.census.memory_bytes(&look, max));
        let hides = jail.cgroup.is_none() && jail.census.hides_memory(&look, max);
        self.note(&look, memory);
        if memory.is_some_and(|bytes| bytes > max) || hides {
            return Some("command_memory_bytes");
        }
        over(&look, &jail.bounds)
    }

    fn note(&self, look: &Look, memory: Option<u64>) {
        if look.processes.is_empty() {
            return;
        }
        let mut peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        peaks.memory_bytes = peaks.memory_bytes.max(memory);
        peaks.processes = peaks.processes.max(Some(threads(look)));
        peaks.descriptors = peaks.descriptors.max(Some(look.held.descriptors));
        peaks.file_bytes = peaks.file_bytes.max(Some(look.held.file_bytes));
    }
}

/// The bound that processes passed by what they are, if they did.
fn over(look: &Look, bounds: &Bounds) -> Option<&'static str> {
    let cpu_ticks_max = bounds.told().cpu_seconds.saturating_mul(rustix::param::clock_ticks_per_second());
    if threads(look) > bounds.processes {
        return Some("processes");
    }
    look.processes.iter().any(|one| one.cpu_ticks >= cpu_ticks_max.max(1)).then_some("cpu_ms")
}

fn threads(look: &Look) -> u64 {
    look.processes.iter().map(|one| one.threads).sum()
}
