//! A control group for each jail, if the system allows one. It is the only exact limit of memory and processes.
//!
//! Version 2: the group is created below Glovebox's own group, or below the nearest ancestor that delegates memory
//! and pids to its children and that Glovebox may write (delegated by systemd, or as root). Version 1: the groups
//! are created below Glovebox's own groups, as root. Existing groups are never changed. The
//! kernel's OOM killer must not kill the whole group (`memory.oom.group` stays 0): PID 1 of the jail must survive to report
//! that no other process is left. The host reads the counter `oom_kill` and kills the command.

use glovebox_record::Limits;
use glovebox_workspace::regular_file;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Number of processes in the group that are not part of a command: the helper and its first process.
const OWN_PROCESSES: u64 = 2;
/// Memory of the helper and its first process, in addition to that of the commands, bytes.
const OWN_MEMORY_BYTES: u64 = 8 << 20;
/// Maximum time for trying to remove an emptied group.
const REMOVE_MAX: Duration = Duration::from_secs(2);
/// Interval at which a group that should be empty is checked.
const NAP: Duration = Duration::from_millis(5);
/// Maximum number of ancestors in which a group that delegates controllers is looked for.
const ANCESTORS_MAX: usize = 8;
const PREFIX: &str = "glovebox-";

static NUMBER: AtomicU64 = AtomicU64::new(0);
/// Folders in which Glovebox has already searched for abandoned groups.
static TIDIED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The groups of one jail. Dropping it removes them.
#[derive(Debug)]
pub(super) struct Cgroup {
    memory: PathBuf,
    /// `None` in version 2, where `memory` is the group for both.
    pids: Option<PathBuf>,
    version: CgroupVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    One,
    Two,
}

/// The parent groups of the jails' groups.
#[derive(Debug)]
struct ParentGroups {
    memory: PathBuf,
    /// `None` in version 2, where `memory` is the group for both.
    pids: Option<PathBuf>,
}

/// Events and usage of a group so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GroupUsage {
    pub(super) memory_peak_bytes: u64,
    pub(super) processes_peak: u64,
    /// Number of processes that were killed because of the memory limit.
    pub(super) killed: u64,
    /// Number of forks that were refused.
    pub(super) forks_refused: u64,
}

impl Cgroup {
    /// Creates a group that limits memory and processes. The error is the reason for the failure.
    pub(super) fn make(limits: &Limits) -> Result<Self, String> {
        // A parent that worked once works again. Searching for it takes longer than creating a group.
        static FOUND: OnceLock<ParentGroups> = OnceLock::new();
        if let Some(group) = FOUND.get().and_then(|parents| parents.make(limits).ok()) {
            return Ok(group);
        }
        let made = Self::find(limits)?;
        if let Some(parents) = made.parents() {
            let _ = FOUND.set(parents);
        }
        Ok(made)
    }

    fn parents(&self) -> Option<ParentGroups> {
        let above = |group: &PathBuf| group.parent().map(Path::to_owned);
        Some(ParentGroups { memory: above(&self.memory)?, pids: self.pids.as_ref().and_then(above) })
    }

