//! The folder of a branch: a whole copy of the workspace it began with, put in place when it is complete.
//!
//! A file system that can share blocks shares them. A copy that was cut short never has the folder's name.

use crate::stage::{Copy, StageError};
use crate::tree;
use glovebox_record::scope::Scope;
use std::io;
use std::path::Path;

/// Copies everything of `workspace` to the new folder `beside`.
///
/// # Errors
/// [`StageError`] when `beside` exists already or the system refuses.
pub fn copy(workspace: &Path, beside: &Path) -> Result<(), StageError> {
    Copy::create(workspace, beside, &Scope::everything()).map(drop)
}

/// Gives a complete copy its name. If another thread was faster, its copy is the same and stays.
///
/// # Errors
/// The system's error.
pub fn put_in_place(beside: &Path, at: &Path) -> io::Result<()> {
    match std::fs::rename(beside, at) {
        Err(_) if at.is_dir() => tree::remove_all(beside),
        renamed => renamed,
    }
}
