//! Attacks by the program under test on what judges it: the verifier's files, processes, memory and verdict.
//!
//! Each runs as `subject` in a place whose verifier has the hold-out, copies of it in its own folders, and a process with something
//! to lose beside it.

use crate::row::{Limits, Proof, Row};

const TESTED: Limits = Limits { subject: true, ..Limits::SHARED };
const SMALL: Limits =
    Limits { command_memory_bytes: 96 << 20, timeout_ms: 8_000, tmp_bytes: 512 << 20, alone: true, ..TESTED };
const SHORT: Limits = Limits { timeout_ms: 700, alone: true, ..TESTED };
const CROWDED: Limits = Limits { processes: 48, timeout_ms: 8_000, alone: true, ..TESTED };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("subject-read", "review 1", "read the hold-out that judges it", "second jail", &["read", "{project}/scenarios/holdout-canary.txt"]).limits(TESTED),
    Row::program("subject-hunt", "review 1", "look through everything that can be seen for a hold-out's name", "second jail", &["hunt", "/", "holdout-canary"]).limits(TESTED),
    Row::shell("subject-grep", "review 1", "search all files for the hold-out's text", "second jail", "grep -rhs canary- / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr").limits(TESTED),
    Row::program("subject-tmp", "review 1", "read a copy in the verifier's `/tmp`", "private /tmp", &["read", "/tmp/canary.txt"]).limits(TESTED),
    Row::program("subject-home", "review 1", "read a copy in the verifier's HOME", "private HOME", &["read", "/home/glovebox/canary.txt"]).limits(TESTED),
    Row::program("subject-shm-file", "review 1", "read a copy in the verifier's `/dev/shm`", "private /dev", &["read", "/dev/shm/canary.txt"]).limits(TESTED),
    Row::program("subject-written", "review 1", "read what the verifier wrote into its workspace", "second jail", &["read", "{out}/canary.txt"]).limits(TESTED),
    Row::shell("subject-arguments", "review 1", "read the arguments of every process", "process namespace", "cat /proc/[0-9]*/cmdline").limits(TESTED),
    Row::shell("subject-variables", "review 1", "read the variables of every process", "process namespace", "cat /proc/[0-9]*/environ").limits(TESTED),
    Row::shell("subject-descriptors", "review 1", "read what every process has open", "process namespace", "for f in /proc/[0-9]*/fd/[0-9]* /proc/[0-9]*/task/*/fd/[0-9]*; do test -f $f && head -c 200 $f; done").limits(TESTED),
    Row::shell("subject-roots", "review 1", "read by the root and folder of every process", "process namespace", "cat /proc/[0-9]*/cwd/scenarios/* /proc/[0-9]*/root/tmp/canary.txt").limits(TESTED),
    Row::program("subject-victim", "review 1", "find the verifier's process", "process namespace", &["processes", "inner"]).limits(TESTED),
    Row::program("subject-init-root", "review 1", "list the root of the jail's first process", "not dumpable", &["list", "/proc/1/root/"]).limits(TESTED),
    Row::program("subject-init-memory", "review 1", "open the memory of the jail's first process", "not dumpable", &["open-write", "/proc/1/mem"]).limits(TESTED),
    Row::program("subject-init-descriptors", "review 1", "use the descriptors of the jail's first process", "not dumpable", &["open-all", "/proc/1/fd"]).limits(TESTED),
    Row::program("subject-segment", "review 1", "attach the verifier's shared memory", "IPC namespace", &["sysv-shm", "0"]).limits(Limits { alone: true, ..TESTED }),
    Row::program("subject-segment-next", "review 1", "attach its next one", "IPC namespace", &["sysv-shm", "32768"]).limits(Limits { alone: true, ..TESTED }),
    Row::program("subject-queue", "review 1", "take a message from the verifier's queue", "IPC namespace", &["queue", "inner"]).limits(TESTED),
    Row::program("subject-environment", "review 1", "print every variable", "empty environment", &["environment"]).limits(TESTED).proof(Proof::Environment),
    Row::program("subject-open", "review 1", "use a descriptor that the verifier left open", "close_range", &["descriptors"]).limits(TESTED),
    Row::program("subject-reopen", "review 1", "open its own output again and cut it", "pipes", &["reopen-stdout"]).limits(TESTED),
    Row::program("subject-socket", "review 1", "speak to the host as the verifier does", "second jail", &["unix", "/run/glovebox/socket"]).limits(TESTED),
    Row::shell("subject-of-subject", "review 1", "start another program under test", "second jail", "subject true && echo NESTED; /run/glovebox/subject true && echo NESTED").limits(TESTED).proof(Proof::Never("NESTED")),
    Row::shell("subject-kill", "review 1", "kill everybody that can be seen", "process namespace", "kill -9 -1; kill -STOP 1 2 3 4 5 6 7 8 9").limits(TESTED).proof(Proof::Never("VICTIM-GONE")),
    Row::program("subject-ptrace", "review 1", "look into the jail's first process", "seccomp", &["ptrace", "1"]).limits(TESTED),
    Row::program("subject-loopback", "review 1", "reach a server of the verifier", "network namespace", &["tcp", "127.0.0.1:9"]).limits(TESTED),
    Row::program("subject-outside", "review 1", "reach a server of the host", "network namespace", &["tcp", "{tcp}"]).limits(TESTED),
    Row::program("subject-abstract", "review 1", "reach a socket without a file", "network namespace, Landlock", &["abstract", "{abstract}"]).limits(TESTED),
    Row::program("subject-secret", "review 1", "read a file of the machine", "view", &["read", "{secret}"]).limits(TESTED),
    Row::program("subject-swap", "review 1", "put a hold-out of its own in the place of the hidden one", "second jail", &["write", "{project}/scenarios/holdout-canary.txt"]).limits(TESTED).proof(Proof::Commit("scenarios")),
    Row::program("subject-commit", "review 4", "have its file committed by the verifier", "scratch", &["write", "{out}/from-subject.txt"]).limits(TESTED).proof(Proof::Commit("out/from-subject.txt")),
    Row::program("subject-weaken", "review 4", "have the verifier's own file changed", "scratch", &["append", "{out}/own.txt"]).limits(TESTED).proof(Proof::Commit("out/own.txt")),
    Row::program("subject-plant", "review 4", "plant a hook that the next `git` starts", "scratch", &["write", "{project}/.git/hooks/post-checkout"]).limits(TESTED).proof(Proof::Commit(".git")),
    Row::shell("subject-daemon", "review 1", "leave a process for the next call", "PID 1", "(setsid {attacker}/glovebox-hostile lie-low {mark} >/dev/null 2>&1 &)").limits(Limits { alone: true, ..TESTED }).proof(Proof::Reaped),
    Row::program("subject-stubborn", "review 1", "ignore being told to end", "PID 1", &["stubborn"]).limits(SHORT).proof(Proof::Ended),
    Row::program("subject-sleep", "review 1", "sleep for long", "wall time", &["sleep"]).limits(SHORT).proof(Proof::Ended),
    Row::program("subject-memory", "review 1", "take memory", "cgroup, watch", &["memory", "anon", "384"]).limits(SMALL),
    Row::program("subject-forks", "review 1", "start more processes than are allowed", "pid_max, cgroup", &["forks", "300"]).limits(CROWDED).bwrap(super::resources::WATCHED_ROOT),
    Row::works("subject-works", "required", "start threads", &["threads"]).limits(TESTED),
    Row::works("subject-server", "required", "serve itself on the loopback", &["loopback"]).limits(TESTED),
];
