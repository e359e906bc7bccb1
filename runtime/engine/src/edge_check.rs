//! Asks the operator's policies about each edge before the run takes it.
//!
//! The answer depends only on the pipeline and the state, and a policy has no imports, so the same journal gives the same answer. A
//! refused edge ends its branch with a failure, which is recorded in place of the edge. An edge in the journal is not judged again.

use glovebox_host::judgement::{JudgedEdge, PolicySet, Question};
use glovebox_journal::event::{BranchId, Event, NodeId};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::keyed::Attributes;
use glovebox_record::{Failure, FailureClass, FailureCode, Status};
use glovebox_state::decide::refuse_edge;
use glovebox_state::run_state::{Branch, RunState};
use serde_json::{Map, Value};

/// Judges the edges of a run.
#[derive(Clone, Copy)]
pub struct EdgeCheck<'p>(pub &'p PolicySet);

/// An edge that follows from a decision.
struct NextEdge<'e> {
    from: &'e NodeId,
    to: &'e NodeId,
    how: &'e str,
    index: Option<usize>,
}

impl EdgeCheck<'_> {
    /// Returns the decisions, or the end of the branch if a policy refuses an edge of one of them.
    pub(crate) fn settle(self, pipeline: &Pipeline, state: &RunState, events: Vec<Event>) -> Vec<Event> {
        if self.0.is_empty() {
            return events;
        }
        let main = BranchId::main();
        let refused = events.iter().find_map(|event| {
            let branch = event.branch().unwrap_or(&main);
            edges(event)
                .into_iter()
                .find_map(|edge| Some((branch, self.refusal(pipeline, state.branch(branch), edge)?)))
        });
        match refused {
            Some((branch, failure)) => refuse_edge(pipeline, state, branch, failure),
            None => events,
        }
    }

    fn refusal(self, pipeline: &Pipeline, branch: &Branch, edge: NextEdge<'_>) -> Option<Failure> {
        let NextEdge { from, to, how, index } = edge;
        let attributes = index.and_then(|index| pipeline.edges.get(index)).map(|edge| texts(&edge.attributes));
        let target = pipeline.node(to).map(|node| texts(&node.attributes));
        let succeeded = |node: &&NodeId| branch.status(node) == Some(Status::Success);
        let judged = JudgedEdge {
            from: from.as_str(),
            to: to.as_str(),
            status: branch.previous.status.as_str(),
            how,
            attributes: attributes.unwrap_or_default(),
            target: target.unwrap_or_default(),
            succeeded: branch.nodes.keys().filter(succeeded).map(NodeId::as_str).collect(),
        };
        let denial = self.0.judge(&Question::from(&judged)).err()?;
        let reason = format!("the edge `{from}` -> `{to}` is not taken: {denial}");
        Some(Failure::new(FailureClass::Scope, FailureCode::POLICY_EDGE, reason))
    }
}

/// Returns the edges that a run takes with an event: the chosen one, or those to the branches of a parallel node.
fn edges(event: &Event) -> Vec<NextEdge<'_>> {
    match event {
        Event::RouteTaken(route) => {
            vec![NextEdge { from: &route.from, to: &route.to, how: &route.how, index: route.edge }]
        }
        Event::ParallelStarted(started) => {
            let child = started.children.iter();
            child
                .map(|child| NextEdge { from: &started.node, to: &child.to, how: "parallel", index: Some(child.edge) })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn texts(attributes: &Attributes) -> Map<String, Value> {
    attributes.iter().map(|(key, attribute)| (key.to_string(), Value::from(attribute.value.to_string()))).collect()
}