    /// Searches for a parent in which Glovebox may create groups, and creates one.
    fn find(limits: &Limits) -> Result<Self, String> {
        let groups = regular_file::kernel_text("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mounts = mounts().map_err(|error| error.to_string())?;
        let own = OwnGroups { groups: &groups, mounts };
        let second = make_second(&own, limits);
        let Err(why) = second else { return second };
        make_first(&own, limits).map_err(|also| format!("version 2: {why}; version 1: {also}"))
    }

    /// Returns the files to which the helper writes its own id. In version 1, that moves a single thread, which is
    /// fast, and the helper has only one. To move a process, the kernel waits for all forks on the machine, which takes
    /// longer than the rest of building a jail.
    pub(super) fn procs(&self) -> Vec<PathBuf> {
        let file = match self.version {
            CgroupVersion::One => "tasks",
            CgroupVersion::Two => "cgroup.procs",
        };
        let mut all = vec![self.memory.join(file)];
        all.extend(self.pids.iter().map(|group| group.join(file)));
        all
    }

    fn pids(&self) -> &Path {
        self.pids.as_ref().unwrap_or(&self.memory)
    }

    /// Resets the peak values, if the kernel can do that.
    pub(super) fn forget_peaks(&self) {
        // Without a reset, the peak values are those of the whole jail so far.
        let _ = match self.version {
            CgroupVersion::One => fs::write(self.memory.join("memory.max_usage_in_bytes"), "0"),
            CgroupVersion::Two => Ok(()),
        };
    }

    /// Kills the processes of the group until it is empty, at most until `deadline`. Returns the number of processes
    /// that are left.
    pub(super) fn kill_all(&self, deadline: Instant) -> usize {
        loop {
            if self.version == CgroupVersion::Two {
                // The file does not exist before Linux 5.14. Then the processes are killed one by one, as in version 1.
                let _ = fs::write(self.memory.join("cgroup.kill"), "1");
            }
            let inside = self.members();
            if inside.is_empty() || Instant::now() >= deadline {
                return inside.len();
            }
            for pid in inside {
                let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
                // The process is still in the group, so its id was not reused for another process.
                if self.members().contains(&pid) {
                    // A process that has already ended needs no kill.
                    let _ = pidfd_send_signal(held, Signal::KILL);
                }
            }
            std::thread::sleep(NAP);
        }
    }

    fn members(&self) -> Vec<Pid> {
        let text = regular_file::kernel_text(self.memory.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }

    /// Reads the number of processes that were killed because of the memory limit so far.
    pub(super) fn killed(&self) -> u64 {
        let events = match self.version {
            CgroupVersion::One => "memory.oom_control",
            CgroupVersion::Two => "memory.events",
        };
        field(&self.memory.join(events), "oom_kill")
    }

    /// Reads the usage so far.
    pub(super) fn usage(&self) -> GroupUsage {
        let peak = match self.version {
            CgroupVersion::One => "memory.max_usage_in_bytes",
            CgroupVersion::Two => "memory.peak",
        };
        GroupUsage {
            memory_peak_bytes: number(&self.memory.join(peak)),
            processes_peak: number(&self.pids().join("pids.peak")).saturating_sub(OWN_PROCESSES),
            killed: self.killed(),
            forks_refused: field(&self.pids().join("pids.events"), "max"),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in [&self.memory].into_iter().chain(&self.pids) {
            let deadline = Instant::now() + REMOVE_MAX;
            // The folder is busy until the parent of the last process reaps it.
            while let Err(error) = fs::remove_dir(folder) {
                if error.kind() == io::ErrorKind::NotFound || Instant::now() >= deadline {
                    break;
                }
                std::thread::sleep(NAP);
            }
        }
    }
}

/// The groups of Glovebox, from `/proc`.
struct OwnGroups<'t> {
    groups: &'t str,
    mounts: &'t str,
}

impl OwnGroups<'_> {
    /// Finds Glovebox's own folder of a hierarchy, and the folder that the hierarchy is mounted at.
    fn folder(&self, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
        let own = self.groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
            let is_it = match controller {
                None => number == "0",
                Some(name) => names.split(',').any(|found| found == name),
            };
            is_it.then_some(path)
        })?;
        self.mounts.lines().find_map(|line| {
            let (place, system) = line.split_once(" - ")?;
            let mut system = system.split(' ');
            let (kind, options) = (system.next()?, system.nth(1)?);
            let is_it = match controller {
                None => kind == "cgroup2",
                Some(name) => kind == "cgroup" && options.split(',').any(|found| found == name),
            };
            let mut place = place.split(' ').skip(3);
            let (root, at) = (place.next()?, PathBuf::from(place.next()?));
            let below = Path::new(own).strip_prefix(root).ok()?;
            is_it.then(|| (at.join(below), at))
        })
    }
}

fn make_second(own: &OwnGroups<'_>, limits: &Limits) -> Result<Cgroup, String> {
    let (folder, mounted) = own.folder(None).ok_or("not mounted")?;
    let within = folder.ancestors().take(ANCESTORS_MAX).take_while(|ancestor| ancestor.starts_with(&mounted));
    let mut refused = "no parent group enables the controllers memory and pids for its children".to_owned();
    for parent in within {
        let handed = regular_file::kernel_text(parent.join("cgroup.subtree_control")).unwrap_or_default();
        if !["memory", "pids"].iter().all(|name| handed.split_whitespace().any(|found| found == *name)) {
            continue;
        }
        match in_second(parent, limits) {
            Err(MakeError::Refused(why)) => refused = why,
            Err(MakeError::Unbounded(why)) => return Err(why),
            Ok(made) => return Ok(made),
        }
    }
    Err(refused)
}

fn make_first(own: &OwnGroups<'_>, limits: &Limits) -> Result<Cgroup, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can create groups".to_owned());
    }
    let folder = |name: &str| own.folder(Some(name)).map(|(folder, _)| folder).ok_or(format!("no {name} controller"));
    in_first(&folder("memory")?, &folder("pids")?, limits)
}

impl ParentGroups {
    fn make(&self, limits: &Limits) -> Result<Cgroup, String> {
        match &self.pids {
            Some(pids) => in_first(&self.memory, pids, limits),
            None => in_second(&self.memory, limits).map_err(MakeError::reason),
        }
    }
}

/// Why there is no new group in a folder.
enum MakeError {
    /// The group could not be created there.
    Refused(String),
    /// The group was created but does not enforce limits.
    Unbounded(String),
}

impl MakeError {
    fn reason(self) -> String {
        match self {
            Self::Refused(why) | Self::Unbounded(why) => why,
        }
    }
}

