//! The progress of a run, to be drawn over its pipeline. The caller fills it from the journal.

use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};
use std::collections::BTreeMap;

/// The progress of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeProgress {
    /// Its attempt is ready or under way.
    Running,
    /// Its last visit ended with this status.
    Ended(Status),
}

impl NodeProgress {
    /// The word in CSS classes and titles.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeProgress::Running => "running",
            NodeProgress::Ended(status) => status.as_str(),
        }
    }
}

/// The progress of a run. Elements that are not in it were not reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The reached nodes, with their progress and number of visits.
    pub nodes: BTreeMap<NodeId, (NodeProgress, u32)>,
    /// The taken edges, with the number of times.
    pub edges: BTreeMap<EdgeIndex, u32>,
    /// Jumps to a retry target, which have no edge, with the number of times.
    pub jumps: BTreeMap<(NodeId, NodeId), u32>,
}
