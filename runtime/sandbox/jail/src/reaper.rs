//! The death of everything a command started, proven: no child is left to wait for.
//!
//! As PID 1 of a namespace one kill reaches everybody at once. Elsewhere the descendants are found by their parents, again and
//! again, because a racer forks while it is looked for; they all come to us, as we are their subreaper. `ECHILD` is the only
//! answer that proves there are none, and after [`DEADLINE`] we say how many there were instead of waiting on.
#![forbid(unsafe_code)]

use crate::raw::{self, Reaped, Wait};
use crate::watch::{self, Seen};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::time::{Duration, Instant};

/// How long descendants are hunted where there is no PID namespace.
const DEADLINE: Duration = Duration::from_secs(10);

/// How far this process's power to kill reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is PID 1: everybody in the namespace, at once.
    Namespace,
    /// It is a subreaper: its descendants, one by one.
    Descendants,
}

/// What the end of everybody came to.
#[derive(Debug, Default)]
pub(crate) struct Harvest {
    /// Those that were reaped, zombies included.
    pub(crate) reaped: Vec<Reaped>,
    /// Those that were alive at the deadline.
    pub(crate) survivors: u32,
}

/// Kills what can be killed right now, and waits for nothing.
pub(crate) fn kill(reach: Reach) {
    match reach {
        Reach::Namespace => raw::kill_everybody(),
        Reach::Descendants => {
            for one in watch::descendants() {
                kill_one(&one);
            }
        }
    }
}

/// Kills and reaps until there is nobody.
pub(crate) fn harvest(reach: Reach) -> Harvest {
    let mut harvest = Harvest::default();
    let deadline = Instant::now() + DEADLINE;
    if reach == Reach::Namespace {
        kill(reach);
    }
    // Descendants are only looked for when there is a child at all, which is cheaper to ask.
    loop {
        let wait = if reach == Reach::Namespace { Wait::Until } else { Wait::Never };
        match raw::reap(wait) {
            Ok(Some(reaped)) => harvest.reaped.push(reaped),
            Ok(None) => {
                if Instant::now() > deadline {
                    harvest.survivors = u32::try_from(watch::descendants().len()).unwrap_or(u32::MAX).max(1);
                    return harvest;
                }
                kill(reach);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return harvest,
        }
    }
}

/// Kills one process that was seen, unless its id belongs to another by now.
fn kill_one(seen: &Seen) {
    let Some(pid) = Pid::from_raw(seen.pid) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The descriptor holds whoever has the id now; if that is the one that was seen, no later change of the id matters.
    if watch::look(seen.pid).is_some_and(|now| now.started == seen.started) {
        // It may have ended since, which is what is wanted.
        let _ = pidfd_send_signal(descriptor, Signal::KILL);
    }
}
