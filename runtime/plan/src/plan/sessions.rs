//! Sessions in a printed plan: the fidelity and the thread of each agent stage, by incoming edge.

use super::Plan;
use glovebox_pipeline::ir::{Edge, EdgeIndex, Node, NodeId, Pipeline, SessionSettings};
use glovebox_record::{Fidelity, ThreadId};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One session of a node, with the incoming edges that give it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanSession {
    /// The nodes from which an edge with this session leads here. Empty for the session of all other edges.
    pub from: Vec<String>,
    /// How much of the earlier stages the model gets.
    pub fidelity: Fidelity,
    /// The thread that the stage continues with `full`. Absent if it continues the conversation of the previous agent stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
}

/// The edges that lead to each node. `None` if no attribute of the pipeline sets a fidelity, because all sessions are
/// then `compact`.
pub(super) struct EdgesInto<'a>(Option<BTreeMap<&'a NodeId, Vec<(EdgeIndex, &'a Edge)>>>);

impl<'a> EdgesInto<'a> {
    pub(super) fn of_pipeline(pipeline: &'a Pipeline) -> Self {
        let says = |session: &SessionSettings| session.fidelity.is_some();
        let is_said = says(&pipeline.session)
            || pipeline.nodes.iter().any(|node| says(&node.agent.session))
            || pipeline.edges.iter().any(|edge| says(&edge.session));
        let mut edges: BTreeMap<&NodeId, Vec<(EdgeIndex, &Edge)>> = BTreeMap::new();
        for (index, edge) in pipeline.edges.iter().enumerate().filter(|_| is_said) {
            edges.entry(&edge.to).or_default().push((EdgeIndex(index), edge));
        }
        Self(is_said.then_some(edges))
    }

    fn leading_to(&self, node: &NodeId) -> impl Iterator<Item = (EdgeIndex, &'a Edge)> {
        let found = self.0.as_ref().and_then(|edges| edges.get(node)).map_or(&[][..], Vec::as_slice);
        found.iter().copied()
    }
}

impl fmt::Display for PlanSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fidelity)?;
        match &self.thread {
            Some(thread) => write!(f, ", thread `{thread}`")?,
            None if self.fidelity == Fidelity::Full => f.write_str(", from the agent stage before it")?,
            None => {}
        }
        if self.from.is_empty() { Ok(()) } else { write!(f, ", after {}", self.from.join(", ")) }
    }
}

impl Plan {
    /// Returns the sessions of a node. Empty for a node that asks no model, and if all its sessions have the default
    /// fidelity, `compact`.
    pub(super) fn sessions_of(&self, node: &Node, edges: &EdgesInto<'_>) -> Vec<PlanSession> {
        if edges.0.is_none() || !self.binding(&node.id).is_some_and(|binding| binding.model) {
            return Vec::new();
        }
        let mut sessions = vec![self.session_by(None, node)];
        for (index, edge) in edges.leading_to(&node.id) {
            let found = self.session_by(Some(index), node);
            let is_same = |known: &&mut PlanSession| (known.fidelity, &known.thread) == (found.fidelity, &found.thread);
            match sessions.iter_mut().find(is_same) {
                Some(known) if known.from.is_empty() => {}
                Some(known) => known.from.push(edge.from.to_string()),
                None => sessions.push(PlanSession { from: vec![edge.from.to_string()], ..found }),
            }
        }
        let is_default = |session: &PlanSession| session.fidelity == Fidelity::default();
        if sessions.iter().all(is_default) { Vec::new() } else { sessions }
    }

    fn session_by(&self, edge: Option<EdgeIndex>, node: &Node) -> PlanSession {
        let fidelity = self.pipeline.fidelity(edge, node);
        let thread = self.pipeline.thread(edge, node).filter(|_| fidelity == Fidelity::Full);
        PlanSession { from: Vec::new(), fidelity, thread: thread.cloned() }
    }
}
