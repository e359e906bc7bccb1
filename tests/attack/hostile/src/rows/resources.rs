//! Attacks that use too much of a resource or run too long. Each has its own sandbox with its own limits.

use crate::row::{Limits, Payload, Proof, Row, Source};

const SMALL: Limits =
    Limits { command_memory_bytes: 96 << 20, timeout_ms: 8_000, tmp_bytes: 512 << 20, ..Limits::ALONE };
/// Longer timeout, because the sandbox measures held memory and disk space only after a delay.
const HOLDING: Limits = Limits { timeout_ms: 20_000, ..SMALL };
const FULL_DISK: Limits = Limits { disk_bytes: 24 << 20, timeout_ms: 20_000, ..Limits::ALONE };
const NO_USER: &str =
    "inotify is counted per user, and the helper cannot set a limit without a user namespace of its own";
const WATCHED: &str = "without a cgroup processes are only watched";
pub(super) const WATCHED_ROOT: &str = "without a cgroup root's processes are only watched";
const CROWDED: Limits = Limits { processes: 48, timeout_ms: 8_000, ..Limits::ALONE };
const SHORT: Limits = Limits { timeout_ms: 700, ..Limits::ALONE };
const BURNING: Limits = Limits { cpu_ms: 1_000, timeout_ms: 6_000, ..Limits::ALONE };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("fork-bomb", Source::Sandbox(51), "start more processes than are allowed", "pid_max, cgroup", Payload::Program(&["forks", "300"])).limits(CROWDED).landlock(WATCHED).bwrap(WATCHED_ROOT),
    Row::new("memory-anonymous", Source::Sandbox(52), "take memory", "cgroup, watch", Payload::Program(&["memory", "anon", "384"])).limits(SMALL),
    Row::new("memory-shared", Source::Sandbox(52), "take shared memory", "cgroup, watch", Payload::Program(&["memory", "shared", "384"])).limits(SMALL),
    Row::new("memory-file", Source::Sandbox(52), "take memory by an unnamed file", "cgroup, watch", Payload::Program(&["memory", "memfd", "384"])).limits(SMALL),
    Row::new("memory-tmpfs", Source::Sandbox(52), "take memory by files on tmpfs", "cgroup, watch", Payload::Program(&["memory", "tmp", "384"])).limits(SMALL),
    Row::new("memory-many", Source::Sandbox(52), "take memory with many processes", "cgroup, watch", Payload::Program(&["memory", "many", "384"])).limits(SMALL),
    Row::new("memory-held", Source::Review(8), "take memory by many unnamed files", "cgroup, watch", Payload::Program(&["hold", "memfd", "open", "384"])).limits(HOLDING),
    Row::new("memory-sent", Source::Review(8), "take memory by files that only a socket keeps open", "cgroup, watch", Payload::Program(&["hold", "memfd", "sent", "384"])).limits(HOLDING),
    Row::new("memory-mapped", Source::Review(8), "take memory by files with one mapped page", "cgroup, watch", Payload::Program(&["hold", "memfd", "mapped", "384"])).limits(HOLDING),
    Row::new("memory-torn", Source::Review(8), "take shared memory and unmap all pages but one", "cgroup, watch", Payload::Program(&["hold", "torn", "kept", "384"])).limits(HOLDING),
    Row::new("memory-segments", Source::Review(8), "take memory by detached System V segments", "cgroup, watch", Payload::Program(&["hold", "segment", "kept", "384"])).limits(HOLDING),
    Row::new("memory-queues", Source::Review(8), "take memory by full message queues", "cgroup, watch", Payload::Program(&["hold", "queues", "kept", "384"])).limits(HOLDING),
    Row::new("memory-posix-queues", Source::Review(8), "take memory by a POSIX message queue", "resource limits", Payload::Program(&["hold", "posix", "kept", "64"])).limits(HOLDING),
    Row::new("memory-semaphores", Source::Review(8), "take memory by semaphores", "cgroup, watch", Payload::Program(&["hold", "semaphores", "kept", "384"])).limits(HOLDING),
    Row::new("memory-undumpable", Source::Review(8), "hold memory in a process that is not dumpable", "cgroup, watch", Payload::Program(&["hold-undumpable", "memfd", "open", "384"])).limits(HOLDING),
    Row::new("memory-headless", Source::Review(8), "hold memory in a process whose first thread has ended", "cgroup, watch", Payload::Program(&["hold-headless", "memfd", "open", "384"])).limits(HOLDING),
    Row::new("disk-unlinked", Source::Review(7), "fill the disk with removed files that are still open", "watch", Payload::Program(&["hold", "unlinked", "open", "160", "{out}"])).limits(FULL_DISK),
    Row::new("disk-nameless", Source::Review(7), "fill the disk with files that never had a name", "watch", Payload::Program(&["hold", "nameless", "open", "160", "{out}"])).limits(FULL_DISK),
    Row::new("disk-sent", Source::Review(7), "fill the disk with files that only a socket keeps open", "watch", Payload::Program(&["hold", "unlinked", "sent", "480", "{out}"])).limits(FULL_DISK),
    Row::new("disk-mapped", Source::Review(7), "fill the disk with files that are only mapped", "watch", Payload::Program(&["hold", "unlinked", "mapped", "480", "{out}"])).limits(FULL_DISK),
    Row::new("disk-undumpable", Source::Review(7), "hold disk space in a process that is not dumpable", "watch", Payload::Program(&["hold-undumpable", "unlinked", "open", "160", "{out}"])).limits(FULL_DISK),
    Row::new("disk-headless", Source::Review(7), "hold disk space in a process whose first thread has ended", "watch", Payload::Program(&["hold-headless", "unlinked", "open", "160", "{out}"])).limits(FULL_DISK),
    Row::new("inotify", Source::Review(18), "use up the user's inotify watches on the machine", "user namespace", Payload::Program(&["inotify"])).limits(Limits::ALONE).landlock(NO_USER).bwrap(NO_USER),
    Row::new("processor", Source::Sandbox(53), "use the processor without end", "resource limits", Payload::Program(&["spin", "1"])).limits(BURNING).proof(Proof::Ended),
    Row::new("spin", Source::Sandbox(53), "use the processor in 64 threads", "wall time", Payload::Program(&["spin", "64"])).limits(SHORT).proof(Proof::Ended),
    Row::new("sleep", Source::Sandbox(53), "sleep past the time limit", "wall time", Payload::Program(&["sleep"])).limits(SHORT).proof(Proof::Ended),
    Row::new("flood-lines", Source::Sandbox(54), "write more output than the limit", "output bound", Payload::Program(&["flood", "64", "lines"])).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::new("flood-line", Source::Sandbox(54), "write one endless line", "output bound", Payload::Program(&["flood", "64"])).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::new("flood-escapes", Source::Sandbox(54), "write terminal control sequences", "output bound", Payload::Program(&["flood", "32", "escapes"])).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::new("close-output", Source::Sandbox(55), "close the output and keep running", "wall time", Payload::Program(&["close-output"])).limits(SHORT).proof(Proof::Ended),
    Row::new("hold-output", Source::Sandbox(55), "keep the output open in a background process", "PID 1", Payload::Program(&["daemon", "{mark}"])).limits(Limits::ALONE).proof(Proof::Reaped),
    Row::new("stubborn", Source::Sandbox(56), "ignore SIGTERM", "PID 1", Payload::Program(&["stubborn"])).limits(SHORT).proof(Proof::Ended),
    Row::new("daemon", Source::Sandbox(56), "leave a daemon in its own session", "PID 1", Payload::Program(&["daemon", "{mark}"])).limits(Limits::ALONE).proof(Proof::Reaped),
    Row::new("racers", Source::Sandbox(57), "leave processes that constantly replace themselves by a fork", "PID 1", Payload::Program(&["racers", "8", "{mark}"])).limits(Limits::ALONE).proof(Proof::Reaped),
];
