//! Changes of a stage in the workspace, and files that are stored as blobs.
//!
//! Bytes are identified by their digest, and are stored before the event that refers to them. This module does not
//! access any files.

use crate::digest::Digest;
use crate::path::ScopePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of change at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOp {
    /// A regular file was written. It has the recorded bytes and mode.
    Write,
    /// A file was deleted.
    Delete,
    /// A directory was created.
    Mkdir,
    /// A directory was removed. It is kept if it is not empty when the change is applied.
    Rmdir,
    /// A symbolic link was created.
    Symlink,
}

impl ChangeOp {
    /// Returns true if the change removes a file or a directory.
    pub fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Rmdir)
    }
}

/// One change of the workspace. Applying a change is idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Path relative to the workspace, separated by `/`.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// The kind of change.
    pub op: ChangeOp,
    /// Digest of the blob with the bytes of a written file; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Length of the file in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// True if the owner may execute the file.
    #[serde(default)]
    pub executable: bool,
    /// Permissions of a written file or a created directory; absent for the usual ones: 644 or, for an executable file
    /// and a directory, 755. Neither the group nor others may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Target of the symbolic link; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl FileChange {
    /// Creates a change that has only a path and a kind.
    pub fn bare(path: ScopePath, op: ChangeOp) -> Self {
        Self { path, op, digest: None, bytes: 0, executable: false, mode: None, target: None }
    }
}

/// A change that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedChange {
    /// Path relative to the workspace.
    pub path: String,
    /// Why the change was not committed.
    pub reason: String,
}

/// A file that a stage kept as an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Name of the file, which the host has checked.
    pub name: String,
    /// Media type that the stage stated.
    pub media_type: String,
    /// Digest of the blob with the bytes.
    pub digest: Digest,
    /// Length in bytes.
    pub bytes: u64,
}

/// Output of a component, stored as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredOutput {
    /// Digest of the blob with the part of the output that was kept.
    pub digest: Digest,
    /// Length of that part in bytes.
    pub bytes: u64,
}
