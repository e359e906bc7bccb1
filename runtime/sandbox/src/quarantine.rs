//! Keeping what a stage was not allowed to write: nothing is lost, nothing of it can act.
//!
//! Files are numbered and flat, never at their own names, so that no `.git` or `.envrc` comes to life when somebody looks
//! into the folder; mode 0600. `report.json` says what was what.

use crate::commit::CommitError;
use crate::stage::{Copy, Found};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Caps of a quarantine folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Most files kept; more are listed only.
    pub files_max: u64,
    /// Most bytes kept; a file that does not fit is listed only.
    pub bytes_max: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { files_max: 1_000, bytes_max: 256 << 20 }
    }
}

/// One disallowed change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Path it had in the workspace, unprintable characters escaped.
    pub path: String,
    /// What happened there, as in [`crate::stage::Op`].
    pub op: String,
    /// Why it was not allowed.
    pub reason: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Name below the quarantine folder; none when nothing was kept.
    pub stored_as: Option<String>,
}

/// The content of `report.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Disallowed changes by path.
    pub kept: Vec<Kept>,
}

/// Copies the disallowed regular files of `found` to the new folder `into` and writes `report.json` there. Nothing is made
/// when nothing was disallowed.
pub fn quarantine(copy: &Copy, found: &[Found], into: &Path, caps: &Caps) -> Result<Report, CommitError> {
    let _ = (copy, found, caps);
    Err(CommitError::Io { path: into.display().to_string(), source: io::ErrorKind::Unsupported.into() })
}
