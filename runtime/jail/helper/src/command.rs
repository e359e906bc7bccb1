//! Turns a child of the jail's first process into a command. The child drops all rights in a fixed order.
//!
//! Session, stdio and limits come first, because they need rights that the later steps remove. Seccomp comes last,
//! because it refuses the system calls of the earlier steps. Until the child executes the program, it shares the memory
//! of the first process, which waits and then reads a failure from there.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::landlock::PathRules;
use crate::program::{Image, Start};
use crate::raw::{self, ExecStrings};
use crate::seccomp::Filters;
use crate::{bounds, credentials, selftest};
use glovebox_jail_helper::policy::{Confinement, Policy};
use glovebox_jail_helper::wire::{Failure, Targets};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, fchdir, getpid, getppid, set_parent_process_death_signal, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io::{Read, Write};

/// Confinement of a command.
#[derive(Debug, Default)]
pub(crate) struct CommandConfinement {
    /// Landlock rules; `None` if the tier has none.
    pub(crate) rules: Option<PathRules>,
    /// Seccomp filters that the jail's first process has not installed already. They are compiled before the first
    /// command.
    pub(crate) filters: Filters,
}

/// Starts a command. Returns its process id once the program runs, or the failure.
pub(crate) fn start(
    policy: &Policy,
    confinement: &CommandConfinement,
    start: &Start,
    folder: OwnedFd,
    stdio: &[OwnedFd; 3],
) -> Result<Pid, Failure> {
    let parent = getpid();
    let give_up_rights = || give_up_rights(policy, confinement, &folder, stdio);
    match &start.image {
        Image::File(path) => {
            let (arguments, environment) = (ExecStrings::new(&start.arguments), ExecStrings::new(&start.environment));
            let mut failure = None;
            let pid = raw::start(&mut || {
                if is_alone(parent) {
                    return FAILED;
                }
                let execute = || {
                    let errno = raw::execute(path, &arguments, &environment);
                    Err::<(), Errno>(errno).at(format!("exec {}", path.to_string_lossy()))
                };
                failure = give_up_rights().and_then(|()| execute()).err();
                FAILED
            });
            let pid = pid.at("start a process")?;
            failure.map_or(Ok(pid), Err)
        }
        Image::SelfTest(targets) => start_self_test(policy, targets, parent, give_up_rights),
    }
}

/// Starts the self-test of the helper in a copy of this process. As after an exec, only three descriptors stay open,
/// and a closed pipe shows that the test runs.
fn start_self_test(
    policy: &Policy,
    targets: &Targets,
    parent: Pid,
    give_up_rights: impl FnOnce() -> Result<(), Failure>,
) -> Result<Pid, Failure> {
    let (result, report) = pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
    let Some(pid) = raw::fork().at("fork")? else {
        drop(result);
        if is_alone(parent) {
            raw::exit_now(FAILED);
        }
        if let Err(failure) = give_up_rights() {
            // If the pipe has no reader, the jail has ended, and this process ends with it.
            let _ = serde_json::to_vec(&failure).map(|text| File::from(report).write_all(&text));
            raw::exit_now(FAILED);
        }
        let closed = raw::close_rest();
        std::mem::forget(report);
        raw::exit_now(if closed.is_ok() && selftest::run(policy, targets) { 0 } else { 1 })
    };
    drop(report);
    let mut failure = Vec::new();
    File::from(result).read_to_end(&mut failure).at("wait for the test")?;
    if failure.is_empty() {
        return Ok(pid);
    }
    Err(serde_json::from_slice(&failure).map_err(std::io::Error::from).at("start the test")?)
}

/// The exit code of a process that could not execute its program.
const FAILED: i32 = 127;

/// Makes this process die with its parent. Returns true if the parent has already ended, because then no process is
/// left that would end this one.
fn is_alone(parent: Pid) -> bool {
    set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(parent)
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
