//! Files that belong to a project and that a run did not get, so that a verdict of the run says nothing about them.

use crate::identity::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Why the files are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingKind {
    /// The folder of a git submodule is empty.
    Submodule,
    /// The file is a pointer of Git LFS instead of the content.
    LfsPointer,
    /// A sparse checkout leaves out the file or the folder.
    SparseCheckout,
}

/// Files of one kind that were missing when a run copied its project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingFiles {
    /// Why the files are missing.
    pub kind: MissingKind,
    /// Number of missing files. A folder that a sparse checkout leaves out counts as one, and so does a submodule.
    pub count: u64,
    /// The first missing paths, with unprintable characters escaped. A folder ends with a slash.
    pub paths: Vec<String>,
    /// The stages whose command or `read_paths` names a missing path; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub named_by: BTreeSet<NodeId>,
}

/// An entry of an attribute that matched no file when an attempt began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// The attribute: `read_paths` or `paths`.
    pub attribute: String,
    /// The entry, as the node has it.
    pub entry: String,
}