/// Creates a group of version 2.
fn in_second(parent: &Path, limits: &Limits) -> Result<Cgroup, MakeError> {
    let made = begin(parent).map_err(|error| MakeError::Refused(format!("`{}`: {error}", parent.display())))?;
    let group = Cgroup { memory: made, pids: None, version: CgroupVersion::Two };
    let limits = [
        ("memory.max", limits.command_memory_bytes.saturating_add(OWN_MEMORY_BYTES)),
        ("pids.max", limits.processes.saturating_add(OWN_PROCESSES)),
    ];
    let set = limits.into_iter().try_for_each(|(name, value)| limit(&group.memory, name, value));
    set.map_err(MakeError::Unbounded)?;
    // The file does not exist if the kernel does not count swap.
    let _ = fs::write(group.memory.join("memory.swap.max"), "0");
    Ok(group)
}

/// Creates the two groups of version 1.
fn in_first(memory: &Path, pids: &Path, limits: &Limits) -> Result<Cgroup, String> {
    let made = |folder: &Path| begin(folder).map_err(|error| format!("`{}`: {error}", folder.display()));
    let memory = made(memory)?;
    // From here on, dropping `group` removes the groups.
    let mut group = Cgroup { pids: None, memory, version: CgroupVersion::One };
    group.pids = Some(made(pids)?);
    let bytes = limits.command_memory_bytes.saturating_add(OWN_MEMORY_BYTES);
    limit(&group.memory, "memory.limit_in_bytes", bytes)?;
    // The file does not exist if the kernel does not count swap.
    let _ = limit(&group.memory, "memory.memsw.limit_in_bytes", bytes);
    limit(group.pids(), "pids.max", limits.processes.saturating_add(OWN_PROCESSES))?;
    Ok(group)
}

/// Creates a new group in `parent`. The first call for a parent removes groups that earlier Glovebox processes left
/// there.
fn begin(parent: &Path) -> io::Result<PathBuf> {
    let space = own_space()?;
    let mut tidied = TIDIED.lock().unwrap_or_else(PoisonError::into_inner);
    if !tidied.iter().any(|known| known == parent) {
        tidy(parent, space)?;
        tidied.push(parent.to_owned());
    }
    drop(tidied);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let made = parent.join(format!("{PREFIX}{space}-{}-{number}", std::process::id()));
    fs::create_dir(&made)?;
    Ok(made)
}

/// Returns the mounts. They are read once, because control group hierarchies are mounted when a machine starts.
fn mounts() -> io::Result<&'static str> {
    static MOUNTS: OnceLock<String> = OnceLock::new();
    if let Some(mounts) = MOUNTS.get() {
        return Ok(mounts);
    }
    let mounts = regular_file::kernel_text("/proc/self/mountinfo")?;
    Ok(MOUNTS.get_or_init(|| mounts))
}

/// Returns the number of the PID namespace of Glovebox, which never changes.
fn own_space() -> io::Result<&'static str> {
    static SPACE: OnceLock<String> = OnceLock::new();
    if let Some(space) = SPACE.get() {
        return Ok(space);
    }
    let link = fs::read_link("/proc/self/ns/pid")?;
    Ok(SPACE.get_or_init(|| link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()))
}

/// Removes groups that earlier Glovebox processes of this PID namespace left, because they were killed or exited before
/// they removed the groups.
fn tidy(parent: &Path, space: &str) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let mut parts = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).unwrap_or_default().split('-');
        let (Some(its_space), Some(process)) = (parts.next(), parts.next()) else { continue };
        if its_space == space && !Path::new("/proc").join(process).exists() {
            // The group is not empty: a process in it has not ended completely.
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

fn limit(group: &Path, name: &str, value: u64) -> Result<(), String> {
    fs::write(group.join(name), value.to_string()).map_err(|error| format!("`{name}`: {error}"))
}

/// Maximum size of the files that are read here, bytes.
const FILE_BYTES_MAX: usize = 1024;

fn number(path: &Path) -> u64 {
    read(path).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn field(path: &Path, name: &str) -> u64 {
    let text = read(path).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
    value.unwrap_or(0)
}

/// Returns the content of a file of a group, which one read call returns completely.
#[expect(clippy::disallowed_methods, reason = "a kernel file, of which at most one page is read")]
fn read(path: &Path) -> Option<String> {
    let mut bytes = [0; FILE_BYTES_MAX];
    let length = File::open(path).and_then(|mut file| file.read(&mut bytes)).ok()?;
    Some(std::str::from_utf8(&bytes[..length]).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_through_its_mount() {
        let groups = "9:name=systemd:/\n4:memory:/a/b\n3:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
        let mounts = "30 20 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                      31 20 0:27 /a /sys/fs/cgroup/memory rw shared:7 - cgroup cgroup rw,memory\n";
        let own = OwnGroups { groups, mounts };
        let pair = |a: &str, b: &str| Some((PathBuf::from(a), PathBuf::from(b)));
        let unified = "/sys/fs/cgroup/unified";
        assert_eq!(own.folder(None), pair(&format!("{unified}/user.slice/x.scope"), unified));
        assert_eq!(own.folder(Some("memory")), pair("/sys/fs/cgroup/memory/b", "/sys/fs/cgroup/memory"));
        assert_eq!(own.folder(Some("pids")), None);
    }
}
