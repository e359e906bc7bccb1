//! Adds fan-ins that a file leaves out. Another engine needs none: it joins branches at the nearest node to which all
//! branches lead.
//!
//! A parallel node gets a fan-in only if, by the rules of [`crate::parallel`], it has no valid join without the fan-in
//! and has one with it. The rest of the file is unchanged.

use super::reader::Findings;
use crate::diagnostic::Diagnostic;
use crate::dot;
use crate::inputs::Inputs;
use crate::ir::{Edge, Handler, Node, NodeId, Pipeline, Text};
use crate::key;
use crate::parallel::NESTED_MAX;
use crate::source::Source;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Returns the pipeline with a fan-in before each node where the branches of a parallel node meet without a fan-in.
pub(super) fn with_joins(mut pipeline: Pipeline, findings: &mut Findings<'_>) -> Pipeline {
    // An added fan-in can also complete the join of an outer parallel node.
    for _ in 0..NESTED_MAX {
        let parallels = pipeline.nodes.iter().filter(|node| node.handler == Handler::Parallel);
        let faulty = parallels.filter(|parallel| pipeline.region(&parallel.id).is_err());
        let Some((joined, found)) = faulty.filter_map(|parallel| join(&pipeline, parallel)).next() else {
            return pipeline;
        };
        findings.push(found);
        pipeline = joined;
    }
    pipeline
}

/// Returns the pipeline with a fan-in added for one parallel node. `None` if not all of its branches would end at the fan-in.
fn join(pipeline: &Pipeline, parallel: &Node) -> Option<(Pipeline, Diagnostic)> {
    let meeting = pipeline.meeting(&parallel.id).and_then(|meeting| pipeline.node(meeting))?;
    if matches!(meeting.handler, Handler::Start | Handler::Exit | Handler::FanIn(_)) {
        return None;
    }
    let join = unused(pipeline, &parallel.id);
    let inside = inside(pipeline, parallel, &meeting.id);
    let (node, on) = sample()?;
    let mut joined = pipeline.clone();
    joined.index = OnceLock::new();
    for edge in joined.edges.iter_mut().filter(|edge| edge.to == meeting.id) {
        if inside.contains(&edge.from) {
            edge.to.clone_from(&join);
        }
    }
    let label = Text::new(join.as_str());
    let message = format!(
        "the branches of the parallel node `{}` meet at `{}`, which is not a fan-in: Glovebox adds the fan-in `{join}` \
        before it",
        parallel.id, meeting.id
    );
    let help =
        format!("write the fan-in yourself: `{join} [shape=tripleoctagon, merge=all]` and `{join} -> {}`", meeting.id);
    let found =
        Diagnostic::info("parallel_join_added", message, parallel.span).with_node(parallel.id.as_str()).with_help(help);
    let (from_span, to_span, span) = (parallel.span, meeting.span, parallel.span);
    joined.edges.push(Edge { from: join.clone(), to: meeting.id.clone(), from_span, to_span, span, ..on });
    let mut node = Node { id: join, label, span: parallel.span, ..node };
    for key in [key::SHAPE, key::MERGE] {
        node.attributes
            .get_mut(key)
            .into_iter()
            .for_each(|written| (written.key_span, written.span) = (parallel.span, parallel.span));
    }
    joined.nodes.push(node);
    joined.region(&parallel.id).ok()?;
    Some((joined, found))
}

/// Returns the parallel node, and the nodes of its branches before the node where they meet.
fn inside<'p>(pipeline: &'p Pipeline, parallel: &'p Node, meeting: &NodeId) -> BTreeSet<&'p NodeId> {
    let mut inside = BTreeSet::from([&parallel.id]);
    let mut open = vec![&parallel.id];
    while let Some(id) = open.pop() {
        for to in pipeline.outgoing(id).map(|(_, edge)| &edge.to).filter(|to| *to != meeting) {
            if inside.insert(to) {
                open.push(to);
            }
        }
    }
    inside
}

/// Returns a name for the fan-in that no node has.
fn unused(pipeline: &Pipeline, parallel: &NodeId) -> NodeId {
    let named = |number: u32| {
        NodeId::new(if number < 2 { format!("join_{parallel}") } else { format!("join_{parallel}_{number}") })
    };
    (1..).map(named).find(|id| pipeline.node(id).is_none()).unwrap_or_else(|| named(0))
}

/// Returns a fan-in and its outgoing edge, as if a file contained them.
fn sample() -> Option<(Node, Edge)> {
    let text = "digraph g { n [shape=tripleoctagon, merge=all]; n -> m }";
    let source = Source::new(text);
    let (mut lowered, _) = super::lower(source, dot::parse(source).0, &Inputs::default());
    Some((lowered.nodes.pop()?, lowered.edges.pop()?))
}
