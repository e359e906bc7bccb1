//! What the processes of a jail use, read from `/proc`.
//!
//! Looks every tenth of a second where no cgroup holds the bounds; between two looks more may be used, which is why such bounds are
//! called soft. Descendants are found by their parents, so that it makes no difference whose `/proc` is seen.
#![forbid(unsafe_code)]

use glovebox_jail::policy::Bounds;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// Time between two looks.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// One process as `/proc` tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its id in the numbers of `/proc`.
    pub(crate) pid: i32,
    /// When it was started, in ticks; with the id it means one process.
    pub(crate) started: u64,
    parent: i32,
    threads: u64,
    resident_bytes: u64,
}

/// The most that was seen, and when to look again.
#[derive(Debug)]
pub(crate) struct Watch {
    bounds: Bounds,
    next: Instant,
    /// Most memory at one time, in bytes.
    pub(crate) memory_peak_bytes: u64,
    /// Most processes and threads at one time.
    pub(crate) processes_peak: u64,
}

impl Watch {
    /// A watch that looks for the first time after one period.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, next: Instant::now() + PERIOD, memory_peak_bytes: 0, processes_peak: 1 }
    }

    /// Time until the next look.
    pub(crate) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, when it is time. The name of the bound that is exceeded, if one is.
    pub(crate) fn look(&mut self) -> Option<&'static str> {
        if !self.pause().is_zero() {
            return None;
        }
        let seen = descendants();
        self.next = Instant::now() + PERIOD;
        let processes = seen.iter().map(|one| one.threads).sum();
        let mut memory = seen.iter().map(|one| one.resident_bytes).sum::<u64>();
        if memory > self.bounds.memory_bytes {
            // Resident pages that are shared were counted once for each; the slow way counts them once.
            memory = seen.iter().map(|one| proportional_bytes(one.pid).unwrap_or(one.resident_bytes)).sum();
        }
        self.processes_peak = self.processes_peak.max(processes);
        self.memory_peak_bytes = self.memory_peak_bytes.max(memory);
        if memory > self.bounds.memory_bytes {
            return Some("memory_bytes");
        }
        (processes > self.bounds.processes).then_some("processes")
    }
}

/// Everything this process started, and what that started, zombies left out.
pub(crate) fn descendants() -> Vec<Seen> {
    let Some(own) = own_id() else { return Vec::new() };
    let all = everybody();
    let mut children: HashMap<i32, Vec<&Seen>> = HashMap::new();
    for one in &all {
        children.entry(one.parent).or_default().push(one);
    }
    let (mut found, mut from, mut known) = (Vec::new(), vec![own], HashSet::from([own]));
    while let Some(parent) = from.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            // Ids may be taken anew while they are read; a circle would be one of those.
            if known.insert(child.pid) {
                from.push(child.pid);
                found.push(**child);
            }
        }
    }
    found.retain(|one| one.threads > 0);
    found
}

/// Those of our children that the kernel can list; without what they started.
pub(crate) fn children() -> impl Iterator<Item = Seen> {
    let listed = own_id().and_then(|own| fs::read_to_string(format!("/proc/self/task/{own}/children")).ok());
    let ids: Vec<i32> = listed.iter().flat_map(|ids| ids.split_whitespace()).flat_map(str::parse).collect();
    ids.into_iter().filter_map(look).filter(|one| one.threads > 0)
}

/// What `/proc` says of one process; `None` when it is gone.
pub(crate) fn look(pid: i32) -> Option<Seen> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Our id in the numbers of `/proc`, which need not be those of our namespace.
fn own_id() -> Option<i32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

fn everybody() -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// `pid (name) state ppid …`: the name may hold anything, also parentheses, so what counts starts after the last one.
fn parse(pid: i32, stat: &[u8]) -> Option<Seen> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let is_alive = !matches!(*fields.first()?, "Z" | "X");
    Some(Seen {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        threads: if is_alive { number(17)?.max(1) } else { 0 },
        started: number(19)?,
        resident_bytes: number(21)?.saturating_mul(rustix::param::page_size() as u64),
    })
}

fn proportional_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_line() {
        let line = b"7 (a) S 1 1 (x) R 42 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 99 1000 3 0\n";
        let seen = parse(7, line).expect("a line");
        assert_eq!((seen.parent, seen.threads, seen.started), (42, 5, 99));
        assert_eq!(seen.resident_bytes, 3 * rustix::param::page_size() as u64);
        assert!(parse(7, b"7 (a").is_none());
        let zombie = parse(7, b"7 (a) Z 42 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 0 0 0\n").expect("a line");
        assert_eq!(zombie.threads, 0);
    }

    #[test]
    fn a_child_is_a_descendant_and_the_parent_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let found = descendants();
        child.kill().expect("alive");
        child.wait().expect("ours");
        assert!(found.iter().any(|one| one.pid == child.id() as i32));
        assert!(found.iter().all(|one| one.pid != std::process::id() as i32));
    }
}
