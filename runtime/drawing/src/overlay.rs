//! What happened in a run, as a picture of its pipeline can show it. The caller fills it from the journal.

use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};
use std::collections::BTreeMap;

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeProgress {
    /// Its attempt is ready or under way.
    Running,
    /// It ended so the last time it was visited.
    Ended(Status),
}

impl NodeProgress {
    /// The word for it, in classes and titles.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeProgress::Running => "running",
            NodeProgress::Ended(status) => status.as_str(),
        }
    }
}

/// A run over its pipeline. What is not in it was not reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Nodes that were reached: how they stand and how often they were visited.
    pub nodes: BTreeMap<NodeId, (NodeProgress, u32)>,
    /// Edges that were taken, and how often.
    pub edges: BTreeMap<EdgeIndex, u32>,
    /// Jumps that were taken without an edge (to a retry target), and how often.
    pub jumps: BTreeMap<(NodeId, NodeId), u32>,
}
