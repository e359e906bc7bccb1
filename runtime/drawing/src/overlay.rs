//! The progress of a run, which is drawn over its pipeline. The caller fills it from the journal.

use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};
use std::collections::BTreeMap;

/// The progress of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeProgress {
    /// An attempt of the node is ready or running.
    Running,
    /// The last visit of the node ended with this status.
    Ended(Status),
}

impl NodeProgress {
    /// Returns the name in CSS classes and titles.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeProgress::Running => "running",
            NodeProgress::Ended(status) => status.as_str(),
        }
    }
}

/// The progress of a run. Elements that it does not contain were not reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The reached nodes, with their progress and number of visits.
    pub nodes: BTreeMap<NodeId, (NodeProgress, u32)>,
    /// The taken edges, each with the number of times that the run took it.
    pub edges: BTreeMap<EdgeIndex, u32>,
    /// Jumps to a retry target, which have no edge, each with the number of times that the run made it.
    pub jumps: BTreeMap<(NodeId, NodeId), u32>,
}
