//! An index of nodes and their edges by node id, built at the first lookup.
//!
//! A run looks up nodes at every step. `check` never does, so it does not pay for the index. The nodes and edges of a lowered pipeline
//! never change.

use super::{Edge, HandlerKind, Node, NodeId};
use crate::hash::HashMap;

/// Nodes and leaving edges by the id of a node.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    places: HashMap<NodeId, Place>,
    /// True if a node runs an agent's plan.
    pub(crate) has_verification: bool,
}

/// A node, and the edges that leave it in file order, by their indices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// None for an id that only edges have.
    pub(crate) node: Option<usize>,
    pub(crate) edges: Vec<usize>,
}

impl Index {
    pub(crate) fn new(nodes: &[Node], edges: &[Edge]) -> Self {
        let mut places: HashMap<NodeId, Place> = HashMap::default();
        for (at, node) in nodes.iter().enumerate() {
            places.entry(node.id.clone()).or_default().node.get_or_insert(at);
        }
        for (at, edge) in edges.iter().enumerate() {
            places.entry(edge.from.clone()).or_default().edges.push(at);
        }
        let has_verification = nodes.iter().any(|node| node.handler.kind() == HandlerKind::Verification);
        Self { places, has_verification }
    }

    pub(crate) fn place(&self, id: &NodeId) -> Option<&Place> {
        self.places.get(id)
    }
}
