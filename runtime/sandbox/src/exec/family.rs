//! Everything a command started, and its end.
//!
//! This process becomes the subreaper of all its commands, so whatever loses its parent comes to it: every process of every
//! command descends from a direct child of this one. Such a child belongs to the command that is it, whose session or group
//! it is in, or whose number or marker it carries. One that shed every sign, in a session that is not ours, belongs to the
//! last command that was running when it began, and is killed with that one. Processes this program started in its own
//! session are never touched.
//!
//! Not reached: what another service starts on a command's behalf (`at`, `systemd-run`, a container daemon).

use super::environment::MARKER;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Commands that are running now, in all threads.
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());
/// How many scans in a row have to find nobody; one would do.
const EMPTY_SCANS: u32 = 2;
/// As many when somebody is alive who may be another command's: while a program is being started, its marker cannot be read.
const UNCLEAR_SCANS: u32 = 10;
const SCAN_PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Clone)]
struct Running {
    pid: i32,
    /// Ticks since boot at which it started.
    start: u64,
    marker: String,
    /// Its limit of real-time computing, larger than anything will use: children inherit it, and no environment hides it.
    number: u64,
}

/// One process, as `/proc` has it.
#[derive(Debug, Clone, Copy)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    start: u64,
    dead: bool,
}

/// A running command with all its descendants. Dropped, it kills them.
pub(super) struct Family {
    child: Child,
    me: Running,
    /// Becomes readable when the command itself ends.
    held: Option<OwnedFd>,
    ended: bool,
}

impl Family {
    /// Starts a command. No other command's end can mistake it for a stray one meanwhile.
    pub(super) fn start(marker: String, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Self> {
        let mut running = running();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        if read_process(own_id()).is_none() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "without `/proc` its processes could not be found"));
        }
        let mut child = spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let Some(process) = read_process(pid) else {
            child.kill()?;
            return Err(io::Error::new(io::ErrorKind::Unsupported, "its process cannot be seen in `/proc`"));
        };
        let me = Running { pid, start: process.start, number: number_of(&marker), marker };
        running.push(me.clone());
        let pid = Pid::from_child(&child);
        // For machines without the program that sets it before the start; then the first children may miss it.
        let number = Rlimit { current: Some(me.number), maximum: Some(me.number) };
        let _ = rustix::process::prlimit(Some(pid), Resource::Rttime, number);
        let mut family = Self { child, me, held: None, ended: false };
        family.held = Some(rustix::process::pidfd_open(pid, PidfdFlags::empty())?);
        Ok(family)
    }

    /// Returns the command itself.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns a descriptor that becomes readable when the command itself ends.
    pub(super) fn held(&self) -> Option<BorrowedFd<'_>> {
        self.held.as_ref().map(AsFd::as_fd)
    }

    /// Returns the process id of the command itself.
    pub(super) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.me.pid)
    }

    /// Sends a signal to everything that is alive now and says how many there were.
    pub(super) fn signal(&self, signal: Signal) -> usize {
        let alive: Vec<Process> = self.scan(&running()).members.into_iter().filter(|process| !process.dead).collect();
        alive.iter().for_each(|process| send(process, signal));
        alive.len()
    }

    /// True while anything but the command itself is alive.
    pub(super) fn has_others(&self) -> bool {
        self.scan(&running()).members.iter().any(|process| !process.dead && process.pid != self.me.pid)
    }

    /// Kills everything until nothing is left, reaps it, and returns how the command ended and how many others were killed.
    ///
    /// # Errors
    /// The count of survivors, when there are some after `max`. The command itself may be one of them.
    pub(super) fn end(mut self, max: Duration) -> Result<(io::Result<ExitStatus>, u32), usize> {
        self.ended = true;
        let killed = self.kill_all(max);
        self.leave();
        let others = killed?.len();
        Ok((self.child.wait(), u32::try_from(others).unwrap_or(u32::MAX)))
    }

    /// Kills and reaps until nothing is left; returns the ids of all that had to be killed, the command itself not counted.
    ///
    /// A scan of `/proc` is no snapshot: what was alive when it was listed may be dead when it is looked at, and its child
    /// not listed. But a direct child of this process stays, alive or dead, until it is reaped here, and every process has
    /// one above it. So the end is reached when a scan finds nobody, the dead included, and not before.
    fn kill_all(&self, max: Duration) -> Result<HashSet<i32>, usize> {
        let deadline = Instant::now() + max;
        let (mut killed, mut empty) = (HashSet::new(), 0);
        loop {
            let running = running();
            let scan = self.scan(&running);
            let (dead, alive): (Vec<Process>, Vec<Process>) =
                scan.members.into_iter().partition(|process| process.dead);
            alive.iter().for_each(|process| send(process, Signal::KILL));
            killed.extend(alive.iter().map(|process| process.pid).filter(|pid| *pid != self.me.pid));
            let dead: Vec<Process> =
                dead.into_iter().chain(scan.unclear_dead).filter(|process| process.pid != self.me.pid).collect();
            dead.iter().filter(|process| process.parent == own_id()).for_each(reap);
            empty = if alive.is_empty() && dead.is_empty() { empty + 1 } else { 0 };
            if empty >= if scan.unclear_alive { UNCLEAR_SCANS } else { EMPTY_SCANS } {
                return Ok(killed);
            }
            if Instant::now() >= deadline {
                return Err(alive.len());
            }
            drop(running);
            std::thread::sleep(SCAN_PAUSE);
        }
    }

    fn leave(&self) {
        running().retain(|other| other.marker != self.me.marker);
    }

    /// Finds everything of this command, the command itself included until it is reaped.
    fn scan(&self, running: &[Running]) -> Scan {
        let all = read_all();
        let Some(host) = all.iter().find(|process| process.pid == own_id()).copied() else { return Scan::default() };
        let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
        all.iter().for_each(|process| by_parent.entry(process.parent).or_default().push(*process));
        let mut scan = Scan::default();
        for process in by_parent.get(&host.pid).into_iter().flatten() {
            match self.owner(process, &host, running) {
                Owner::Me => scan.members.push(*process),
                Owner::Unclear if process.dead => scan.unclear_dead.push(*process),
                Owner::Unclear => scan.unclear_alive = true,
                Owner::Other => {}
            }
        }
        let mut next = 0;
        while let Some(process) = scan.members.get(next).copied() {
            scan.members.extend(by_parent.get(&process.pid).into_iter().flatten());
            next += 1;
        }
        scan
    }

    /// Says whose a direct child of this process is.
    fn owner(&self, process: &Process, host: &Process, running: &[Running]) -> Owner {
        let is_me = |owner: &Running| if owner.marker == self.me.marker { Owner::Me } else { Owner::Other };
        let by_place = |owner: &&Running| [process.pid, process.session, process.group].contains(&owner.pid);
        if let Some(owner) = running.iter().find(by_place) {
            return is_me(owner);
        }
        if let Some(owner) =
            number_at(process.pid).and_then(|number| running.iter().find(|owner| owner.number == number))
        {
            return is_me(owner);
        }
        if let Some(owner) =
            marker_of(process.pid).and_then(|marker| running.iter().find(|owner| owner.marker == marker))
        {
            return is_me(owner);
        }
        // No sign left: whoever was running when it began may have started it, so it ends with the last of those.
        let mut candidates = running.iter().filter(|owner| owner.start <= process.start);
        let may_be_mine = process.session != host.session && self.me.start <= process.start;
        match (may_be_mine, candidates.all(|owner| owner.marker == self.me.marker)) {
            (true, true) => Owner::Me,
            (true, false) => Owner::Unclear,
            (false, _) => Owner::Other,
        }
    }
}

