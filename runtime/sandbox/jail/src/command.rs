//! A fork of the jail's first process on its way to be a command: everything is given up, in an order that matters.
//!
//! Session, stdio and limits come first because they need what is given up after them; seccomp comes last because it forbids what
//! the steps before it needed. Whatever fails is told through a pipe that the successful `execve` closes.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::landlock::Rules;
use crate::program::{Image, Start};
use crate::seccomp::Filters;
use crate::{bounds, credentials, raw, selftest};
use glovebox_jail::policy::{Policy, Walls};
use glovebox_jail::wire::Failure;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, fchdir, getpid, getppid, set_parent_process_death_signal, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io::{Read, Write};

/// What is put around a command itself.
#[derive(Debug, Default)]
pub(crate) struct Walling {
    /// Landlock, where there is any.
    pub(crate) rules: Option<Rules>,
    /// Seccomp, where it is not on this process already; compiled before the first command.
    pub(crate) filters: Filters,
}

/// Starts a command: its process id once the program runs, or why it does not.
pub(crate) fn start(
    policy: &Policy,
    walling: &Walling,
    start: &Start,
    folder: OwnedFd,
    stdio: &[OwnedFd; 3],
) -> Result<Pid, Failure> {
    let (answer, verdict) = pipe_with(PipeFlags::CLOEXEC).at("pipe")?;
    let parent = getpid();
    let Some(pid) = raw::fork().at("fork")? else {
        drop(answer);
        if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(parent) {
            // The parent went before the signal was ordered: nobody is left who would end us.
            raw::exit_now(127);
        }
        let failure = match give_up(policy, walling, &folder, stdio) {
            Ok(()) => become_image(policy, start, verdict),
            Err(failure) => Told { failure, verdict },
        };
        failure.tell()
    };
    drop(verdict);
    let mut failure = Vec::new();
    File::from(answer).read_to_end(&mut failure).at("wait for exec")?;
    if failure.is_empty() {
        Ok(pid)
    } else {
        Err(serde_json::from_slice(&failure).map_err(std::io::Error::from).at("exec")?)
    }
}

/// A failure on its way to the process that forked us.
struct Told {
    failure: Failure,
    verdict: OwnedFd,
}

impl Told {
    fn tell(self) -> ! {
        if let Ok(text) = serde_json::to_vec(&self.failure) {
            // Nobody to tell means that the jail is gone, and we with it.
            let _ = File::from(self.verdict).write_all(&text);
        }
        raw::exit_now(127)
    }
}

fn give_up(policy: &Policy, walling: &Walling, folder: &OwnedFd, stdio: &[OwnedFd; 3]) -> Result<(), Failure> {
    let [input, output, error] = stdio;
    raw::reset_signals();
    setsid().at("setsid")?;
    dup2_stdin(input).at("standard input")?;
    dup2_stdout(output).at("standard output")?;
    dup2_stderr(error).at("standard error")?;
    fchdir(folder).at("enter folder")?;
    bounds::limit(&policy.bounds, policy.walls)?;
    if policy.walls != Walls::Unconfined {
        credentials::demand_none()?;
    }
    raw::close_rest_on_exec().at("close_range")?;
    if let Some(rules) = &walling.rules {
        rules.enforce()?;
    }
    walling.filters.enforce()
}

fn become_image(policy: &Policy, start: &Start, verdict: OwnedFd) -> Told {
    match &start.image {
        Image::SelfTest(targets) => {
            // As after an exec: only the three descriptors are left, and the parent learns that we run.
            let closed = raw::close_rest();
            std::mem::forget(verdict);
            raw::exit_now(if closed.is_ok() && selftest::run(policy, targets) { 0 } else { 1 })
        }
        Image::File(path) => {
            let errno = raw::execute(path, &start.arguments, &start.environment);
            let step = format!("exec {}", path.to_string_lossy());
            let failure = Err::<(), Errno>(errno).at(step).err();
            Told { failure: failure.unwrap_or_else(|| crate::fault::refused("exec", "no answer")), verdict }
        }
    }
}
