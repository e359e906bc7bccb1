//! The requirements for the success of a node, and whether it is a goal gate.

use super::{Node, NodeId};

/// The requirements for the success of a node, and whether it is a goal gate.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// The node must succeed before the run may exit.
    pub goal_gate: bool,
    /// The evidence that satisfies the gate, besides its success.
    pub gate_requires: GateRequires,
    /// The stage whose last command must have passed before this one works (`required_tool_node`).
    pub required_tool: Option<NodeId>,
    /// The stage that runs its `verify_command`, named `ID.verify`; none without one.
    pub verification: Option<Box<Node>>,
}

/// The evidence that satisfies a goal gate, besides its success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRequires {
    /// No evidence.
    #[default]
    Success,
    /// A receipt: a verifier's command passed there.
    Receipt,
}

/// The words of `gate_requires`.
pub const GATE_REQUIREMENTS: &[(&str, GateRequires)] =
    &[("success", GateRequires::Success), ("receipt", GateRequires::Receipt)];
