//! What the processes of a jail are and hold, seen from the host in `/proc`.
//!
//! The host looks, and not the jail's first process: that one has no capability, so a command could hide from it by not being
//! dumpable, while the user namespace of the jail belongs to the host's user, who may look into everybody in it. Names and resident
//! pages are not enough: what is only held open, only mapped, or on its way in a socket has no name and is in nobody's memory. What
//! can be held but not measured is noted, and then the figures of the whole machine decide.

mod held;

use super::stores::Stores;
use glovebox_jail::process::{self, Seen};
pub(super) use held::Held;
use held::Looking;
use std::collections::HashSet;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The processes of one jail.
#[derive(Debug)]
pub(super) struct Census {
    /// The helper, which everybody in the jail descends from.
    helper: i32,
    before: OnceLock<Before>,
    stores: Option<Stores>,
}

/// What was there before the first command.
#[derive(Debug)]
struct Before {
    /// The helper's own processes.
    own: HashSet<(i32, u64)>,
    /// The least shared memory of the whole machine there was, without what was known of the jail by then: what others give back is
    /// not the jail's to take.
    shared_least: AtomicU64,
}

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Who is there.
    pub(super) processes: Vec<Seen>,
    /// What is held open or mapped and has no name.
    pub(super) held: Held,
}

impl Census {
    pub(super) fn new(helper: u32) -> Self {
        Self { helper: i32::try_from(helper).unwrap_or(0), before: OnceLock::new(), stores: None }
    }

    /// Takes what is kept beside the processes, where that is the jail's own.
    pub(super) fn keep(&mut self, stores: Option<Stores>) {
        self.stores = stores;
    }

    /// True where the processes of the jail can be seen at all.
    pub(super) fn can_look(&self) -> bool {
        process::look(self.helper).is_some()
    }

    /// Notes who is there before the first command.
    pub(super) fn begin(&self) {
        self.before.get_or_init(|| Before {
            own: self.everybody().iter().map(|one| (one.pid, one.started)).collect(),
            shared_least: AtomicU64::new(shared_of_machine()),
        });
    }

    /// What the jail keeps beside its processes.
    pub(super) fn stores(&self) -> Option<&Stores> {
        self.stores.as_ref()
    }

    /// Looks at everybody a command started.
    pub(super) fn look(&self) -> Look {
        let mut processes = self.everybody();
        let own = self.before.get().map(|before| &before.own);
        processes.retain(|one| one.threads > 0 && !own.is_some_and(|own| own.contains(&(one.pid, one.started))));
        let devices = self.stores.as_ref().map(Stores::devices).unwrap_or_default();
        let mut looking = Looking::new(devices);
        processes.iter().for_each(|one| looking.examine(one));
        Look { processes, held: looking.finish() }
    }

    /// Memory of everybody and of what nobody holds, in bytes: a quick figure that counts shared pages more than once, and only when
    /// that is above `bytes_max` an exact one.
    pub(super) fn memory_bytes(&self, look: &Look, bytes_max: u64) -> u64 {
        let beside = self.stores.as_ref().map_or(0, Stores::bytes).saturating_add(look.held.memory_bytes);
        let resident = look.processes.iter().map(|one| one.resident_bytes).fold(0, u64::saturating_add);
        let quick = beside.saturating_add(resident);
        if quick <= bytes_max {
            return quick;
        }
        let own = look.processes.iter().map(|one| look.held.own_bytes(one)).fold(0, u64::saturating_add);
        beside.saturating_add(own)
    }

    /// True when memory is held that cannot be measured, and that of the whole machine grew by more than `bytes_max` beyond what is
    /// known of this jail.
    pub(super) fn hides_memory(&self, look: &Look, bytes_max: u64) -> bool {
        let known = self.stores.as_ref().map_or(0, Stores::bytes).saturating_add(look.held.memory_bytes);
        let Some(before) = self.before.get() else { return false };
        let others = shared_of_machine().saturating_sub(known);
        let least = before.shared_least.fetch_min(others, Ordering::Relaxed);
        look.held.hides_memory && others.saturating_sub(least) > bytes_max
    }

    /// Everybody who descends from the helper.
    fn everybody(&self) -> Vec<Seen> {
        let (mut found, mut from) = (Vec::new(), vec![self.helper]);
        let mut known = HashSet::from([self.helper]);
        while let Some(parent) = from.pop() {
            for child in children(parent).into_iter().filter(|child| known.insert(*child)) {
                from.push(child);
                found.extend(process::look(child));
            }
        }
        found
    }
}

/// The children of a process, by each of its threads; a kernel that does not list them is asked for everybody.
fn children(parent: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(listed) => found.extend(listed.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok())),
            // The thread has ended, or there are no such lists.
            Err(_) if thread.path().exists() => {
                let all = process::everybody().into_iter();
                return all.filter(|one| one.parent == parent).map(|one| one.pid).collect();
            }
            Err(_) => {}
        }
    }
    found
}

/// Shared memory of the whole machine, in bytes: segments, files in memory, shared pages without a file.
fn shared_of_machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_and_those_before_are_not_counted() {
        let census = Census::new(std::process::id());
        let mut before = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        census.begin();
        let mut after = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let found = || census.look().processes.iter().map(|one| one.pid as u32).collect::<Vec<_>>();
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
