//! Limits of a command that the kernel enforces: resource limits and the number of process ids.
//!
//! Only a control group can bound the memory of all processes together. Without one, the host watches it.
#![forbid(unsafe_code)]

use crate::fault::At;
use glovebox_jail_helper::policy::{Bounds, Confinement, Policy};
use glovebox_jail_helper::wire::Failure;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;

/// Minimum value of `kernel.pid_max` that the kernel accepts.
const PID_MAX_FLOOR: u64 = 301;
/// The first version of Linux in which each PID namespace has its own `kernel.pid_max`. In earlier versions, the value
/// applies to the whole machine.
const PID_MAX_SINCE: (u32, u32) = (6, 14);

/// Number of process ids from which the first one of a jail is taken, if nothing bounds the ids.
const PID_STARTS: u64 = 20_000;
/// Number of process ids that remain after the first one of a jail whose ids are bounded. The ids then wrap.
const PIDS_AFTER_START: u64 = 32;

/// Processor time that a process gets beyond its limit before the kernel kills it, seconds. The host samples ten times
/// a second and ends the whole command with the name of the limit. A kill by the kernel ends only one process, and its
/// parent may hide that. Twenty processors use this much time between two samples.
const CPU_SECONDS_BEYOND: u64 = 2;
/// Soft limit of descriptors, which a process may raise to the hard limit. Programs that use `select` cannot use more.
const SOFT_DESCRIPTORS: u64 = 1024;
/// Maximum size of all POSIX message queues of a jail, bytes: the kernel's default.
const QUEUE_BYTES: u64 = 800 << 10;
/// Divisor of a user's inotify limits. The quotient is the limit of one jail.
const INOTIFY_PARTS: u64 = 4;

/// Enters the control groups that the host created.
pub(crate) fn enter_cgroups(policy: &Policy) -> Result<(), Failure> {
    policy
        .cgroup_procs
        .iter()
        .try_for_each(|file| std::fs::write(file, "0").at(format!("enter cgroup {}", file.display())))
}

/// Sets the resource limits of a command, in the process that becomes the command.
pub(crate) fn limit(bounds: &Bounds, confinement: Confinement) -> Result<(), Failure> {
    let cpu_seconds = bounds.cpu_ms.div_ceil(1000).saturating_add(CPU_SECONDS_BEYOND);
    let mut limits = vec![
        // With 0, a core-dump program of the host would still run. The value 1 disables core dumps completely.
        (Resource::Core, 1, 1),
        // A process can handle the signal of the soft limit, but not the kill by the hard limit one second later.
        (Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1)),
        (Resource::Fsize, bounds.file_bytes, bounds.file_bytes),
        (Resource::Memlock, 1 << 20, 1 << 20),
        (Resource::Nice, 0, 0),
        (Resource::Nofile, bounds.descriptors.min(SOFT_DESCRIPTORS), bounds.descriptors),
        (Resource::Rtprio, 0, 0),
        (Resource::Sigpending, 1024, 1024),
    ];
    if !bounds.is_memory_counted {
        // This limit counts reserved pages too, so sanitizers and databases cannot start with it. It is the last resort.
        limits.push((Resource::Data, bounds.command_memory_bytes, bounds.command_memory_bytes));
    }
    // Without a separate IPC namespace, the queues would be those of the machine.
    let queue_bytes = if confinement.has_namespaces() { QUEUE_BYTES } else { 0 };
    limits.push((Resource::Msgqueue, queue_bytes, queue_bytes));
    if confinement.has_namespaces() {
        // Counted per user namespace. Without a separate user namespace, processes of the same user outside of the jail
        // would be counted too.
        limits.push((Resource::Nproc, bounds.processes, bounds.processes));
    }
    limits.into_iter().try_for_each(|(resource, soft, hard)| {
        // A limit is never raised above the inherited limit, because that needs a privilege.
        let hard = getrlimit(resource).maximum.map_or(hard, |given| given.min(hard));
        let wanted = Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) };
        setrlimit(resource, wanted).at(format!("set the resource limit {resource:?}"))
    })
}

/// Starts the process ids of the jail's PID namespace at a random id, so that a jail rarely reuses the ids of the jail
/// before it: a process id in a file that a killed server left must not name another process.
pub(crate) fn randomize_process_ids(proc: impl AsFd, is_bounded: bool, bounds: &Bounds) {
    let span = if is_bounded { bounds.processes.saturating_sub(PIDS_AFTER_START) } else { PID_STARTS };
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let offset = u64::try_from(now.tv_nsec).unwrap_or(0) % span.max(1);
    set(proc, Path::new("sys/kernel/ns_last_pid"), PID_MAX_FLOOR - 1 + offset);
}

/// Bounds the process ids of the jail's PID namespace through its `/proc`, if the kernel supports that. Returns true if
/// they are bounded.
pub(crate) fn limit_process_ids(proc: impl AsFd, bounds: &Bounds) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if version(&release) < PID_MAX_SINCE {
        return false;
    }
    // The value is exclusive. PID 1 takes one id, and the kernel does not reuse the first 300.
    let ids = bounds.processes.saturating_add(2).clamp(PID_MAX_FLOOR, 1 << 22);
    set(proc, Path::new("sys/kernel/pid_max"), ids)
}

/// Bounds the inotify instances and watches, which are limited per user on the whole machine, so that a jail cannot
/// exhaust them for the user's other programs. Also bounds System V shared memory, if the kernel lets the owner of an
/// IPC namespace do that.
pub(crate) fn limit_shared(proc: impl AsFd, bounds: &Bounds) {
    for (of_user, of_jail) in [
        ("sys/fs/inotify/max_user_instances", "sys/user/max_inotify_instances"),
        ("sys/fs/inotify/max_user_watches", "sys/user/max_inotify_watches"),
    ] {
        let all = read(&proc, Path::new(of_user)).and_then(|text| text.trim().parse::<u64>().ok());
        // A kernel without inotify has neither file.
        all.map(|all| set(&proc, Path::new(of_jail), (all / INOTIFY_PARTS).max(1)));
    }
    // An ordinary user cannot set these values. The host counts the segments in any case.
    set(&proc, Path::new("sys/kernel/shmall"), bounds.command_memory_bytes.div_ceil(rustix::param::page_size() as u64));
    set(&proc, Path::new("sys/kernel/shmmax"), bounds.command_memory_bytes);
}

#[expect(clippy::disallowed_methods, reason = "the kernel's own file")]
fn read(proc: impl AsFd, path: &Path) -> Option<String> {
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    std::io::read_to_string(std::fs::File::from(file)).ok()
}

/// Lets commands listen at every port of the jail's own network.
pub(crate) fn allow_all_ports(proc: impl AsFd) {
    set(proc, Path::new("sys/net/ipv4/ip_unprivileged_port_start"), 0);
}

fn set(proc: impl AsFd, path: &Path, value: u64) -> bool {
    let file = openat(proc, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    file.and_then(|file| rustix::io::write(file, value.to_string().as_bytes())).is_ok()
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        for (release, expected) in [
            ("6.18.44-fc", (6, 18)),
            ("6.9.0", (6, 9)),
            ("6.14-rc1", (6, 14)),
            ("5.15.0-91-generic", (5, 15)),
            ("", (0, 0)),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
        assert!(
            version("6.9") < PID_MAX_SINCE && version("6.14.0") >= PID_MAX_SINCE && version("10.1") > PID_MAX_SINCE
        );
    }
}
