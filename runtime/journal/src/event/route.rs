//! Events between two nodes: the choice of the next one, a goal gate that was unmet, and the restart of the run's loop.

use super::{BranchId, NodeId};
use glovebox_record::{Failure, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The next node was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTaken {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that goes on.
    pub branch: BranchId,
    /// From which node.
    pub from: NodeId,
    /// To which.
    pub to: NodeId,
    /// By which rule: `condition`, `preferred_label`, `suggested_id`, `default`, `weight`, `lexical`, after a failure also
    /// `retry_target`, `fallback_retry_target`, `diamond`, and at an exit `gate_target`. More may come.
    pub how: String,
    /// Index of the edge in file order; none for a jump to a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<usize>,
    /// Every outgoing edge and why it was or was not taken.
    #[serde(default)]
    pub candidates: Vec<RouteCandidate>,
}

/// An edge that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCandidate {
    /// Index of the edge in file order.
    pub edge: usize,
    /// Its target.
    pub to: NodeId,
    /// Its condition as written; empty when it has none.
    #[serde(default)]
    pub condition: String,
    /// Whether the deciding step could have taken it.
    pub matched: bool,
    /// Why, or why not.
    pub reason: String,
}

/// An exit was reached while a goal gate was unmet, or a check of the operator was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateUnmet {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that reached the exit.
    pub branch: BranchId,
    /// The exit that was reached.
    pub exit_node: NodeId,
    /// The gate, or the stage that dropped checks: the first in file order.
    pub gate: NodeId,
    /// Its last status; none when it was never visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// True when it succeeded without the receipt that its `gate_requires` asks for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_receipt: bool,
    /// The operator's checks that it dropped; absent for a goal gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<String>,
    /// The retry target; none when no level names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
}

/// An edge with `loop_restart` was taken: a new generation begins. Visits, outcomes and conversations of the one before count no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoopRestarted {
    /// The generation that begins: one more than the one that ends.
    pub generation: u32,
    /// The branch: always the one that the run began with.
    pub branch: BranchId,
    /// The node that led to it.
    pub from: NodeId,
    /// The node that the generation begins at.
    pub to: NodeId,
    /// Index of the edge in file order.
    pub edge: usize,
    /// How the node that led to it ended.
    pub status: Status,
    /// Its failure; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Keys of the context that the generation begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}
