//! The limits of a jail's commands, and the resources that the commands used.
//!
//! The limits are those of [`Limits`]. An exceeded limit is reported under its name.

use crate::proxy::traffic::ProxyRecord;
use glovebox_jail_helper::policy;
use glovebox_record::Limits;

/// Returns the part of the limits that the helper enforces. A limit of 0 allows nothing; it does not mean "unlimited".
pub(super) fn enforced_inside(limits: &Limits) -> policy::Bounds {
    policy::Bounds {
        cpu_ms: limits.cpu_ms,
        command_memory_bytes: limits.command_memory_bytes,
        is_memory_counted: true,
        processes: limits.processes,
        descriptors: limits.descriptors,
        file_bytes: limits.file_bytes,
        tmp_bytes: limits.tmp_bytes,
    }
}

/// Adds to `degradations` the limits that only the watchdog enforces (`soft`), and those that nothing enforces because
/// the host cannot see the processes (`none`). The helper has already added the limits that it cannot enforce itself.
pub(super) fn name_not_enforced(degradations: &mut Vec<String>, is_grouped: bool, is_watched: impl FnOnce() -> bool) {
    if !is_grouped {
        degradations.push("memory=soft".to_owned());
    }
    let mut named = degradations.iter_mut().filter(|name| matches!(name.as_str(), "memory=soft" | "processes=soft"));
    let first = named.next();
    if first.is_some() && !is_watched() {
        first.into_iter().chain(named).for_each(|name| *name = name.replace("=soft", "=none"));
    }
}

/// Resource usage of all commands of a jail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Number of commands that were started.
    pub commands: u64,
    /// Processor time of all commands, milliseconds.
    pub cpu_ms: u64,
    /// Peak memory of one command with all its processes, bytes.
    pub memory_peak_bytes: u64,
    /// Peak disk usage, bytes; `None` if no command was started.
    pub disk_peak_bytes: Option<u64>,
    /// Length of the largest file that was left in the workspace or a cache, bytes; `None` if no file was left.
    pub file_peak_bytes: Option<u64>,
    /// Traffic through the proxy, and refused requests; `None` without a proxy.
    pub traffic: Option<ProxyRecord>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_enforces_is_not_called_soft() {
        let check = |is_grouped, is_watched, expected: &[&str]| {
            let mut degradations = vec!["tmp=none".to_owned(), "processes=soft".to_owned()];
            name_not_enforced(&mut degradations, is_grouped, || is_watched);
            assert_eq!(degradations, expected, "{is_grouped} {is_watched}");
        };
        check(true, true, &["tmp=none", "processes=soft"]);
        check(false, true, &["tmp=none", "processes=soft", "memory=soft"]);
        check(false, false, &["tmp=none", "processes=none", "memory=none"]);
    }
}
