//! Makes folders of lower layers movable, so that `rename` works on them.
//!
//! In an overlay, the kernel renames only folders that are in the upper layer alone; for all others it fails with
//! `EXDEV`. A filter lets every rename of a command wait for the jail's first process. If it concerns such a folder, a
//! copy of this process first moves the content, entry by entry, to a new folder at the same path. Then the kernel
//! executes the call itself, so its result, its flags and the rights of the caller count.
//!
//! Neither process has more rights than a command: the caller could do the same. So a path or a folder that changes
//! meanwhile gains nothing. Nothing fails here: if a folder cannot be made movable, the call fails as without this
//! module. Only one call is examined at a time.
#![forbid(unsafe_code)]

mod caller;
mod movable;

use crate::fault::At;
use crate::raw::{self, ReapedChild};
use crate::seccomp;
use caller::CallerPath;
use glovebox_jail_helper::policy::{Policy, Source};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::fstat;
use rustix::process::Pid;

/// The listener for renames of commands in one workspace.
#[derive(Debug)]
pub(crate) struct RenameListener {
    listener: OwnedFd,
    /// Device number of the overlay.
    device: u64,
}

/// A process that makes a folder movable, and the id of the call that waits for it.
#[derive(Debug)]
pub(crate) struct MovingFolder {
    pid: Pid,
    call: u64,
}

impl RenameListener {
    /// Installs the filter for this process and all commands. Returns `None` if the workspace is a copy, or if the
    /// processes of commands cannot be found in `/proc`.
    pub(crate) fn install(
        policy: &Policy,
        workspace: &OwnedFd,
        enforcement: &Enforcement,
    ) -> Result<Option<Self>, Failure> {
        let is_overlay = matches!(policy.workspace.source, Source::Overlay { .. });
        if !is_overlay || enforcement.degradations.iter().any(|lacks| lacks == "proc=shared") {
            return Ok(None);
        }
        let device = fstat(workspace).at("examine the workspace")?.st_dev;
        let listener = raw::install_listener(&seccomp::renames()).at("listen for renames")?;
        Ok(Some(Self { listener, device }))
    }

    /// Examines the next call, and lets it continue. Returns the process for which the call waits, if there is one.
    pub(crate) fn examine_next(&self) -> Option<MovingFolder> {
        // If the caller has ended, there is no call.
        let call = raw::waiting_call(&self.listener).ok()?;
        let folders: Vec<CallerPath> =
            caller::renamed(&call).into_iter().filter(|path| path.is_folder_on(self.device)).collect();
        let moving = if folders.is_empty() { None } else { self.start(call.id, &folders) };
        if moving.is_none() {
            self.let_continue(call.id);
        }
        moving
    }

    /// Starts a copy of this process that makes the folders movable. Returns `None` if that is not possible.
    fn start(&self, call: u64, folders: &[CallerPath]) -> Option<MovingFolder> {
        match raw::fork() {
            Ok(Some(pid)) => Some(MovingFolder { pid, call }),
            Ok(None) => {
                for folder in folders {
                    // The caller gets the error of its own call.
                    let _ = movable::make_movable(folder, self.device);
                }
                raw::exit_now(0)
            }
            Err(_) => None,
        }
    }

    /// Lets the call continue that waited for an ended child. Returns the process that is still at work.
    pub(crate) fn settle(&self, moving: MovingFolder, ended: &ReapedChild) -> Option<MovingFolder> {
        if moving.pid != ended.pid {
            return Some(moving);
        }
        self.let_continue(moving.call);
        None
    }

    fn let_continue(&self, call: u64) {
        // If the caller has ended, no answer is needed.
        let _ = raw::let_call_continue(&self.listener, call);
    }
}

impl AsFd for RenameListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
