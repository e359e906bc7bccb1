//! Selects the earlier context of a stage's model: the mode, and the thread of a `full` stage (spec §5.4).
//!
//! Precedence of the mode: incoming edge, node, graph, `compact`. Of the thread: node, edge, graph, class of the subgraph around the
//! node, the previous stage that asked a model. Knows nothing of conversations.

use crate::ir::{Edge, EdgeIndex, Node, Pipeline};
use glovebox_record::{Fidelity, ThreadId};

impl Pipeline {
    /// The mode of a node that was reached along an edge. The edge is none for a jump to a retry target and for the start.
    pub fn fidelity(&self, edge: Option<EdgeIndex>, node: &Node) -> Fidelity {
        let of_edge = self.edge_into(edge, node).and_then(|edge| edge.session.fidelity);
        of_edge.or(node.agent.session.fidelity).or(self.session.fidelity).unwrap_or_default()
    }

    /// The thread of a `full` node that was reached along an edge; none if it continues the previous stage that asked a model.
    pub fn thread<'a>(&'a self, edge: Option<EdgeIndex>, node: &'a Node) -> Option<&'a ThreadId> {
        let of_edge = self.edge_into(edge, node).and_then(|edge| edge.session.thread.as_ref());
        let of_graph = self.session.thread.as_ref().or(node.agent.session.class.as_ref());
        node.agent.session.thread.as_ref().or(of_edge).or(of_graph)
    }

    fn edge_into(&self, edge: Option<EdgeIndex>, node: &Node) -> Option<&Edge> {
        self.edges.get(edge?.0).filter(|edge| edge.to == node.id)
    }
}
