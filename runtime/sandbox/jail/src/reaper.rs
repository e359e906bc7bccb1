//! The death of everything a command started, proven: no child is left to wait for.
//!
//! One kill reaches everybody at once where this process may signal nobody else: in a process namespace, and where Landlock holds its
//! signals back. Elsewhere the descendants are found by their parents, again and again, because a racer forks while it is looked for;
//! they all come to us, as we are their subreaper. `ECHILD` is the only answer that proves there are none, and after [`DEADLINE`]
//! we say how many there were instead of waiting on.
#![forbid(unsafe_code)]

use crate::raw::{self, Reaped, Wait};
use crate::watch::{self, Seen};
use glovebox_jail::policy::Walls;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, test_kill_process};
use std::time::{Duration, Instant};

/// How long descendants are hunted where there is no PID namespace.
const DEADLINE: Duration = Duration::from_secs(10);

/// How far this process's power to kill reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It is PID 1: everybody in the namespace, at once.
    Namespace,
    /// It is a subreaper whose signals reach nobody but its descendants: those, at once.
    Domain,
    /// It is a subreaper: its descendants, one by one.
    Descendants,
}

impl Reach {
    /// Finds out whether our signals reach nobody but what we started. `host` is whoever started us, `outside` the process namespace
    /// it is in, where we were told. Only proof counts: a kill of everybody by a process that is not held back would be one.
    pub(crate) fn of_subreaper(walls: Walls, host: Option<Pid>, outside: Option<&str>) -> Self {
        let is_left = outside.is_some_and(|outside| namespace_of_processes().is_ok_and(|own| own != outside));
        // Landlock's scope is demanded with these walls. Its answer about the host, whose user we are, says that it is in force.
        let is_held = || host == getppid() && host.is_some_and(|host| test_kill_process(host) == Err(Errno::PERM));
        if walls == Walls::Bwrap && is_left || walls == Walls::Landlock && is_held() {
            Self::Domain
        } else {
            Self::Descendants
        }
    }
}

/// The name of the process namespace we are in.
pub(crate) fn namespace_of_processes() -> std::io::Result<String> {
    Ok(std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
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
        Reach::Namespace | Reach::Domain => raw::kill_everybody(),
        Reach::Descendants => {
            // A racer lives for less than it takes to look at everybody: the nearest first, as the kernel lists them.
            for one in watch::children() {
                kill_one(&one);
            }
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
