//! Taking a run over from a process that is stopped (`kill -STOP`, Ctrl-Z) for longer than its lease.
//!
//! A stopped process keeps its lock for ever, and would go on in the middle of a write when it is continued. So it is ended before the
//! lock is taken: two processes never drive one run. A process that runs is never ended, however long its stages take.

use crate::runs::{self, RunFolder};
use crate::terminal;
use glovebox_engine::run::OWNER_FILE;
use glovebox_workspace::regular_file::{self, Links};
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use std::time::{Duration, Instant};

/// How long a process may be stopped and keep its run.
pub const LEASE: Duration = Duration::from_secs(30);
/// How long its end may take.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A look at the process that drives a run, again and again.
pub struct Watch<'a> {
    run: &'a RunFolder,
    stopped: Option<(Pid, Instant)>,
}

impl<'a> Watch<'a> {
    /// Nothing was seen yet.
    pub fn new(run: &'a RunFolder) -> Self {
        Self { run, stopped: None }
    }

    /// True while the process that drives the run is stopped. Ends it when its lease is over.
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
                    "note: process {driver}, which drives run `{}`, is stopped; it is ended and the run taken over in {} s, unless it goes on\n",
                    self.run.id,
                    LEASE.as_secs()
                ));
            }
        }
        true
    }

    /// Waits while the process that drives the run is stopped. True if nobody drives the run any more.
    pub fn wait(mut self) -> bool {
        while self.is_stopped() {
            std::thread::sleep(LOOK_EVERY);
        }
        !runs::is_live(self.run)
    }
}

/// The process that holds the run's lock, if this one can see it.
fn driver(run: &RunFolder) -> Option<Pid> {
    let file = regular_file::open(&run.path.join(OWNER_FILE), Links::Within(&run.path)).ok()?;
    // What SQLite locks is behind the first gigabyte.
    let any = Flock { start: 1 << 30, length: 1024, ..Flock::from(FlockType::WriteLock) };
    fcntl_getlk(file, &any).ok()??.pid
}

/// The state of a process is the letter behind its name, which may contain anything.
fn is_stopped(process: Pid) -> bool {
    let stat = regular_file::kernel_text(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
}

fn end(process: Pid, run: &RunFolder) {
    // It is what was seen all the time: a process that is stopped does not end by itself, so its number is nobody else's.
    let _not_ours = kill_process(process, Signal::KILL);
    let began = Instant::now();
    while runs::is_live(run) && began.elapsed() < ENDED_WITHIN {
        std::thread::sleep(LOOK_EVERY);
    }
}
