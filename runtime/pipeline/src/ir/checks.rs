//! What the success of a node needs, and what needs its success.

use super::{Node, NodeId};

/// What the success of a node needs, and what needs its success.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    /// The node must succeed before the run may exit.
    pub goal_gate: bool,
    /// What its success needs to satisfy the gate.
    pub gate_requires: GateRequires,
    /// The stage whose last command must have passed before this one works (`required_tool_node`).
    pub required_tool: Option<NodeId>,
    /// The stage that runs its `verify_command`, named `ID.verify`; none without one.
    pub verification: Option<Box<Node>>,
}

/// What the success of a goal gate needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRequires {
    /// Nothing but itself.
    #[default]
    Success,
    /// A receipt: a verifier's command passed there.
    Receipt,
}

/// The words of `gate_requires`.
pub const GATE_REQUIREMENTS: &[(&str, GateRequires)] =
    &[("success", GateRequires::Success), ("receipt", GateRequires::Receipt)];
