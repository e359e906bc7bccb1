//! What commands of one jail may use, and what they used.
//!
//! The names are those of `[limits]` in `glovebox.toml`. A limit that was passed is reported under its name.

use crate::proxy::traffic::ProxyRecord;
use glovebox_jail::policy;

/// What may be used. 0 means nothing, not "unlimited".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Processor time of one process in milliseconds, rounded up to seconds; limit `cpu_ms`.
    pub cpu_ms: u64,
    /// Memory of all processes together; limit `command_memory_bytes`.
    pub command_memory_bytes: u64,
    /// Processes and threads at the same time; limit `processes`.
    pub processes: u64,
    /// Open descriptors of one process; limit `descriptors`.
    pub descriptors: u64,
    /// Bytes of one file; limit `file_bytes`.
    pub file_bytes: u64,
    /// Bytes of `/tmp` and of `/dev/shm`, each; limit `tmp_bytes`.
    pub tmp_bytes: u64,
    /// Bytes on disk that commands may add to the workspace; limit `disk_bytes`.
    pub disk_bytes: u64,
}

impl Default for Bounds {
    /// Ten minutes of processor time, 4 GiB of memory, 512 processes, 1,024 descriptors, files of 1 GiB, 512 MiB of `/tmp`,
    /// 2 GiB on disk.
    fn default() -> Self {
        Self {
            cpu_ms: 600_000,
            command_memory_bytes: 4 << 30,
            processes: 512,
            descriptors: 1024,
            file_bytes: 1 << 30,
            tmp_bytes: 512 << 20,
            disk_bytes: 2 << 30,
        }
    }
}

impl Bounds {
    /// Returns the bounds that the helper enforces.
    pub(super) fn enforced_inside(&self) -> policy::Bounds {
        policy::Bounds {
            cpu_seconds: self.cpu_ms.div_ceil(1000),
            memory_bytes: self.command_memory_bytes,
            processes: self.processes,
            descriptors: self.descriptors,
            file_bytes: self.file_bytes,
            tmp_bytes: self.tmp_bytes,
        }
    }
}

/// Names the bounds that only the watchdog enforces (`soft`), and those that nothing enforces because the host sees no processes
/// (`none`). The helper has named those that it cannot enforce.
pub(super) fn name_not_enforced(degradations: &mut Vec<String>, is_grouped: bool, is_watched: bool) {
    if !is_grouped {
        degradations.push("memory=soft".to_owned());
    }
    let named = degradations.iter_mut().filter(|name| matches!(name.as_str(), "memory=soft" | "processes=soft"));
    for name in named.filter(|_| !is_watched) {
        *name = name.replace("=soft", "=none");
    }
}

/// What all commands of a jail used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Commands that were started.
    pub commands: u64,
    /// Processor time of all, in milliseconds.
    pub cpu_ms: u64,
    /// Largest memory of one command with all its processes.
    pub memory_peak_bytes: u64,
    /// Most bytes on disk; none without a command.
    pub disk_peak_bytes: Option<u64>,
    /// Length of the largest file that was left in the workspace or a cache; none where none was.
    pub file_peak_bytes: Option<u64>,
    /// What went through the proxy, and what did not; where there was one.
    pub traffic: Option<ProxyRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_enforces_is_not_called_soft() {
        let check = |is_grouped, is_watched, expected: &[&str]| {
            let mut degradations = vec!["tmp=none".to_owned(), "processes=soft".to_owned()];
            name_not_enforced(&mut degradations, is_grouped, is_watched);
            assert_eq!(degradations, expected, "{is_grouped} {is_watched}");
        };
        check(true, true, &["tmp=none", "processes=soft"]);
        check(false, true, &["tmp=none", "processes=soft", "memory=soft"]);
        check(false, false, &["tmp=none", "processes=none", "memory=none"]);
    }
}
