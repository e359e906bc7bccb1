//! What a node needs for success, and whether it is a goal gate.

use super::{Node, NodeId};

/// What a node needs for success, and whether it is a goal gate.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// True if the node must succeed before the run may exit.
    pub goal_gate: bool,
    /// The evidence that the gate needs in addition to success.
    pub gate_requires: GateRequires,
    /// The stage whose last command must have passed before this node is executed (`required_tool_node`).
    pub required_tool: Option<NodeId>,
    /// The stage that runs the node's `verify_command`, with the name `ID.verify`. `None` if the node has none.
    pub verification: Option<Box<Node>>,
}

/// The evidence that a goal gate needs in addition to success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRequires {
    /// No evidence.
    #[default]
    Success,
    /// A receipt of a verifier's command that passed in this node.
    Receipt,
}

/// The values of `gate_requires`.
pub const GATE_REQUIREMENTS: &[(&str, GateRequires)] =
    &[("success", GateRequires::Success), ("receipt", GateRequires::Receipt)];
