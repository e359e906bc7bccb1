//! From found changes to stored ones, and from stored ones to a workspace.
//!
//! What is listed in the journal is a [`FileChange`]; its bytes are in a blob store that this file reaches only by closures.
//! Applying is idempotent and never follows a link out of the workspace.

use crate::stage::{Copy, Found, StageError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// One committed change, as the journal lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the workspace.
    pub path: String,
    /// What to do there.
    pub op: ChangeOp,
    /// Digest of the content (`write`) as the blob store named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Length of the content in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// True when the owner may execute it.
    #[serde(default)]
    pub executable: bool,
    /// Where a `symlink` points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The operations of a [`FileChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOp {
    /// A regular file has this content and mode.
    Write,
    /// No file is there.
    Delete,
    /// A directory is there.
    Mkdir,
    /// No directory is there, unless something still lies in it.
    Rmdir,
    /// A symbolic link is there.
    Symlink,
}

/// Why changes could not be stored or applied.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The copy could not be read.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A path of a change is no path of a workspace.
    #[error("`{path}` is no path inside a workspace: {problem}")]
    Path {
        /// What was given.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file changed while it was read.
    #[error("`{path}` changed while it was stored")]
    Unstable {
        /// The file.
        path: String,
    },
    /// A blob's content is not what its digest says.
    #[error("the stored content of `{path}` has digest {found}, expected {expected}")]
    Corrupt {
        /// The file.
        path: String,
        /// Digest in the change.
        expected: String,
        /// Digest of the bytes.
        found: String,
    },
    /// The operating system refused.
    #[error("could not commit `{path}`: {source}")]
    Io {
        /// Path at which it happened.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Hands the content of every allowed change to `keep`, which answers with its digest, and lists the changes in an order in
/// which they can be applied. Disallowed ones are left out.
pub fn store(
    found: &[Found],
    copy: &Copy,
    keep: &mut dyn FnMut(&mut dyn Read) -> io::Result<String>,
) -> Result<Vec<FileChange>, CommitError> {
    let _ = (found, keep);
    Err(CommitError::Io { path: copy.root().display().to_string(), source: io::ErrorKind::Unsupported.into() })
}

/// Makes the workspace what the changes say. Applying again, also after an interruption, gives the same tree.
pub fn apply(
    workspace: &Path,
    changes: &[FileChange],
    open_blob: &dyn Fn(&str) -> io::Result<File>,
) -> Result<(), CommitError> {
    let _ = (changes, open_blob);
    Err(CommitError::Io { path: workspace.display().to_string(), source: io::ErrorKind::Unsupported.into() })
}
