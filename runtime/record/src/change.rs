//! Changes of a stage in the workspace, and the stored files.
//!
//! Bytes are named by digest and stored before the event that names them. Nothing here knows a disk.

use crate::digest::Digest;
use crate::path::ScopePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of change at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeOp {
    /// A regular file has these bytes and this mode now.
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

impl ChangeOp {
    /// True for what takes something away.
    pub fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Rmdir)
    }
}

/// One change of the workspace. Applying it twice is the same as once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Relative to the workspace, `/`-separated.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// The kind of change.
    pub op: ChangeOp,
    /// Blob with the bytes, for a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Length.
    #[serde(default)]
    pub bytes: u64,
    /// True if the owner may execute it.
    #[serde(default)]
    pub executable: bool,
    /// Target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl FileChange {
    /// Makes a change without content.
    pub fn bare(path: ScopePath, op: ChangeOp) -> Self {
        Self { path, op, digest: None, bytes: 0, executable: false, target: None }
    }
}

/// A change that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedChange {
    /// Relative to the workspace.
    pub path: String,
    /// Why it was not taken.
    pub reason: String,
}

/// Bytes a stage asked to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// File name, checked.
    pub name: String,
    /// As claimed.
    pub media_type: String,
    /// Blob with the bytes.
    pub digest: Digest,
    /// Length.
    pub bytes: u64,
}

/// Output of a component, as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredOutput {
    /// Blob with the bytes kept.
    pub digest: Digest,
    /// Length of the stored part.
    pub bytes: u64,
}
