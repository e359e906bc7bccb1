//! The origin of a forked run, which begins with records of another run.

use super::{Digest, NodeId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The run from which this run was forked, and the point of the fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedFrom {
    /// The other run.
    pub run_id: RunId,
    /// The node at which this run continued.
    pub node: NodeId,
    /// The visit of `node` before which the run was forked.
    pub visit: u32,
    /// The generation of that visit.
    pub generation: u32,
    /// The sequence number of the last record that this run copied from the other run.
    pub seq: u64,
    /// The hash of that record in the other run, which covers all records before it.
    pub hash: Digest,
    /// The context keys that the user set before the visit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}
