//! Selects the earlier context that a stage's model gets: the fidelity, and the thread of a stage with `full`
//! (spec §5.4).
//!
//! The fidelity comes from the incoming edge, the node, or the graph, in this order. The default is `compact`. The
//! thread comes from the node, the edge, the graph, or the class of the subgraph that contains the node, in this order.
//! By default the stage continues the conversation of the previous stage that asked a model. This module does not know
//! the conversations.

use crate::ir::{Edge, EdgeIndex, Node, Pipeline};
use glovebox_record::{Fidelity, ThreadId};

impl Pipeline {
    /// Returns the fidelity of a node that was reached along `edge`. Pass `None` for a jump to a retry target and for
    /// the start.
    pub fn fidelity(&self, edge: Option<EdgeIndex>, node: &Node) -> Fidelity {
        let of_edge = self.edge_into(edge, node).and_then(|edge| edge.session.fidelity);
        of_edge.or(node.agent.session.fidelity).or(self.session.fidelity).unwrap_or_default()
    }

    /// Returns the thread of a node with `full` that was reached along `edge`. `None` if the node continues the previous stage
    /// that asked a model.
    pub fn thread<'a>(&'a self, edge: Option<EdgeIndex>, node: &'a Node) -> Option<&'a ThreadId> {
        let of_edge = self.edge_into(edge, node).and_then(|edge| edge.session.thread.as_ref());
        let of_graph = self.session.thread.as_ref().or(node.agent.session.class.as_ref());
        node.agent.session.thread.as_ref().or(of_edge).or(of_graph)
    }

    fn edge_into(&self, edge: Option<EdgeIndex>, node: &Node) -> Option<&Edge> {
        self.edges.get(edge?.0).filter(|edge| edge.to == node.id)
    }
}
