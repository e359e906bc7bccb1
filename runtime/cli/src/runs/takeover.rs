//! Takes a run over from a process that is stopped (`kill -STOP`, Ctrl-Z) for longer than its lease.
//!
//! A stopped process keeps its lock for ever, and could continue in the middle of a write. So it is killed before the
//! lock is taken: two processes never drive one run. A process that is not stopped is never killed, however long its
//! stages take.

use crate::runs::{self, RunFolder};
use crate::terminal;
use glovebox_engine::run::OWNER_FILE;
use glovebox_workspace::regular_file::{self, Links};
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use std::time::{Duration, Instant};

/// How long a process may be stopped without losing its run.
pub const LEASE: Duration = Duration::from_secs(30);
/// Maximum time until a killed process has released its lock.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Watches the process that drives a run.
pub struct Watch<'a> {
    run: &'a RunFolder,
    stopped: Option<(Pid, Instant)>,
}

impl<'a> Watch<'a> {
    /// Creates a watch that has not observed the process yet.
    pub fn new(run: &'a RunFolder) -> Self {
        Self { run, stopped: None }
    }

    /// Returns true while the process that drives the run is stopped. Kills it when its lease is over.
    pub fn is_stopped(&mut self) -> bool {
        let Some(driver) = driver(self.run).filter(|driver| is_stopped(*driver)) else {
            self.stopped = None;
            return false;
        };
        match self.stopped {
            Some((known, since)) if known == driver => {
                if since.elapsed() >= LEASE {
                    end(driver, self.run);
                }
            }
            _ => {
                self.stopped = Some((driver, Instant::now()));
                terminal::say(format_args!(
                    "note: process {driver}, which drives run `{}`, is stopped; unless it continues, it is killed and the \
                     run is taken over in {} s\n",
                    self.run.id,
                    LEASE.as_secs()
                ));
            }
        }
        true
    }

    /// Waits while the process that drives the run is stopped. Returns true if no process drives the run any more.
    pub fn wait(mut self) -> bool {
        while self.is_stopped() {
            std::thread::sleep(LOOK_EVERY);
        }
        !runs::is_live(self.run)
    }
}

/// Returns the process that holds the run's lock, if this process can see it.
pub fn driver(run: &RunFolder) -> Option<Pid> {
    let file = regular_file::open(&run.path.join(OWNER_FILE), Links::Within(&run.path)).ok()?;
    // The bytes that SQLite locks begin at 1 GiB.
    let any = Flock { start: 1 << 30, length: 1024, ..Flock::from(FlockType::WriteLock) };
    fcntl_getlk(file, &any).ok()??.pid
}

/// Returns true if a process is stopped. Its state is the letter after its name in parentheses, and the name may
/// contain any character.
fn is_stopped(process: Pid) -> bool {
    let stat = regular_file::kernel_text(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
}

fn end(process: Pid, run: &RunFolder) {
    // The process was stopped during the whole lease. A stopped process does not exit, so its id has not been reused.
    let _not_ours = kill_process(process, Signal::KILL);
    let began = Instant::now();
    while runs::is_live(run) && began.elapsed() < ENDED_WITHIN {
        std::thread::sleep(LOOK_EVERY);
    }
}
