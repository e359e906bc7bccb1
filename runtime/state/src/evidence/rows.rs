//! The rows of a summary: what came of visits, and what was refused or set aside.

use glovebox_journal::event::{BranchId, FileChange, Refusal};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, NodeId};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// One finished visit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Visit {
    /// The node.
    pub node: NodeId,
    /// The branch; absent for the one that the run began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// The generation; absent for the first.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// Which visit in the generation.
    pub visit: u32,
    /// Attempts it took.
    pub attempts: u32,
    /// How it ended.
    pub status: &'static str,
}

/// A stage that passed without a verified command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnverifiedStage {
    /// The node.
    pub node: NodeId,
    /// Its handler.
    pub handler: String,
}

/// Checks of the operator that the last visit of a stage dropped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DroppedChecks {
    /// The node.
    pub node: NodeId,
    /// The branch of a parallel node; absent outside of parallel nodes, and once the parallel node has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// The commands.
    pub commands: Vec<String>,
}

/// A branch of a parallel node that failed, whatever its parallel node and the run came to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailedBranch {
    /// The branch.
    pub branch: BranchId,
    /// The parallel node.
    pub parallel: NodeId,
    /// The node that it was at last; absent when it visited none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The failure's class, code and reason.
    pub failure: Option<Failure>,
}

/// A refused request and the node that made it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedRequest {
    /// The node.
    pub node: NodeId,
    /// How many times.
    pub times: usize,
    /// The refusal.
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// A change that was set aside.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuarantinedFile {
    /// The node.
    pub node: NodeId,
    /// The path in the workspace.
    pub path: String,
    /// Why.
    pub reason: String,
}

pub fn is_first(generation: &u32) -> bool {
    *generation == 0
}

/// Writes changes without their keys, which they name themselves.
pub(super) fn values<S: Serializer>(
    changed: &BTreeMap<ScopePath, FileChange>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changed.values())
}
