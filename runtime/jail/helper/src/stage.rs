//! Receives the policy, builds the sandbox, and starts the loop of the jail's first process.
//!
//! In tier `full` there are two processes. This one stays outside, where it can wait for PID 1 and die with the host.
//! Its fork becomes PID 1. In the other tiers, this process is the subreaper itself. It dies with the host only if the
//! kernel then kills all its descendants too. Otherwise it kills its descendants first, when the control socket closes.
#![forbid(unsafe_code)]

use crate::bounds::enter_cgroups;
use crate::build::{self, Base};
use crate::entry::Entry;
use crate::fault::{At, refused};
use crate::host;
use crate::serve::{self, Jail};
use crate::{bwrap, credentials, namespaces, raw, template};
use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::policy::{Confinement, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure, Reply, Request};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, geteuid, getpid, getppid, pidfd_open, set_child_subreaper, set_dumpable_behavior,
};
use std::process::ExitCode;

/// Receives the first request and serves until the host closes the socket. The exit code is 1 if the jail could not be
/// built.
pub(crate) fn enter() -> ExitCode {
    // Done once and not for each command. A write to a socket or pipe whose other end is closed then either returns an
    // error or ends this process.
    raw::reset_signals();
    let entry = Entry::for_this_process();
    let control = match move_control(&entry) {
        Ok(control) => control,
        Err(_) => return ExitCode::FAILURE,
    };
    let policy = match receive_frame::<Request>(&control) {
        Ok(Some((Request::Setup(policy), _))) => *policy,
        Ok(Some((Request::Prepare(preparation), _))) if entry == Entry::Host => {
            return template::serve(control, preparation);
        }
        Ok(Some(_)) => {
            return host::fail(&control, refused("set up", "the first request must be `setup` or `prepare`"));
        }
        Err(error) => return host::fail(&control, refused("set up", error.to_string())),
        Ok(None) => return ExitCode::FAILURE,
    };
    let built = match (policy.confinement, &entry) {
        (Confinement::Full, Entry::Host) => full(&control, policy),
        (Confinement::Bwrap, Entry::Host) => bwrap::enter(&control, &policy),
        (Confinement::Bwrap, Entry::Bwrap(_)) | (Confinement::Landlock | Confinement::Unconfined, Entry::Host) => {
            as_subreaper(&control, policy, &entry)
        }
        (_, Entry::Bwrap(_)) => Err(refused("set up", "the policy differs between inside and outside of `bwrap`")),
    };
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => host::fail(&control, failure),
    }
}

/// Moves the control socket to another descriptor, so that a command can use descriptor 0.
fn move_control(entry: &Entry) -> Result<OwnedFd, Failure> {
    // This process does not own any other descriptor yet.
    raw::close_rest().at("close_range")?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).at("copy the control socket")?;
    entry.leave_session()?;
    Ok(control)
}

/// Builds tier `full`: seven namespaces and a separate root. This process stays outside and waits.
fn full(control: &OwnedFd, policy: Policy) -> Result<(), Failure> {
    host::die_with_host()?;
    host::release_stdin()?;
    let base = Base { is_root_outside: geteuid().is_root(), prepared: None };
    enter_cgroups(&policy)?;
    credentials::clear_groups()?;
    namespaces::enter(&policy)?;
    // This must follow the id maps, because their files exist only for a dumpable process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let outside = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    let (announced, announce_end) = pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
    let Some(first) = raw::fork().at("fork")? else {
        drop(announce_end);
        let built = host::die_with(&outside).and_then(|()| build::full(control, policy, &base));
        // The process outside announces this one, so that the first reply is `Spawned`.
        wait_for_announcement(&announced);
        raw::exit_now(build::serve_or_fail(control, built))
    };
    announce(control, first, announce_end)
}

/// Announces PID 1 to the host, then waits until it ends.
fn announce(control: &OwnedFd, first: Pid, announce_end: OwnedFd) -> Result<(), Failure> {
    let pidfd = pidfd_open(first, PidfdFlags::empty()).at("open a pidfd")?;
    send_frame(control, &Reply::Spawned, &[pidfd.as_fd()])
        .map_err(|error| refused("send a reply", error.to_string()))?;
    drop(announce_end);
    // Only PID 1 may keep the jail's end of the control socket open.
    raw::close_rest().at("close_range")?;
    while !matches!(raw::reap(raw::Wait::Until), Err(_) | Ok(None)) {}
    raw::exit_now(0)
}

/// Waits until the process outside has announced this one.
fn wait_for_announcement(announced: &OwnedFd) {
    // The announcement is that the other end of the pipe is closed.
    let _ = rustix::io::read(announced, &mut [0_u8; 1]);
}

/// Builds a tier without separate namespaces: this process is the subreaper.
fn as_subreaper(control: &OwnedFd, policy: Policy, entry: &Entry) -> Result<(), Failure> {
    let host = getppid();
    host::release_stdin()?;
    set_child_subreaper(Some(getpid())).at("become a subreaper")?;
    entry.check(&policy)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let mut enforcement = Enforcement::default();
    let stores = entry.prepare(&policy, &mut enforcement)?;
    let confinement = build::confine(&policy, None, &mut enforcement)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let jail = Jail {
        control: control.try_clone().at("copy the control socket")?,
        sockets: None,
        children: raw::child_signals().at("open a signalfd")?,
        workspace: open(&policy.workspace.at, flags, Mode::empty()).at("open workspace")?,
        confinement,
        reach: entry.reach(policy.confinement, host),
        renames: None,
        policy,
    };
    entry.announce(control)?;
    stores.map_or(Ok(()), |stores| stores.send(&jail.control))?;
    host::report_ready(&jail.control, enforcement, &[])?;
    serve::serve(&jail);
    Ok(())
}
