//! Other processes and our own rights: looking in, signalling, becoming somebody else.

use crate::row::{Proof, Row};

const SHARED: &str = "there is no process namespace: a process of the same user can be slowed down";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("ptrace", "sandbox 30", "attach to the victim", "seccomp", &["ptrace", "{victim}"]),
    Row::program("vm-read", "sandbox 30", "read the victim's memory", "seccomp", &["vm-read", "{victim}", "{victim_address}", "{victim_bytes}"]),
    Row::program("vm-write", "sandbox 30", "write the victim's memory", "seccomp", &["vm-write", "{victim}", "{victim_address}"]),
    Row::program("pidfd-getfd", "sandbox 30", "take a descriptor from the victim", "seccomp", &["pidfd-getfd", "{victim}", "{victim_descriptor}"]),
    Row::program("kcmp", "sandbox 30", "compare ourselves with the victim", "seccomp", &["kcmp", "{victim}"]),
    Row::program("ptrace-host", "sandbox 30", "attach to glovebox", "seccomp", &["ptrace", "{host}"]),
    Row::program("kill", "sandbox 31", "end the victim", "process namespace", &["kill", "{victim}", "9"]),
    Row::program("stop", "sandbox 31", "stop the victim", "process namespace", &["kill", "{victim}", "19"]),
    Row::program("kill-group", "sandbox 31", "end the victim's group", "process namespace", &["kill", "-{victim}", "9"]),
    Row::program("tgkill", "sandbox 31", "end the victim by its thread", "process namespace", &["tgkill", "{victim}", "9"]),
    Row::program("pidfd-signal", "sandbox 31", "end the victim by a descriptor", "process namespace", &["pidfd-signal", "{victim}", "9"]),
    Row::program("sigqueue", "sandbox 31", "send the victim a signal with a value", "process namespace", &["sigqueue", "{victim}", "9"]),
    Row::program("owner-signal", "sandbox 31", "let a pipe send the victim a signal", "process namespace", &["owner-signal", "{victim}", "9"]).proof(Proof::Outside),
    Row::program("kill-host", "sandbox 31", "ask glovebox whether it can be signalled", "process namespace", &["kill", "{host}", "0"]),
    Row::program("kill-all", "sandbox 31", "end everybody", "process namespace", &["kill", "-1", "9"]).proof(Proof::Outside),
    Row::program("kill-init", "sandbox 32", "end the jail's first process", "process namespace", &["kill", "1", "9"]).proof(Proof::Outside),
    Row::program("stop-init", "sandbox 32", "stop the jail's first process", "process namespace", &["kill", "1", "19"]).proof(Proof::Outside),
    Row::program("ptrace-init", "sandbox 32", "attach to the jail's first process", "seccomp", &["ptrace", "1"]),
    Row::program("renice-victim", "sandbox 53", "slow the victim down", "process namespace", &["renice", "{victim}"]).landlock(SHARED),
    Row::program("tie-victim", "sandbox 53", "tie the victim to one processor", "process namespace", &["affinity", "{victim}"]).landlock(SHARED),
    Row::program("limit-victim", "sandbox 53", "take the victim's room for files away", "process namespace", &["prlimit", "{victim}"]).landlock(SHARED),
    Row::program("limit-init", "sandbox 32", "take the room for files away from the jail's first process", "not dumpable", &["prlimit", "1"]),
    Row::program("priority", "sandbox 53", "take more of the processor", "capabilities", &["priority"]),
    Row::program("realtime", "sandbox 53", "take the processor before everybody else", "capabilities", &["realtime"]),
    Row::program("become-root", "sandbox 33", "become root", "user namespace", &["setuid", "0"]),
    Row::program("become-other", "sandbox 33", "become another user", "user namespace", &["setuid", "12345"]),
    Row::program("become-root-group", "sandbox 33", "become root's group", "user namespace", &["setgid", "0"]),
    Row::program("join-group", "sandbox 33", "join a group", "user namespace", &["setgroups", "0"]),
    Row::program("capabilities", "sandbox 33", "take every capability", "capabilities", &["capabilities"]),
    Row::program("new-privileges", "sandbox 33", "take back that starting programs gains nothing", "no_new_privs", &["privileges"]),
    Row::program("setuid-program", "sandbox 33", "start a program that belongs to root", "no_new_privs", &["setuid-program", "/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/sudo"]),
    Row::program("standing", "sandbox 33", "run without the filter, or with a capability", "capabilities, seccomp", &["standing", "3"]).proof(Proof::Standing),
    Row::program("tty-push", "sandbox 41", "put keys into a terminal's input", "seccomp", &["tty-push", "paste"]),
    Row::program("tty-push-high", "sandbox 41", "the same with bits that only the kernel ignores", "seccomp", &["tty-push", "paste", "high"]),
    Row::program("console-push", "sandbox 41", "put text into a console", "seccomp", &["tty-push", "console"]),
    Row::program("console-push-high", "sandbox 41", "the same with bits that only the kernel ignores", "seccomp", &["tty-push", "console", "high"]),
    Row::program("tty-open", "sandbox 41", "open the terminal of whoever started us", "session", &["tty-open"]),
    Row::works("pty", "required", "make a terminal and use it", &["pty"]),
    Row::works("threads", "required", "start threads", &["threads"]),
    Row::works("fork", "required", "start programs that start programs", &["fork"]),
];
