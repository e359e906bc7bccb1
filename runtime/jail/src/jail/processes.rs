//! Measures the processes of a jail and their memory from the host, in `/proc`.
//!
//! The host measures, and not the jail's first process: that process has no capability, so a command could hide from it
//! by making itself non-dumpable. The user namespace of the jail belongs to the host's user, who may inspect every
//! process in it. Resident pages are not enough: a file in memory can also be only open, only mapped, or in transit in
//! a socket. If processes may hold memory that cannot be measured, the memory of the whole machine is used instead.

mod unlinked_files;

use super::origin::{self, Origin};
use super::stores::Stores;
use glovebox_jail_helper::process::{self, ProcessStat};
use glovebox_workspace::regular_file;
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use unlinked_files::UnlinkedFileScan;
pub(super) use unlinked_files::UnlinkedUsage;

/// The processes of one jail.
#[derive(Debug)]
pub(super) struct JailProcesses {
    /// Id and start time of the process that is an ancestor of all processes of a command. Determined at the first
    /// sample.
    root: OnceLock<Option<(i32, u64)>>,
    /// The jail's first process; `None` if a helper is its parent.
    first: Option<OwnedFd>,
    baseline: OnceLock<Baseline>,
    stores: Option<Stores>,
}

/// The state before the first command.
#[derive(Debug)]
struct Baseline {
    /// Ids and start times of the helper's own processes.
    own: HashSet<(i32, u64)>,
    /// The smallest shared memory of the whole machine so far, without the measured memory of the jail, bytes. Memory
    /// that other programs free must not hide the jail's memory.
    shared_least: AtomicU64,
}

/// A measurement at one moment.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// The processes of the command.
    pub(super) processes: Vec<ProcessStat>,
    /// The unlinked files that these processes have open or mapped.
    pub(super) held: UnlinkedUsage,
}

impl JailProcesses {
    /// Creates the measurement of a jail whose first process has this origin.
    pub(super) fn for_origin(origin: &Origin) -> Self {
        let root = match origin {
            Origin::Program(child) => i32::try_from(child.id()).ok().and_then(identity).into(),
            Origin::Fork(_) => OnceLock::new(),
        };
        Self { root, first: None, baseline: OnceLock::new(), stores: None }
    }

    /// Sets the jail's first process. If it is a fork of a template, it is the ancestor of all processes of a command.
    pub(super) fn set_first(&mut self, first: OwnedFd) {
        self.first = Some(first);
    }

    /// Sets the stores of memory outside of processes, if they belong to the jail alone.
    pub(super) fn set_stores(&mut self, stores: Option<Stores>) {
        self.stores = stores;
    }

    /// Returns true if the processes of the jail can be seen at all.
    pub(super) fn can_look(&self) -> bool {
        self.root().is_some()
    }

    /// Notes the state before the first command. At this time, the first process has no children. With a control group,
    /// the memory of the whole machine does not matter.
    pub(super) fn note_first(&self, is_grouped: bool) {
        self.baseline.get_or_init(|| {
            let own = if self.first.is_some() { Vec::new() } else { self.all() };
            let shared_bytes = if is_grouped { 0 } else { shared_of_machine() };
            let own = own.iter().map(|one| (one.pid, one.started)).collect();
            Baseline { own, shared_least: AtomicU64::new(shared_bytes) }
        });
    }

    /// Moves the stores out, which keep mounts of the jail.
    pub(super) fn take_stores(&mut self) -> Option<Stores> {
        self.stores.take()
    }

    /// Returns the stores of memory outside of processes.
    pub(super) fn stores(&self) -> Option<&Stores> {
        self.stores.as_ref()
    }

    /// Measures every process that a command started.
    pub(super) fn sample(&self) -> Sample {
        let mut processes = self.all();
        let own = self.baseline.get().map(|baseline| &baseline.own);
        processes.retain(|one| one.threads > 0 && !own.is_some_and(|own| own.contains(&(one.pid, one.started))));
        let devices = self.stores.as_ref().map(Stores::devices).unwrap_or_default();
        let mut held = UnlinkedFileScan::new(devices);
        processes.iter().for_each(|one| held.examine(one));
        Sample { processes, held: held.finish() }
    }

