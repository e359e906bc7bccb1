//! Taking too much, and lasting too long. Each has a place for itself and a bound of its own.

use crate::row::{Proof, Room, Row};

const SMALL: Room = Room { memory_bytes: 96 << 20, timeout_ms: 8_000, tmp_bytes: 512 << 20, ..Room::ALONE };
const CROWDED: Room = Room { processes: 48, timeout_ms: 8_000, ..Room::ALONE };
const SHORT: Room = Room { timeout_ms: 700, ..Room::ALONE };
const BURNING: Room = Room { cpu_seconds: 1, timeout_ms: 6_000, ..Room::ALONE };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("fork-bomb", "sandbox 51", "start more processes than are allowed", "pid_max, cgroup", &["forks", "300"]).room(CROWDED).landlock("without a cgroup processes are only watched"),
    Row::program("memory-anonymous", "sandbox 52", "take memory", "cgroup, watch", &["memory", "anon", "384"]).room(SMALL),
    Row::program("memory-shared", "sandbox 52", "take shared memory", "cgroup, watch", &["memory", "shared", "384"]).room(SMALL),
    Row::program("memory-file", "sandbox 52", "take memory by a file without a name", "cgroup, watch", &["memory", "memfd", "384"]).room(SMALL),
    Row::program("memory-tmpfs", "sandbox 52", "take memory by files", "cgroup, watch", &["memory", "tmp", "384"]).room(SMALL),
    Row::program("memory-many", "sandbox 52", "take memory with many processes", "cgroup, watch", &["memory", "many", "384"]).room(SMALL),
    Row::program("processor", "sandbox 53", "use the processor without an end", "resource limits", &["spin", "1"]).room(BURNING).proof(Proof::Ended),
    Row::program("spin", "sandbox 53", "use the processor in 64 threads", "wall time", &["spin", "64"]).room(SHORT).proof(Proof::Ended),
    Row::program("sleep", "sandbox 53", "sleep for long", "wall time", &["sleep"]).room(SHORT).proof(Proof::Ended),
    Row::program("flood-lines", "sandbox 54", "write more output than is kept", "output bound", &["flood", "64", "lines"]).room(Room::ALONE).proof(Proof::Bounded),
    Row::program("flood-line", "sandbox 54", "write one line without an end", "output bound", &["flood", "64"]).room(Room::ALONE).proof(Proof::Bounded),
    Row::program("flood-escapes", "sandbox 54", "write what commands a terminal", "output bound", &["flood", "32", "escapes"]).room(Room::ALONE).proof(Proof::Bounded),
    Row::program("close-output", "sandbox 55", "close the output and go on", "wall time", &["close-output"]).room(SHORT).proof(Proof::Ended),
    Row::program("hold-output", "sandbox 55", "hold the output in a process left behind", "PID 1", &["daemon", "{mark}"]).room(Room::ALONE).proof(Proof::Reaped),
    Row::program("stubborn", "sandbox 56", "ignore being told to end", "PID 1", &["stubborn"]).room(SHORT).proof(Proof::Ended),
    Row::program("daemon", "sandbox 56", "leave a process of two forks and a session of its own", "PID 1", &["daemon", "{mark}"]).room(Room::ALONE).proof(Proof::Reaped),
    Row::program("racers", "sandbox 57", "leave processes that replace themselves all the time", "PID 1", &["racers", "8", "{mark}"]).room(Room::ALONE).proof(Proof::Reaped),
];
