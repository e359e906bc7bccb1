//! Taking too much, and lasting too long. Each has a place for itself and a bound of its own.

use crate::row::{Limits, Proof, Row};

const SMALL: Limits =
    Limits { command_memory_bytes: 96 << 20, timeout_ms: 8_000, tmp_bytes: 512 << 20, ..Limits::ALONE };
/// What is held shows after a moment.
const HOLDING: Limits = Limits { timeout_ms: 20_000, ..SMALL };
const FULL_DISK: Limits = Limits { disk_bytes: 24 << 20, timeout_ms: 20_000, ..Limits::ALONE };
const NO_USER: &str = "inotify belongs to the user, and there is no user namespace that the helper may set";
const WATCHED: &str = "without a cgroup processes are only watched";
pub(super) const WATCHED_ROOT: &str = "without a cgroup root's processes are only watched";
const CROWDED: Limits = Limits { processes: 48, timeout_ms: 8_000, ..Limits::ALONE };
const SHORT: Limits = Limits { timeout_ms: 700, ..Limits::ALONE };
const BURNING: Limits = Limits { cpu_ms: 1_000, timeout_ms: 6_000, ..Limits::ALONE };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("fork-bomb", "sandbox 51", "start more processes than are allowed", "pid_max, cgroup", &["forks", "300"]).limits(CROWDED).landlock(WATCHED).bwrap(WATCHED_ROOT),
    Row::program("memory-anonymous", "sandbox 52", "take memory", "cgroup, watch", &["memory", "anon", "384"]).limits(SMALL),
    Row::program("memory-shared", "sandbox 52", "take shared memory", "cgroup, watch", &["memory", "shared", "384"]).limits(SMALL),
    Row::program("memory-file", "sandbox 52", "take memory by a file without a name", "cgroup, watch", &["memory", "memfd", "384"]).limits(SMALL),
    Row::program("memory-tmpfs", "sandbox 52", "take memory by files", "cgroup, watch", &["memory", "tmp", "384"]).limits(SMALL),
    Row::program("memory-many", "sandbox 52", "take memory with many processes", "cgroup, watch", &["memory", "many", "384"]).limits(SMALL),
    Row::program("memory-held", "review 8", "take memory by many files without a name", "cgroup, watch", &["hold", "memfd", "open", "384"]).limits(HOLDING),
    Row::program("memory-sent", "review 8", "take memory by files that only a socket holds", "cgroup, watch", &["hold", "memfd", "sent", "384"]).limits(HOLDING),
    Row::program("memory-mapped", "review 8", "take memory by files of which one page is mapped", "cgroup, watch", &["hold", "memfd", "mapped", "384"]).limits(HOLDING),
    Row::program("memory-torn", "review 8", "take shared memory and unmap all but a page", "cgroup, watch", &["hold", "torn", "kept", "384"]).limits(HOLDING),
    Row::program("memory-segments", "review 8", "take memory by segments that nobody is attached to", "cgroup, watch", &["hold", "segment", "kept", "384"]).limits(HOLDING),
    Row::program("memory-queues", "review 8", "take memory by full message queues", "cgroup, watch", &["hold", "queues", "kept", "384"]).limits(HOLDING),
    Row::program("memory-posix-queues", "review 8", "make a message queue of POSIX", "resource limits", &["hold", "posix", "kept", "64"]).limits(HOLDING),
    Row::program("memory-semaphores", "review 8", "take memory by semaphores", "cgroup, watch", &["hold", "semaphores", "kept", "384"]).limits(HOLDING),
    Row::program("memory-undumpable", "review 8", "hold memory in a process that lets nobody look into it", "cgroup, watch", &["hold-undumpable", "memfd", "open", "384"]).limits(HOLDING),
    Row::program("memory-headless", "review 8", "hold memory in a process whose first thread has ended", "cgroup, watch", &["hold-headless", "memfd", "open", "384"]).limits(HOLDING),
    Row::program("disk-unlinked", "review 7", "fill the disk with open files without a name", "watch", &["hold", "unlinked", "open", "160", "{out}"]).limits(FULL_DISK),
    Row::program("disk-nameless", "review 7", "fill the disk with files that never had a name", "watch", &["hold", "nameless", "open", "160", "{out}"]).limits(FULL_DISK),
    Row::program("disk-sent", "review 7", "fill the disk with files that only a socket holds", "watch", &["hold", "unlinked", "sent", "480", "{out}"]).limits(FULL_DISK),
    Row::program("disk-mapped", "review 7", "fill the disk with files that are only mapped", "watch", &["hold", "unlinked", "mapped", "480", "{out}"]).limits(FULL_DISK),
    Row::program("disk-undumpable", "review 7", "hold them in a process that lets nobody look into it", "watch", &["hold-undumpable", "unlinked", "open", "160", "{out}"]).limits(FULL_DISK),
    Row::program("disk-headless", "review 7", "hold them in a process whose first thread has ended", "watch", &["hold-headless", "unlinked", "open", "160", "{out}"]).limits(FULL_DISK),
    Row::program("inotify", "review 18", "take what the user has of inotify on the whole machine", "user namespace", &["inotify"]).limits(Limits::ALONE).landlock(NO_USER).bwrap(NO_USER),
    Row::program("processor", "sandbox 53", "use the processor without an end", "resource limits", &["spin", "1"]).limits(BURNING).proof(Proof::Ended),
    Row::program("spin", "sandbox 53", "use the processor in 64 threads", "wall time", &["spin", "64"]).limits(SHORT).proof(Proof::Ended),
    Row::program("sleep", "sandbox 53", "sleep for long", "wall time", &["sleep"]).limits(SHORT).proof(Proof::Ended),
    Row::program("flood-lines", "sandbox 54", "write more output than is kept", "output bound", &["flood", "64", "lines"]).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::program("flood-line", "sandbox 54", "write one line without an end", "output bound", &["flood", "64"]).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::program("flood-escapes", "sandbox 54", "write what commands a terminal", "output bound", &["flood", "32", "escapes"]).limits(Limits::ALONE).proof(Proof::Bounded),
    Row::program("close-output", "sandbox 55", "close the output and go on", "wall time", &["close-output"]).limits(SHORT).proof(Proof::Ended),
    Row::program("hold-output", "sandbox 55", "hold the output in a process left behind", "PID 1", &["daemon", "{mark}"]).limits(Limits::ALONE).proof(Proof::Reaped),
    Row::program("stubborn", "sandbox 56", "ignore being told to end", "PID 1", &["stubborn"]).limits(SHORT).proof(Proof::Ended),
    Row::program("daemon", "sandbox 56", "leave a process of two forks and a session of its own", "PID 1", &["daemon", "{mark}"]).limits(Limits::ALONE).proof(Proof::Reaped),
    Row::program("racers", "sandbox 57", "leave processes that replace themselves all the time", "PID 1", &["racers", "8", "{mark}"]).limits(Limits::ALONE).proof(Proof::Reaped),
];
