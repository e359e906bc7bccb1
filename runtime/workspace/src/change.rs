//! The changes of a stage and the verdict on each one: allowed or not.
//!
//! This module only has types: [`crate::stage`] finds the changes and decides about them.

use glovebox_record::Limits;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Limits on a stage's changes. A stage that exceeds one fails. The limits on depth and name length are fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLimits {
    /// The limits of the stage. `write_bytes` limits the total length of changed files, `write_entries` the number of
    /// changed entries, and `ignored_entries` the number of changed entries that git ignores.
    pub stage: Limits,
    /// Maximum depth of directories.
    pub depth: u32,
    /// Maximum length of a name in bytes.
    pub name_bytes: u32,
}

impl ChangeLimits {
    /// Returns the limits of a stage.
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
    /// A regular file was created, or its content or executable bit was changed.
    Write {
        /// Length in bytes.
        bytes: u64,
        /// True if the owner may execute it.
        executable: bool,
        /// Its permissions; `None` for the usual ones.
        #[serde(skip)]
        mode: Option<u32>,
    },
    /// A file or link was removed.
    Delete,
    /// A directory was created.
    MakeDir {
        /// Its permissions; `None` for the usual ones.
        #[serde(skip)]
        mode: Option<u32>,
    },
    /// A directory was removed.
    RemoveDir,
    /// A symbolic link was created, or its target was changed.
    Link {
        /// The target of the link, with unprintable characters escaped.
        target: String,
    },
    /// A special file was created: `fifo`, `socket`, `block device` or `character device`. It is never committed.
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
            Self::MakeDir { .. } => "mkdir",
            Self::RemoveDir => "rmdir",
            Self::Link { .. } => "symlink",
            Self::Special { .. } => "special",
        }
    }

    pub(crate) fn removes(&self) -> bool {
        matches!(self, Self::Delete | Self::RemoveDir)
    }
}

/// The decision whether a change may be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "lowercase")]
pub enum Verdict {
    /// The path is in the write scope, and nothing else forbids the change.
    Allowed,
    /// The change may not be committed. The text is the reason, with the grant that would allow it if there is one.
    Disallowed(String),
    /// The change cannot be committed, but is no violation: a socket, a pipe, a link out of the workspace, or a name that
    /// no record can contain. The text is the reason.
    #[serde(rename = "set-aside")]
    SetAside(String),
}

impl Verdict {
    /// Returns the reason why the change is not committed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Allowed => None,
            Self::Disallowed(reason) | Self::SetAside(reason) => Some(reason),
        }
    }
}

/// One change that a stage made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundChange {
    /// Path relative to the workspace, with unprintable characters escaped.
    pub path: String,
    /// The change.
    #[serde(flatten)]
    pub op: Op,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// True if only the write scope forbids the change.
    #[serde(skip)]
    pub is_only_out_of_scope: bool,
    /// The path as bytes of the file system.
    #[serde(skip)]
    pub(crate) raw: PathBuf,
}

impl FoundChange {
    /// Returns true if the change may be committed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }

    /// Returns true if the change is a violation of the stage's rules.
    pub fn is_violation(&self) -> bool {
        matches!(self.verdict, Verdict::Disallowed(_))
    }

    /// Refuses the change permanently: no wider write scope would allow it.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.verdict = Verdict::Disallowed(reason);
        self.is_only_out_of_scope = false;
    }

    /// Returns true for a regular file that is not executable and that a wider write scope would allow.
    pub fn is_grantable(&self) -> bool {
        self.is_only_out_of_scope && matches!(self.op, Op::Write { executable: false, .. })
    }

    /// Returns the change as an allowed one, or `None` if it is not grantable.
    pub fn granted(&self) -> Option<Self> {
        self.is_grantable().then(|| Self { verdict: Verdict::Allowed, ..self.clone() })
    }
}

/// Reads the content of changed files, without following links and without blocking.
pub trait ChangedFiles {
    /// Opens the regular file of a change.
    ///
    /// # Errors
    /// The system's error, including the case that the path is no longer a regular file.
    fn open(&self, change: &FoundChange) -> io::Result<File>;
}