    /// Returns the memory of the jail, bytes. A quick measurement counts shared pages more than once. Only if its
    /// result is above `bytes_max`, the exact value is measured.
    pub(super) fn memory_bytes(&self, sample: &Sample, bytes_max: u64) -> u64 {
        let beside = self.stores.as_ref().map_or(0, Stores::bytes).saturating_add(sample.held.memory_bytes);
        let resident = sample.processes.iter().map(|one| one.resident_bytes).fold(0, u64::saturating_add);
        let quick = beside.saturating_add(resident);
        if quick <= bytes_max {
            return quick;
        }
        let own = sample.processes.iter().map(|one| sample.held.own_bytes(one)).fold(0, u64::saturating_add);
        beside.saturating_add(own)
    }

    /// Returns true if the jail may hold memory that cannot be measured, and the memory of the whole machine has grown
    /// by more than `bytes_max` beyond the measured memory of this jail.
    pub(super) fn hides_memory(&self, sample: &Sample, bytes_max: u64) -> bool {
        let known = self.stores.as_ref().map_or(0, Stores::bytes).saturating_add(sample.held.memory_bytes);
        let Some(baseline) = self.baseline.get() else { return false };
        let others = shared_of_machine().saturating_sub(known);
        let least = baseline.shared_least.fetch_min(others, Ordering::Relaxed);
        sample.held.hides_memory && others.saturating_sub(least) > bytes_max
    }

    /// Returns the id of the common ancestor, unless the id was reused for another process.
    fn root(&self) -> Option<i32> {
        let found = self.root.get_or_init(|| self.first.as_ref().and_then(origin::pid_of).and_then(identity));
        found.filter(|known| identity(known.0) == Some(*known)).map(|(process, _)| process)
    }

    /// Returns all descendants of the common ancestor.
    fn all(&self) -> Vec<ProcessStat> {
        let Some(root) = self.root() else { return Vec::new() };
        let (mut found, mut from) = (Vec::new(), vec![root]);
        let mut known = HashSet::from([root]);
        while let Some(parent) = from.pop() {
            for child in children(parent).into_iter().filter(|child| known.insert(*child)) {
                from.push(child);
                found.extend(process::stat(child));
            }
        }
        found
    }
}

/// Returns true if `/proc` shows the PID namespace of Glovebox, so that it can measure the processes of a jail.
pub(super) fn can_look_at_any() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).ok();
        let shown = own.as_ref().and_then(origin::pid_of);
        shown == Some(getpid().as_raw_pid()) && shown.and_then(identity).is_some()
    })
}

/// Returns the id and the start time of a process, which together identify it.
fn identity(process: i32) -> Option<(i32, u64)> {
    process::stat(process).map(|one| (one.pid, one.started))
}

/// Returns the children of a process, thread by thread. If the kernel does not list them, all processes are searched.
fn children(parent: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match regular_file::kernel_text(thread.path().join("children")) {
            Ok(listed) => found.extend(listed.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok())),
            // The thread has ended, or the kernel does not list children.
            Err(_) if thread.path().exists() => {
                let all = process::all().into_iter();
                return all.filter(|one| one.parent == parent).map(|one| one.pid).collect();
            }
            Err(_) => {}
        }
    }
    found
}

/// Returns the shared memory of the whole machine, bytes: System V segments, files in memory, and shared anonymous
/// pages.
fn shared_of_machine() -> u64 {
    let text = regular_file::kernel_text("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_and_those_before_are_not_counted() {
        let root = OnceLock::from(identity(std::process::id() as i32));
        let jail = JailProcesses { root, first: None, baseline: OnceLock::new(), stores: None };
        let mut before = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        jail.note_first(false);
        let mut after = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let found = || jail.sample().processes.iter().map(|one| one.pid as u32).collect::<Vec<_>>();
        let mut tries = 0;
        while found().len() < 2 && tries < 400 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            tries += 1;
        }
        let ids = found();
        assert!(ids.contains(&after.id()) && !ids.contains(&before.id()) && ids.len() >= 2, "{ids:?}");
        for child in [&mut before, &mut after] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
