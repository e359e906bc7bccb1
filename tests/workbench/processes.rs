//! The processes that a command under test has started, as `/proc` shows them.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A living process. With the time of its start, an id that was used again is another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    started: u64,
}

/// The part of a process in the sandboxes of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// PID 1 of a sandbox.
    First,
    /// A helper that prepared a sandbox for others to be forked from.
    Template,
    /// A helper that built one sandbox.
    Helper,
}

impl Process {
    /// Returns the process with this id. `None` if it has ended.
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may contain anything, so the fields begin after the last parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_alive = !matches!(*fields.first()?, "Z" | "X");
        is_alive.then_some(Self { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
    }

    /// Returns true if the process has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Kills the process. Returns false if it had already ended.
    pub(crate) fn kill(&self) -> bool {
        let opened = Pid::from_raw(self.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        opened.filter(|_| self.is_alive()).is_some_and(|process| pidfd_send_signal(process, Signal::KILL).is_ok())
    }

    /// Returns the part of a descendant in the sandboxes of `engine`. `None` for a process of a command.
    pub(crate) fn part(&self, engine: i32) -> Option<Part> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let ids: Vec<&str> = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().collect();
        if ids.len() > 1 && ids.last() == Some(&"1") {
            return Some(Part::First);
        }
        if self.parent != engine {
            return None;
        }
        // Only a helper of its own creates a PID namespace for its children. A template creates it with each fork.
        let namespace = |name: &str| fs::read_link(format!("/proc/{}/ns/{name}", self.pid)).ok();
        Some(if namespace("pid") == namespace("pid_for_children") { Part::Template } else { Part::Helper })
    }
}

/// Returns the living descendants of a process.
pub(crate) fn descendants(of: i32) -> Vec<Process> {
    let ids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in ids.filter_map(Process::find) {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut from, mut known) = (Vec::new(), vec![of], BTreeSet::from([of]));
    while let Some(parent) = from.pop() {
        for child in children.get(&parent).into_iter().flatten().filter(|child| known.insert(child.pid)) {
            from.push(child.pid);
            found.push(*child);
        }
    }
    found
}
