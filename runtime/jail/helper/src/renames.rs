//! Makes folders of lower layers movable, so that `rename` works on them.
//!
//! In an overlay, the kernel renames only folders that are in the upper layer alone; for all others it fails with
//! `EXDEV`. A filter lets every rename of a command wait for the jail's first process. If it concerns such a folder, a
//! copy of this process first moves the content, entry by entry, to a new folder at the same path. Then the kernel
//! executes the call itself, so its result, its flags and the rights of the caller count.
//!
//! Neither process has more rights than a command: the caller could do the same. So a path or a folder that changes
//! meanwhile gains nothing. Nothing fails here: if a folder cannot be made movable, the call fails as without this
//! module. The folders of one call are moved at a time. If the process that moves is killed, another one moves the
//! content back before the call continues. Only a command that the host kills may leave a folder in two parts, because
//! its changes are not used.
#![forbid(unsafe_code)]

mod caller;
mod movable;

use crate::fault::At;
use crate::raw::{self, ReapedChild};
use crate::seccomp;
use glovebox_jail_helper::policy::{Policy, Source};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use movable::FolderEntry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::Pid;
use std::collections::VecDeque;

/// Maximum number of calls that wait for the move of another call. Each holds up to two descriptors of this process.
const WAITING_MAX: usize = 16;
/// Maximum number of processes that try to move folders back. Only a command that kills them needs more than one.
const RESTORES_MAX: u32 = 3;

/// The listener for renames of commands in one workspace.
#[derive(Debug)]
pub(crate) struct RenameListener {
    listener: OwnedFd,
    /// Device number of the overlay.
    device: u64,
}

/// A call that renames folders.
#[derive(Debug)]
struct FolderCall {
    id: u64,
    folders: Vec<FolderEntry>,
}

/// A process that moves folders or moves them back, and the call that waits for it.
#[derive(Debug)]
struct MovingFolder {
    pid: Pid,
    call: FolderCall,
    /// Number of processes that have tried to move the folders back; 0 for the move.
    restores: u32,
}

/// The renames of folders that have not been answered. One is under way at a time.
#[derive(Debug, Default)]
pub(crate) struct FolderMoves {
    current: Option<MovingFolder>,
    waiting: VecDeque<FolderCall>,
}

impl FolderMoves {
    /// Returns true if no folder is being moved.
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Returns true if another call can be examined.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }
}

impl RenameListener {
    /// Installs the filter for this process and all commands. Returns `None` if the workspace is a copy, or if the
    /// processes of commands cannot be found in `/proc`. Records a degradation and returns `None` if the kernel does not
    /// give this process a listener: it has none, or a filter around the jail has one already.
    pub(crate) fn install(
        policy: &Policy,
        workspace: &OwnedFd,
        enforcement: &mut Enforcement,
    ) -> Result<Option<Self>, Failure> {
        let is_overlay = matches!(policy.workspace.source, Source::Overlay { .. });
        if !is_overlay || enforcement.degradations.iter().any(|lacks| lacks == "proc=shared") {
            return Ok(None);
        }
        let device = fstat(workspace).at("examine the workspace")?.st_dev;
        match raw::install_listener(&seccomp::renames()) {
            Ok(listener) => Ok(Some(Self { listener, device })),
            Err(Errno::BUSY | Errno::INVAL | Errno::NOSYS) => {
                enforcement.degradations.push("renames=kernel".to_owned());
                Ok(None)
            }
            Err(error) => Err(error).at("listen for renames"),
        }
    }

    /// Examines the next call. If it renames no folder, it continues at once, else after its folders have been moved.
    pub(crate) fn examine_next(&self, moves: &mut FolderMoves) {
        // If the caller has ended, there is no call.
        let Ok(call) = raw::waiting_call(&self.listener) else { return };
        let folders = caller::renamed_folders(&call, self.device);
        if folders.is_empty() {
            return self.let_continue(call.id);
        }
        moves.waiting.push_back(FolderCall { id: call.id, folders });
        self.start_next(moves);
    }

    /// Starts the next move, unless one is under way.
    pub(crate) fn start_next(&self, moves: &mut FolderMoves) {
        while moves.current.is_none() {
            let Some(call) = moves.waiting.pop_front() else { return };
            moves.current = self.start(call, 0);
        }
    }

    /// Starts a copy of this process that moves the folders of a call or, after a first process, moves them back. If
    /// that is not possible, the call continues.
    fn start(&self, call: FolderCall, restores: u32) -> Option<MovingFolder> {
        match raw::fork() {
            Ok(Some(pid)) => Some(MovingFolder { pid, call, restores }),
            Ok(None) => {
                raw::block_signals();
                let mut is_whole = true;
                for folder in &call.folders {
                    let is_moved = restores == 0 && movable::make_movable(folder, self.device).is_ok();
                    // After a move back, the caller gets the error of its own call.
                    is_whole &= is_moved || movable::restore(folder).is_ok();
                }
                raw::exit_now(if is_whole { 0 } else { 1 })
            }
            Err(_) => {
                self.let_continue(call.id);
                None
            }
        }
    }

    /// Lets the call continue that waited for an ended child. If a command has killed the child or lowered its limits,
    /// another one first moves the folders back, unless the host has killed the command.
    pub(crate) fn settle(&self, moves: &mut FolderMoves, ended: &ReapedChild, is_killed: bool) {
        let Some(moving) = moves.current.take_if(|moving| moving.pid == ended.pid) else { return };
        if ended.code == Some(0) || is_killed || moving.restores == RESTORES_MAX {
            self.let_continue(moving.call.id);
        } else {
            moves.current = self.start(moving.call, moving.restores + 1);
        }
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
