//! The private copy a stage works on, and what it changed there.
//!
//! Only what the scope lets the stage see exists in the copy. Changes are found by a walk that follows no link; a file whose
//! stamp (size, times, inode, mode) is untouched is not read. The copy is hostile from the moment a program ran in it.

use crate::protect::Protected;
use crate::scope::Scope;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Caps of what a stage may change; reaching one fails the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes in changed files, counted by length; limit `write_bytes`.
    pub write_bytes: u64,
    /// Changed entries; limit `write_entries`.
    pub write_entries: u64,
    /// Levels of directories; limit `depth`.
    pub depth: u32,
    /// Bytes in one name; limit `name_bytes`.
    pub name_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { write_bytes: 256 << 20, write_entries: 10_000, depth: 128, name_bytes: 255 }
    }
}

/// What happened to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Op {
    /// A regular file is new, has other content or another executable bit.
    Write {
        /// Length in bytes.
        bytes: u64,
        /// True when the owner may execute it.
        executable: bool,
    },
    /// A file or link is gone.
    Delete,
    /// A directory is new.
    MakeDir,
    /// A directory is gone.
    RemoveDir,
    /// A symbolic link is new or points elsewhere.
    Link {
        /// Its target, unprintable characters escaped.
        target: String,
    },
    /// Something that is never committed: `fifo`, `socket`, `block device`, `character device`.
    Special {
        /// Which.
        kind: &'static str,
    },
}

/// Whether a change may be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "lowercase")]
pub enum Verdict {
    /// Inside the write scope.
    Allowed,
    /// Not to be committed, and why, naming the grant where one would help.
    Disallowed(String),
}

/// One change found in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Path relative to the workspace, unprintable characters escaped.
    pub path: String,
    /// What happened to it.
    #[serde(flatten)]
    pub op: Op,
    /// Whether it may be committed.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The path as the system has it.
    #[serde(skip)]
    pub(crate) raw: PathBuf,
}

impl Found {
    /// True when it may be committed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }
}

/// Why a copy could not be made or examined.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The stage left more than a limit allows.
    #[error("the stage reached `limits.{limit}` ({max}) at `{path}`")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
        /// Where it was reached, unprintable characters escaped.
        path: String,
    },
    /// The operating system refused.
    #[error("could not read the stage's copy at `{path}`: {source}")]
    Io {
        /// Path at which it happened.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// A private copy of what a stage may see.
#[derive(Debug)]
pub struct Copy {
    at: PathBuf,
}

impl Copy {
    /// Copies what `scope` lets a stage see of `workspace` to the new folder `at`. Denied: everything hidden or not granted
    /// does not exist in it, links that leave the workspace are left out.
    pub fn create(workspace: &Path, at: &Path, scope: &Scope) -> Result<Self, StageError> {
        let _ = (workspace, scope);
        Err(StageError::Io { path: at.display().to_string(), source: io::ErrorKind::Unsupported.into() })
    }

    /// Returns the folder of the copy.
    pub fn root(&self) -> &Path {
        &self.at
    }

    /// Finds what differs from what was copied, each with its verdict: protected paths first, then the scope.
    pub fn changes(&self, limits: &Limits, protected: &Protected) -> Result<Vec<Found>, StageError> {
        let _ = (limits, protected);
        Err(StageError::Io { path: self.at.display().to_string(), source: io::ErrorKind::Unsupported.into() })
    }
}
