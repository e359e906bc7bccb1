//! Events between two nodes: the choice of the next node, an unmet goal gate, and a loop restart.

use super::{BranchId, Digest, NodeId};
use glovebox_record::{Failure, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The next node was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTaken {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that continues at the next node.
    pub branch: BranchId,
    /// The node that the branch leaves.
    pub from: NodeId,
    /// The next node.
    pub to: NodeId,
    /// The rule that chose the node: `condition`, `preferred_label`, `suggested_id`, `default`, `weight` or `lexical`;
    /// after a failure also `retry_target`, `fallback_retry_target` or `diamond`; at an exit `gate_target`. Later
    /// versions may add rules.
    pub how: String,
    /// Index of the edge in file order; absent for a jump to a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<usize>,
    /// Every outgoing edge, with the reason why it was or was not taken.
    #[serde(default)]
    pub candidates: Vec<RouteCandidate>,
}

/// An edge that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCandidate {
    /// Index of the edge in file order.
    pub edge: usize,
    /// The target of the edge.
    pub to: NodeId,
    /// The condition of the edge as written; empty if it has none.
    #[serde(default)]
    pub condition: String,
    /// True if the rule that decided could have taken the edge.
    pub matched: bool,
    /// Why the edge was or was not taken.
    pub reason: String,
}

/// An exit was reached while a goal gate was unmet, or after commands of the verify contract were skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateUnmet {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that reached the exit.
    pub branch: BranchId,
    /// The exit that was reached.
    pub exit_node: NodeId,
    /// The goal gate, or the stage that skipped commands. If there are several, the first in file order.
    pub gate: NodeId,
    /// The last status of that node; absent if it was never visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// True if the gate succeeded without the receipt that its `gate_requires` demands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_receipt: bool,
    /// The commands of the verify contract that the stage skipped; absent for a goal gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<String>,
    /// The retry target; absent if none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
}

/// An edge with `loop_restart` was taken, and a new generation begins. It begins without the visits, outcomes and
/// conversations of the previous generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopRestarted {
    /// Number of the new generation: one more than that of the previous one.
    pub generation: u32,
    /// The branch, which is always the first branch of the run.
    pub branch: BranchId,
    /// The node whose outgoing edge was taken.
    pub from: NodeId,
    /// The first node of the new generation.
    pub to: NodeId,
    /// Index of the edge in file order.
    pub edge: usize,
    /// The status of `from`.
    pub status: Status,
    /// The failure of `from`; absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Keys of the context that the new generation keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// A loop was ended because a node failed in the same way too often. The failure of the branch or of the run follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycleBroken {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that ends.
    pub branch: BranchId,
    /// The node that failed.
    pub node: NodeId,
    /// The failure signature. For a stage that can read hold-outs, it is keyed and reveals nothing about the failure.
    pub signature: Digest,
    /// Number of failures with this signature.
    pub count: u32,
    /// The limit that was reached.
    pub limit: u32,
    /// The name of the limit: `loop_restart_signature_limit` or `repeated_signature_threshold`.
    pub limit_name: String,
}
