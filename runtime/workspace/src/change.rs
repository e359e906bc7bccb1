//! The changes of a stage and the verdict about each: allowed or not.
//!
//! These are types only: [`crate::stage`] finds the changes and decides about them.

use glovebox_record::Limits;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Limits on a stage's changes; reaching one fails the stage. The limits on the shape of a tree are fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLimits {
    /// The limits of the stage. `write_bytes` counts changed files by length, `write_entries` changed entries, `ignored_entries`
    /// those that git ignores.
    pub stage: Limits,
    /// Levels of directories.
    pub depth: u32,
    /// Bytes in one name.
    pub name_bytes: u32,
}

impl ChangeLimits {
    /// Returns the caps of a stage.
    pub fn new(stage: Limits) -> Self {
        Self { stage, ..Self::default() }
    }
}

impl Default for ChangeLimits {
    fn default() -> Self {
        Self { stage: Limits::default(), depth: 128, name_bytes: 255 }
    }
}

/// The change of one path.
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
        /// The kind of the special file.
        kind: &'static str,
    },
}

impl Op {
    /// Returns the name used in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Write { .. } => "write",
            Self::Delete => "delete",
            Self::MakeDir => "mkdir",
            Self::RemoveDir => "rmdir",
            Self::Link { .. } => "symlink",
            Self::Special { .. } => "special",
        }
    }

    pub(crate) fn removes(&self) -> bool {
        matches!(self, Self::Delete | Self::RemoveDir)
    }
}

/// Decides if a change may be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "lowercase")]
pub enum Verdict {
    /// Inside the write scope.
    Allowed,
    /// Not to be committed, and why, naming the grant where one would help.
    Disallowed(String),
}

/// One change a stage left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundChange {
    /// Path relative to the workspace, unprintable characters escaped.
    pub path: String,
    /// The change.
    #[serde(flatten)]
    pub op: Op,
    /// The decision.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// True when nothing but the write scope forbids it.
    #[serde(skip)]
    pub is_only_out_of_scope: bool,
    /// The path as the system has it.
    #[serde(skip)]
    pub(crate) raw: PathBuf,
}

impl FoundChange {
    /// True when it may be committed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }

    /// Refuses it for good: no wider write scope would help.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.verdict = Verdict::Disallowed(reason);
        self.is_only_out_of_scope = false;
    }

    /// True for a regular file without the right to be executed that a wider write scope alone would commit.
    pub fn is_grantable(&self) -> bool {
        self.is_only_out_of_scope && matches!(self.op, Op::Write { executable: false, .. })
    }

    /// The same change as one that may be committed; none if more than the write scope forbids it.
    pub fn granted(&self) -> Option<Self> {
        self.is_grantable().then(|| Self { verdict: Verdict::Allowed, ..self.clone() })
    }
}

/// Reads the content of changed files, without following links and without blocking.
pub trait ChangedFiles {
    /// Opens the regular file a change found there.
    ///
    /// # Errors
    /// The system's error, also if the path is no longer a regular file.
    fn open(&self, change: &FoundChange) -> io::Result<File>;
}
