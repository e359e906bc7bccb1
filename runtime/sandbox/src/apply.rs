//! Bringing a run's result back to the user's tree, and showing what it would change.
//!
//! All or nothing: when one touched path is not what it was when the project was copied, nothing is written. A path that
//! already is what the run made of it is no conflict.

use crate::commit::{CommitError, FileChange};
use crate::project::Base;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::Path;

/// A path at which the user's tree and the run disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Path relative to the project.
    pub path: String,
    /// What is in the way.
    pub reason: String,
}

/// What `apply` would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ApplyPlan {
    /// Files, links and directories to make, in order.
    pub writes: Vec<FileChange>,
    /// Files and directories to remove, in order.
    pub deletes: Vec<FileChange>,
    /// Why nothing will be done, when not empty.
    pub conflicts: Vec<Conflict>,
}

/// Why a plan was not performed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Touched paths differ from what the run was started from.
    #[error("{} in the way of the run's result, nothing was written", .0.len())]
    Conflicts(Vec<Conflict>),
    /// A change could not be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// One path the run changed, for `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path relative to the project.
    pub path: String,
    /// The file before; none when there was none.
    pub before: Option<crate::project::FileFact>,
    /// The file after; none when there is none.
    pub after: Option<FileChange>,
}

/// Compares the final state of `changes` with `base` and with the user's tree.
pub fn plan(base: &Base, changes: &[FileChange], user_tree: &Path) -> Result<ApplyPlan, CommitError> {
    let _ = (base, changes);
    Err(CommitError::Io { path: user_tree.display().to_string(), source: io::ErrorKind::Unsupported.into() })
}

/// Performs a plan, after comparing once more. Denied: any write when a conflict is known or found.
pub fn perform(
    plan: &ApplyPlan,
    base: &Base,
    user_tree: &Path,
    open_blob: &dyn Fn(&str) -> io::Result<File>,
) -> Result<(), ApplyError> {
    let _ = (plan, base, open_blob);
    Err(CommitError::Io { path: user_tree.display().to_string(), source: io::ErrorKind::Unsupported.into() }.into())
}

/// Lists what the run changed against `base`, by path; what ended as it began is left out.
pub fn differences(base: &Base, changes: &[FileChange]) -> Vec<Difference> {
    let _ = (base, changes);
    Vec::new()
}

/// Opens a file of the user's tree for `diff`, following no link.
pub fn open_before(user_tree: &Path, path: &str) -> io::Result<File> {
    let _ = (user_tree, path);
    Err(io::ErrorKind::Unsupported.into())
}
