//! The hold-outs in the first record: the commitment, made before the first stage, and the nodes that can read them.

use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hold-outs that were sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldoutsSealed {
    /// The folders, relative to the project, each with a final slash.
    pub folders: Vec<String>,
    /// Salted BLAKE3 root over all files. The run's `holdouts/seal.json` opens the commitment.
    pub root: Digest,
    /// Number of files.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Nodes that can read the hold-outs.
    #[serde(default)]
    pub reach: Vec<String>,
    /// The blob with the list of the hold-outs, for a run whose stores several machines share; absent for a run of one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packs_digest: Option<Digest>,
    /// Protections of the hold-outs that the pipeline opted out of, as text for people.
    #[serde(default)]
    pub opt_outs: Vec<String>,
}
