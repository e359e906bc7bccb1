//! The folder of a branch: a full copy of the initial workspace of the branch, renamed to its final name when it is complete.
//!
//! The copy shares blocks if the file system can. An interrupted copy never has the final name.

use crate::stage::{Copy, StageError};
use crate::tree;
use glovebox_record::scope::Scope;
use std::io;
use std::path::Path;

/// Copies the whole `workspace` to the new folder `beside`.
///
/// # Errors
/// [`StageError`] if `beside` exists or the system refuses.
pub fn copy(workspace: &Path, beside: &Path) -> Result<(), StageError> {
    Copy::create(workspace, beside, &Scope::everything()).map(drop)
}

/// Renames a complete copy to its final name. If another thread was faster, its copy is equal and is kept.
///
/// # Errors
/// The system's error.
pub fn put_in_place(beside: &Path, at: &Path) -> io::Result<()> {
    match std::fs::rename(beside, at) {
        Err(_) if at.is_dir() => tree::remove_all(beside),
        renamed => renamed,
    }
}
