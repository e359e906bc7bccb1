//! A fork of the jail's first process that becomes a command. It gives up all rights in a fixed order.
//!
//! Session, stdio and limits come first, because the later steps take away what they need. Seccomp comes last, because it forbids
//! what the steps before it need. A failure is written to a pipe that a successful `execve` closes.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::landlock::Rules;
use crate::program::{Image, Start};
use crate::seccomp::Filters;
use crate::{bounds, credentials, raw, selftest};
use glovebox_jail::policy::{Confinement, Policy};
use glovebox_jail::wire::Failure;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, fchdir, getpid, getppid, set_parent_process_death_signal, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io::{Read, Write};

/// What confines a command.
#[derive(Debug, Default)]
pub(crate) struct CommandConfinement {
    /// Landlock, if the tier has it.
    pub(crate) rules: Option<Rules>,
    /// Seccomp filters that this process does not have already; compiled before the first command.
    pub(crate) filters: Filters,
}

/// Starts a command. Returns its process id once the program runs, or why it does not.
pub(crate) fn start(
    policy: &Policy,
    confinement: &CommandConfinement,
    start: &Start,
    folder: OwnedFd,
    stdio: &[OwnedFd; 3],
) -> Result<Pid, Failure> {
    let (result, report) = pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
    let parent = getpid();
    let Some(pid) = raw::fork().at("fork")? else {
        drop(result);
        if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(parent) {
            // The parent ended before the signal was set: no process is left that would end this one.
            raw::exit_now(127);
        }
        let failure = match give_up_rights(policy, confinement, &folder, stdio) {
            Ok(()) => become_image(policy, start, report),
            Err(failure) => StartFailure { failure, report },
        };
        failure.send_and_exit()
    };
    drop(report);
    let mut failure = Vec::new();
    File::from(result).read_to_end(&mut failure).at("wait for exec")?;
    if failure.is_empty() {
        Ok(pid)
    } else {
        Err(serde_json::from_slice(&failure).map_err(std::io::Error::from).at("exec")?)
    }
}

/// A failure, and the pipe to the process that forked this one.
struct StartFailure {
    failure: Failure,
    report: OwnedFd,
}

impl StartFailure {
    fn send_and_exit(self) -> ! {
        if let Ok(text) = serde_json::to_vec(&self.failure) {
            // Without a reader the jail is gone, and this process with it.
            let _ = File::from(self.report).write_all(&text);
        }
        raw::exit_now(127)
    }
}

fn give_up_rights(
    policy: &Policy,
    confinement: &CommandConfinement,
    folder: &OwnedFd,
    stdio: &[OwnedFd; 3],
) -> Result<(), Failure> {
    let [input, output, error] = stdio;
    raw::unblock_signals();
    setsid().at("setsid")?;
    dup2_stdin(input).at("redirect standard input")?;
    dup2_stdout(output).at("redirect standard output")?;
    dup2_stderr(error).at("redirect standard error")?;
    fchdir(folder).at("enter folder")?;
    bounds::limit(&policy.bounds, policy.confinement)?;
    if policy.confinement != Confinement::Unconfined {
        credentials::demand_none()?;
    }
    raw::close_rest_on_exec().at("close_range")?;
    if let Some(rules) = &confinement.rules {
        rules.enforce()?;
    }
    confinement.filters.enforce()
}

fn become_image(policy: &Policy, start: &Start, report: OwnedFd) -> StartFailure {
    match &start.image {
        Image::SelfTest(targets) => {
            // As after an exec: only three descriptors are left, and the closed pipe shows the parent that the test runs.
            let closed = raw::close_rest();
            std::mem::forget(report);
            raw::exit_now(if closed.is_ok() && selftest::run(policy, targets) { 0 } else { 1 })
        }
        Image::File(path) => {
            let errno = raw::execute(path, &start.arguments, &start.environment);
            let step = format!("exec {}", path.to_string_lossy());
            let failure = Err::<(), Errno>(errno).at(step).err();
            StartFailure { failure: failure.unwrap_or_else(|| crate::fault::refused("exec", "no answer")), report }
        }
    }
}
