//! Attacks across sandboxes: what one sandbox leaves for the next one from the same template, and attacks on the
//! template.

use crate::row::{Limits, Payload, Row, Source};

const HOSTS_NETWORK: &str = "the figures are the host's; commands have no sockets to change them";
const HOSTS_NAMESPACES: &str = "commands are in the host's namespaces";

/// The limits of a row with a preparation that runs these arguments in another sandbox, which has ended before.
const fn after(words: &'static [&'static str]) -> Limits {
    Limits { before: words, ..Limits::SHARED }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("left-listener", Source::Sandbox(69), "reach a listener that an earlier stage left", "PID 1, network namespace", Payload::Program(&["find", "listener"])).limits(after(&["leave", "listener"])),
    Row::new("left-port", Source::Sandbox(69), "see the port of a connection that an earlier stage closed", "network namespace", Payload::Program(&["find", "closed-port"])).limits(after(&["leave", "closed-port"])),
    Row::new("left-abstract", Source::Sandbox(69), "reach an abstract socket that an earlier stage left", "PID 1, network namespace", Payload::Program(&["find", "abstract"])).limits(after(&["leave", "abstract"])),
    Row::new("left-counter", Source::Sandbox(69), "read how many datagrams an earlier stage sent", "network namespace", Payload::Program(&["find", "counter"])).limits(after(&["leave", "counter"])).landlock(HOSTS_NETWORK),
    Row::new("left-setting", Source::Sandbox(69), "see a network setting that an earlier stage changed", "read-only /proc", Payload::Program(&["find", "setting"])).limits(after(&["leave", "setting"])),
    Row::new("left-segment", Source::Sandbox(69), "find a shared segment of an earlier stage", "IPC namespace", Payload::Program(&["find", "segment"])).limits(after(&["leave", "segment"])),
    Row::new("left-queue", Source::Sandbox(69), "find a message queue of an earlier stage", "IPC namespace", Payload::Program(&["find", "queue"])).limits(after(&["leave", "queue"])),
    Row::new("left-semaphore", Source::Sandbox(69), "find a semaphore of an earlier stage", "IPC namespace", Payload::Program(&["find", "semaphore"])).limits(after(&["leave", "semaphore"])),
    Row::new("left-host-name", Source::Sandbox(69), "see a host name that an earlier stage set", "seccomp, UTS namespace", Payload::Program(&["find", "host-name"])).limits(after(&["leave", "host-name"])),
    Row::new("left-files", Source::Sandbox(69), "find temporary files of an earlier stage", "mount namespace", Payload::Program(&["find", "files"])).limits(after(&["leave", "files"])),
    Row::new("left-lock", Source::Sandbox(69), "see a lock that an earlier stage kept on a shared file", "PID 1", Payload::Program(&["find", "lock"])).limits(after(&["leave", "lock"])),
    Row::new("left-shared-file", Source::Sandbox(69), "see a shared file of `/etc` that an earlier stage changed", "read-only bind", Payload::Program(&["find", "shared-file"])).limits(after(&["leave", "shared-file"])),
    Row::new("above-user", Source::Sandbox(69), "open the user namespace above its own", "user namespace", Payload::Program(&["namespace-above", "user"])),
    Row::new("above-pid", Source::Sandbox(69), "open the process namespace above its own", "process namespace", Payload::Program(&["namespace-above", "pid"])),
    Row::new("above-mount", Source::Sandbox(69), "open the owner of the namespace above its own", "user namespace", Payload::Program(&["namespace-above", "user", "owner"])),
    Row::new("foreign-process", Source::Sandbox(69), "find a process that is not its own by its number", "process namespace", Payload::Program(&["foreign-process", "70000"])).landlock(HOSTS_NAMESPACES),
];
