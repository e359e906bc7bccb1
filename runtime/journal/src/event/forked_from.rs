//! Where a run comes from that began with the records of another one.

use super::{Digest, NodeId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The run whose records this one begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedFrom {
    /// The other run.
    pub run_id: RunId,
    /// The node that this run went on at.
    pub node: NodeId,
    /// Before which visit of it.
    pub visit: u32,
    /// The generation of that visit.
    pub generation: u32,
    /// The last record of the other run that this one has.
    pub seq: u64,
    /// Its hash in the other run, which covers all records before it.
    pub hash: Digest,
    /// The context keys that the user set before the visit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}
