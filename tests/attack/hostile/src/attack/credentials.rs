//! Attacks on the process's own rights: ids, capabilities, limits, set-id programs, the environment.

use super::raw::{Errno, raw};
use super::{AttackResult, number, witness, word};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Checks if the process already runs as root.
pub(crate) fn root_id(_: &[String]) -> AttackResult {
    match raw(libc::SYS_geteuid, &[]) {
        Ok(0) => AttackResult::worked("root"),
        Ok(id) => AttackResult::stopped(format!("user {id}")),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Tries to become another user.
pub(crate) fn setuid(arguments: &[String]) -> AttackResult {
    let wanted = number(arguments, 0) as usize;
    if raw(libc::SYS_geteuid, &[]) == Ok(wanted) {
        return AttackResult::stopped("it is the one we have");
    }
    let answers = [
        raw(libc::SYS_setuid, &[wanted]),
        raw(libc::SYS_setreuid, &[wanted, wanted]),
        raw(libc::SYS_setresuid, &[wanted, wanted, wanted]),
    ];
    let last = answers[2];
    if answers.iter().any(Result::is_ok) { AttackResult::worked("became it") } else { AttackResult::from_result(last) }
}

/// Tries to become another group.
pub(crate) fn setgid(arguments: &[String]) -> AttackResult {
    let wanted = number(arguments, 0) as usize;
    if raw(libc::SYS_getegid, &[]) == Ok(wanted) {
        return AttackResult::stopped("it is the one we have");
    }
    AttackResult::from_result(raw(libc::SYS_setgid, &[wanted]))
}

/// Tries to join a group.
pub(crate) fn setgroups(arguments: &[String]) -> AttackResult {
    let groups = [number(arguments, 0) as u32];
    AttackResult::from_result(raw(libc::SYS_setgroups, &[1, groups.as_ptr() as usize]))
}

/// Requests every capability.
pub(crate) fn capabilities(_: &[String]) -> AttackResult {
    let header = [0x2008_0522_u32, 0];
    let wanted = [u32::MAX; 6];
    let all = raw(libc::SYS_capset, &[header.as_ptr() as usize, wanted.as_ptr() as usize]);
    if all.is_ok() {
        return AttackResult::worked("all of them");
    }
    let own = status("CapEff");
    if own.trim_start_matches('0').is_empty() {
        AttackResult::from_result(all)
    } else {
        AttackResult::worked(format!("has {own}"))
    }
}

/// Tries to unset `no_new_privs`, so that a started program can gain rights.
pub(crate) fn privileges(_: &[String]) -> AttackResult {
    let undone = raw(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as usize, 0, 0, 0, 0]);
    match (undone, status("NoNewPrivs").as_str()) {
        (Err(error), "1") => AttackResult::stopped(error),
        (_, found) => AttackResult::worked(format!("NoNewPrivs {found}")),
    }
}

/// Reads the kernel's status of this process. A witness outside of the sandbox compares it with what the host sees.
pub(crate) fn standing(_: &[String]) -> AttackResult {
    let lines = ["NoNewPrivs", "Seccomp", "CapEff", "CapBnd", "CapAmb"].map(|name| format!("{name}={}", status(name)));
    match witness::wait() {
        Ok(()) => AttackResult::worked("told").with(lines.join("\n")),
        Err(unseen) => unseen,
    }
}

fn status(name: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("").trim().to_owned()
}

/// Starts a set-user-id program of root and checks the user id that it runs with.
pub(crate) fn setuid_program(arguments: &[String]) -> AttackResult {
    let own = raw(libc::SYS_geteuid, &[]).unwrap_or(0);
    let mut last = "no such program".to_owned();
    for path in arguments.iter().filter(|path| fs::metadata(path).is_ok()) {
        let child = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                last = Errno::from(error).to_string();
                continue;
            }
        };
        std::thread::sleep(Duration::from_millis(30));
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or("").to_owned();
        let _over = child.kill();
        let _reaped = child.wait();
        let effective = line.split_whitespace().nth(1).and_then(|id| id.parse::<usize>().ok());
        if effective.is_some_and(|id| id != own) {
            return AttackResult::worked(format!("{path} runs as {effective:?}"));
        }
        last = "runs as ourselves".to_owned();
    }
    AttackResult::stopped(last)
}

/// Prints every environment variable. The host decides whether one of them reveals too much.
pub(crate) fn environment(_: &[String]) -> AttackResult {
    let all: Vec<String> =
        std::env::vars_os().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
    AttackResult::worked(format!("{} variables", all.len())).with(all.join("\n"))
}

/// Raises the limit on core files, which would contain memory.
pub(crate) fn core_limit(_: &[String]) -> AttackResult {
    raise(libc::RLIMIT_CORE as usize)
}

/// Raises a limit that the sandbox has set: `descriptors`, `file`, `processes` or `cpu`.
pub(crate) fn raise_limits(arguments: &[String]) -> AttackResult {
    let resource = match word(arguments, 0) {
        "file" => libc::RLIMIT_FSIZE,
        "processes" => libc::RLIMIT_NPROC,
        "cpu" => libc::RLIMIT_CPU,
        _ => libc::RLIMIT_NOFILE,
    };
    raise(resource as usize)
}

fn raise(resource: usize) -> AttackResult {
    let wanted = [u64::MAX, u64::MAX];
    AttackResult::from_result(raw(libc::SYS_prlimit64, &[0, resource, wanted.as_ptr() as usize, 0]))
}