/// What one look at `/proc` found.
#[derive(Default)]
struct Scan {
    members: Vec<Process>,
    /// Dead without a sign of whose they were.
    unclear_dead: Vec<Process>,
    /// True when somebody without a sign is alive and another running command may be the owner.
    unclear_alive: bool,
}

enum Owner {
    Me,
    Unclear,
    Other,
}

impl Drop for Family {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.kill_all(Duration::from_secs(10));
            self.leave();
            // Reaps the command itself; it is dead, or was beyond reach.
            let _ = self.child.try_wait();
        }
    }
}

fn running() -> MutexGuard<'static, Vec<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_id() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Sends a signal to this very process, not to a later one with its number.
fn send(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read_process(process.pid).is_some_and(|now| now.start == process.start) {
        // Gone already or not ours to signal: the next scan tells.
        let _ = rustix::process::pidfd_send_signal(held, signal);
    }
}

fn reap(process: &Process) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        while matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Err(Errno::INTR)) {}
    }
}

/// Makes a number of microseconds, decades of them, out of a marker; below the limit this program itself was given.
pub(super) fn number_of(marker: &str) -> u64 {
    let digest = blake3::hash(marker.as_bytes());
    let drawn = digest.as_bytes()[..6].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match rustix::process::getrlimit(Resource::Rttime).maximum {
        None => 1 << 50 | drawn,
        Some(max) => max.saturating_sub(1 + (drawn & 0xffff_ffff)),
    }
}

fn number_at(pid: i32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?.split_whitespace().nth(1)?.parse().ok()
}

fn marker_of(pid: i32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| {
        let value = std::str::from_utf8(variable).ok()?.strip_prefix(MARKER)?.strip_prefix('=')?;
        Some(value.to_owned())
    })
}

fn read_all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(read_process).collect()
}

fn read_process(pid: i32) -> Option<Process> {
    parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/<pid>/stat`. The name in parentheses may hold anything, parentheses included.
fn parse_stat(pid: i32, line: &str) -> Option<Process> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some(Process {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_fields() {
        let line = "7 (a) Z 1 2 (x) S 10 20 30 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = parse_stat(7, line).unwrap();
        assert_eq!((process.parent, process.group, process.session, process.start), (10, 20, 30, 12345));
        assert!(!process.dead);
    }
}
