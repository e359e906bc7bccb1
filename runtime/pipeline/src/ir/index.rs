//! An index of nodes and their edges by node id, built at the first lookup.
//!
//! A run looks up nodes at every step. `check` never does, so it does not spend time on the index. The nodes and edges of a
//! lowered pipeline never change.

use super::{Edge, HandlerKind, Node, NodeId};
use crate::hash::HashMap;

/// Nodes and their outgoing edges, by node id.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    places: HashMap<NodeId, Place>,
    /// True if some node runs a model's plan of checks.
    pub(crate) has_verification: bool,
}

/// The indices of a node and of its outgoing edges, in file order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// `None` for an id that occurs only in edges.
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
