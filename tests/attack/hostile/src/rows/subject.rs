//! Attacks by the program under test on its verifier: the verifier's files, processes, memory and verdict.
//!
//! Each attack is started by the command `subject`. The verifier has the hold-out, copies of it in its own folders, and
//! a victim process.

use crate::row::{Limits, Payload, Proof, Row, Source};

const TESTED: Limits = Limits { subject: true, ..Limits::SHARED };
const SMALL: Limits =
    Limits { command_memory_bytes: 96 << 20, timeout_ms: 8_000, tmp_bytes: 512 << 20, alone: true, ..TESTED };
const SHORT: Limits = Limits { timeout_ms: 700, alone: true, ..TESTED };
const CROWDED: Limits = Limits { processes: 48, timeout_ms: 8_000, alone: true, ..TESTED };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("subject-read", Source::Review(1), "read the hold-out of its verifier", "second jail", Payload::Program(&["read", "{project}/scenarios/holdout-canary.txt"])).limits(TESTED),
    Row::new("subject-hunt", Source::Review(1), "search every visible folder for a hold-out's name", "second jail", Payload::Program(&["hunt", "/", "holdout-canary"])).limits(TESTED),
    Row::new("subject-grep", Source::Review(1), "search all files for the hold-out's text", "second jail", Payload::Shell("grep -rhs canary- / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr")).limits(TESTED),
    Row::new("subject-tmp", Source::Review(1), "read a copy in the verifier's `/tmp`", "private /tmp", Payload::Program(&["read", "/tmp/canary.txt"])).limits(TESTED),
    Row::new("subject-home", Source::Review(1), "read a copy in the verifier's HOME", "private HOME", Payload::Program(&["read", "/home/glovebox/canary.txt"])).limits(TESTED),
    Row::new("subject-shm-file", Source::Review(1), "read a copy in the verifier's `/dev/shm`", "private /dev", Payload::Program(&["read", "/dev/shm/canary.txt"])).limits(TESTED),
    Row::new("subject-written", Source::Review(1), "read files that the verifier wrote to its workspace", "second jail", Payload::Program(&["read", "{out}/canary.txt"])).limits(TESTED),
    Row::new("subject-arguments", Source::Review(1), "read the arguments of every process", "process namespace", Payload::Shell("cat /proc/[0-9]*/cmdline")).limits(TESTED),
    Row::new("subject-variables", Source::Review(1), "read the environment variables of every process", "process namespace", Payload::Shell("cat /proc/[0-9]*/environ")).limits(TESTED),
    Row::new("subject-descriptors", Source::Review(1), "read the open files of every process", "process namespace", Payload::Shell("for f in /proc/[0-9]*/fd/[0-9]* /proc/[0-9]*/task/*/fd/[0-9]*; do test -f $f && head -c 200 $f; done")).limits(TESTED),
    Row::new("subject-roots", Source::Review(1), "read files by the root and working directory of every process", "process namespace", Payload::Shell("cat /proc/[0-9]*/cwd/scenarios/* /proc/[0-9]*/root/tmp/canary.txt")).limits(TESTED),
    Row::new("subject-victim", Source::Review(1), "find the verifier's process", "process namespace", Payload::Program(&["processes", "inner"])).limits(TESTED),
    Row::new("subject-init-root", Source::Review(1), "list the root of the jail's first process", "not dumpable", Payload::Program(&["list", "/proc/1/root/"])).limits(TESTED),
    Row::new("subject-init-memory", Source::Review(1), "open the memory of the jail's first process", "not dumpable", Payload::Program(&["open-write", "/proc/1/mem"])).limits(TESTED),
    Row::new("subject-init-descriptors", Source::Review(1), "use the descriptors of the jail's first process", "not dumpable", Payload::Program(&["open-all", "/proc/1/fd"])).limits(TESTED),
    Row::new("subject-segment", Source::Review(1), "attach the verifier's shared memory", "IPC namespace", Payload::Program(&["sysv-shm", "0"])).limits(Limits { alone: true, ..TESTED }),
    Row::new("subject-segment-next", Source::Review(1), "attach the verifier's second shared memory segment", "IPC namespace", Payload::Program(&["sysv-shm", "32768"])).limits(Limits { alone: true, ..TESTED }),
    Row::new("subject-queue", Source::Review(1), "take a message from the verifier's queue", "IPC namespace", Payload::Program(&["queue", "inner"])).limits(TESTED),
    Row::new("subject-environment", Source::Review(1), "print every environment variable", "empty environment", Payload::Program(&["environment"])).limits(TESTED).proof(Proof::Environment),
    Row::new("subject-open", Source::Review(1), "use a descriptor that the verifier left open", "close_range", Payload::Program(&["descriptors"])).limits(TESTED),
    Row::new("subject-reopen", Source::Review(1), "reopen its own output and truncate it", "pipes", Payload::Program(&["reopen-stdout"])).limits(TESTED),
    Row::new("subject-socket", Source::Review(1), "use the verifier's socket to the host", "second jail", Payload::Program(&["unix", "/run/glovebox/socket"])).limits(TESTED),
    Row::new("subject-of-subject", Source::Review(1), "start another program under test", "second jail", Payload::Shell("subject true && echo NESTED; /run/glovebox/subject true && echo NESTED")).limits(TESTED).proof(Proof::Never("NESTED")),
    Row::new("subject-kill", Source::Review(1), "kill every visible process", "process namespace", Payload::Shell("kill -9 -1; kill -STOP 1 2 3 4 5 6 7 8 9")).limits(TESTED).proof(Proof::Never("VICTIM-GONE")),
    Row::new("subject-ptrace", Source::Review(1), "attach to the jail's first process", "not dumpable", Payload::Program(&["ptrace", "1"])).limits(TESTED),
    Row::new("subject-loopback", Source::Review(1), "connect to a server of the verifier", "network namespace", Payload::Program(&["tcp", "127.0.0.1:9"])).limits(TESTED),
    Row::new("subject-outside", Source::Review(1), "connect to a server of the host", "network namespace", Payload::Program(&["tcp", "{tcp}"])).limits(TESTED),
    Row::new("subject-abstract", Source::Review(1), "connect to an abstract socket", "network namespace, Landlock", Payload::Program(&["abstract", "{abstract}"])).limits(TESTED),
    Row::new("subject-secret", Source::Review(1), "read a file of the machine", "view", Payload::Program(&["read", "{secret}"])).limits(TESTED),
    Row::new("subject-swap", Source::Review(1), "replace the hidden hold-out with a forged one", "second jail", Payload::Program(&["write", "{project}/scenarios/holdout-canary.txt"])).limits(TESTED).proof(Proof::Commit("scenarios")),
    Row::new("subject-commit", Source::Review(4), "have a file of the program committed by the verifier", "scratch", Payload::Program(&["write", "{out}/from-subject.txt"])).limits(TESTED).proof(Proof::Commit("out/from-subject.txt")),
    Row::new("subject-weaken", Source::Review(4), "change a file of the verifier", "scratch", Payload::Program(&["append", "{out}/own.txt"])).limits(TESTED).proof(Proof::Commit("out/own.txt")),
    Row::new("subject-plant", Source::Review(4), "plant a hook that the next `git` command starts", "scratch", Payload::Program(&["write", "{project}/.git/hooks/post-checkout"])).limits(TESTED).proof(Proof::Commit(".git")),
    Row::new("subject-daemon", Source::Review(1), "leave a process that runs during the next call", "PID 1", Payload::Shell("(setsid {attacker}/glovebox-hostile lie-low {mark} >/dev/null 2>&1 &)")).limits(Limits { alone: true, ..TESTED }).proof(Proof::Reaped),
    Row::new("subject-stubborn", Source::Review(1), "ignore SIGTERM", "PID 1", Payload::Program(&["stubborn"])).limits(SHORT).proof(Proof::Ended),
    Row::new("subject-sleep", Source::Review(1), "sleep past the time limit", "wall time", Payload::Program(&["sleep"])).limits(SHORT).proof(Proof::Ended),
    Row::new("subject-memory", Source::Review(1), "take memory", "cgroup, watch", Payload::Program(&["memory", "anon", "384"])).limits(SMALL),
    Row::new("subject-forks", Source::Review(1), "start more processes than are allowed", "pid_max, cgroup", Payload::Program(&["forks", "300"])).limits(CROWDED).bwrap(super::resources::WATCHED_ROOT),
    Row::new("subject-works", Source::Required, "start threads", "must work", Payload::Program(&["threads"])).proof(Proof::Works).limits(TESTED),
    Row::new("subject-server", Source::Required, "run a server and its client on the loopback", "must work", Payload::Program(&["loopback"])).proof(Proof::Works).limits(TESTED),
];
