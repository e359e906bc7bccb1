//! The connection of the helper's processes to the host: they die with the host, and report to it whether the jail was
//! built.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use glovebox_jail_helper::control::send_frame;
use glovebox_jail_helper::wire::{Enforcement, Failure, Reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::process::ExitCode;

/// Reports why the jail was not built.
pub(crate) fn fail(control: &OwnedFd, failure: Failure) -> ExitCode {
    // If the host has ended, no reply is needed.
    let _ = send_frame(control, &Reply::Failed(failure), &[]);
    ExitCode::FAILURE
}

/// Replaces descriptor 0, because a second descriptor of the control socket would keep the socket open.
pub(crate) fn release_stdin() -> Result<(), Failure> {
    rustix::stdio::dup2_stdin(rustix::stdio::stdout()).at("redirect standard input")
}

/// Makes this process die with the host, even if the host has already ended.
pub(crate) fn die_with_host() -> Result<(), Failure> {
    let host = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    if getppid() == host { Ok(()) } else { Err(refused("set the parent death signal", "the host process has ended")) }
}

/// Makes this process die with the process outside, even if that process has already ended.
pub(crate) fn die_with(outside: &OwnedFd) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = poll(&mut [PollFd::new(outside, PollFlags::IN)], Some(&now)).at("poll")?;
    if gone > 0 {
        Err(refused("set the parent death signal", "the process outside the jail has ended"))
    } else {
        Ok(())
    }
}

/// Reports that the jail is ready, with descriptors for the host.
pub(crate) fn report_ready(
    control: &OwnedFd,
    enforcement: Enforcement,
    beside: &[BorrowedFd<'_>],
) -> Result<(), Failure> {
    send_frame(control, &Reply::Ready(enforcement), beside).map_err(|error| refused("send a reply", error.to_string()))
}
