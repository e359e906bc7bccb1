//! Kills everything that a command started, and proves that no child is left.
//!
//! One call of kill reaches all processes of the command at once if this process can signal no other process: in a PID
//! namespace, or with Landlock's signal scope. Otherwise this process searches for descendants repeatedly, because a
//! fork race can outrun one search. As the subreaper of its descendants, this process inherits all of them. Only
//! `ECHILD` proves that none is left. After [`DEADLINE`], this process reports the number of processes that are left.
#![forbid(unsafe_code)]

use crate::raw::{self, ReapedChild, Wait};
use crate::watch::{self, ProcessStat};
use glovebox_jail_helper::policy::Confinement;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, test_kill_process};
use std::time::{Duration, Instant};

/// Maximum time of the search for descendants without a PID namespace.
const DEADLINE: Duration = Duration::from_secs(10);

/// The processes that a kill by this process reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillScope {
    /// This process is PID 1: a kill reaches all processes of the namespace at once.
    Namespace,
    /// This process is a subreaper whose signals reach only its descendants: a kill reaches all of them at once.
    Domain,
    /// This process is a subreaper without such a bound: it kills its descendants one by one.
    Descendants,
}

impl KillScope {
    /// Determines whether the signals of a subreaper on the host reach only its descendants. `host` is the process that
    /// started this one. Without proof, the answer is no, because a kill of all processes could reach processes outside
    /// of the jail.
    pub(crate) fn for_subreaper(confinement: Confinement, host: Option<Pid>) -> Self {
        // Tier `landlock` requires Landlock's signal scope. `EPERM` for the host, which runs as the same user, proves
        // that the scope is in force.
        let is_held = || host == getppid() && host.is_some_and(|host| test_kill_process(host) == Err(Errno::PERM));
        if confinement == Confinement::Landlock && is_held() { Self::Domain } else { Self::Descendants }
    }
}

/// Returns the name of the PID namespace of this process.
pub(crate) fn pid_namespace() -> std::io::Result<String> {
    Ok(std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
}

/// The result of a kill of all processes.
#[derive(Debug, Default)]
pub(crate) struct KillResult {
    /// The reaped processes, including zombies.
    pub(crate) reaped: Vec<ReapedChild>,
    /// Number of processes that were alive at the deadline.
    pub(crate) survivors: u32,
}

/// Kills all processes that exist now, without waiting.
pub(crate) fn kill(reach: KillScope) {
    match reach {
        KillScope::Namespace | KillScope::Domain => raw::kill_all_reachable(),
        KillScope::Descendants => {
            // A fork race can outrun a search, so the direct children are killed first, as the kernel lists them.
            for one in watch::children() {
                kill_one(&one);
            }
            for one in watch::descendants() {
                kill_one(&one);
            }
        }
    }
}

/// Kills and reaps until no child is left.
pub(crate) fn kill_all(reach: KillScope) -> KillResult {
    let mut killed = KillResult::default();
    let deadline = Instant::now() + DEADLINE;
    if reach == KillScope::Namespace {
        kill(reach);
    }
    // Asking for an ended child is cheaper than searching for descendants.
    loop {
        let wait = if reach == KillScope::Namespace { Wait::Until } else { Wait::Never };
        match raw::reap(wait) {
            Ok(Some(reaped)) => killed.reaped.push(reaped),
            Ok(None) => {
                if Instant::now() > deadline {
                    killed.survivors = u32::try_from(watch::descendants().len()).unwrap_or(u32::MAX).max(1);
                    return killed;
                }
                kill(reach);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return killed,
        }
    }
}

/// Kills one process that was seen, unless its id was reused for another process.
fn kill_one(seen: &ProcessStat) {
    let Some(pid) = Pid::from_raw(seen.pid) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The descriptor refers to the process that has the id now. If this is the process that was seen, a later reuse of
    // the id does not matter.
    if watch::stat(seen.pid).is_some_and(|now| now.started == seen.started) {
        // A process that has already ended needs no kill.
        let _ = pidfd_send_signal(descriptor, Signal::KILL);
    }
}
