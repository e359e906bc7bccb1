//! What the first record says of hold-outs: the commitment, made before the first stage, and who could read them.

use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hold-outs under seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldoutsSealed {
    /// The folders, relative to the project, each with a final slash.
    pub folders: Vec<String>,
    /// Salted BLAKE3 root over all files; opened by the run's `holdouts/seal.json`.
    pub root: Digest,
    /// How many files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nodes that have them in reach, read-only.
    #[serde(default)]
    pub reach: Vec<String>,
    /// Protections of the hold-outs that the pipeline opted out of, in words.
    #[serde(default)]
    pub opt_outs: Vec<String>,
}
