//! Gives a pipeline that was parsed from another text its spans in the user's file.
//!
//! Nodes are matched by their id. Edges are matched by their source, their target, and their order among the edges
//! between these two nodes. A matched element gets its span in the user's file. An attribute keeps its span if its
//! value has not changed. A new element gets the span of its parent, or that of the graph's name.

use crate::hash::HashMap;
use crate::ir::{Edge, Node, NodeId, Pipeline, Subgraph};
use crate::key::Key;
use crate::keyed::Attributes;
use crate::source::Source;
use crate::span::Span;
use std::collections::{BTreeMap, VecDeque};

/// The edges of a pipeline by source and target. Each edge is returned once.
pub(super) struct Ends<'a>(HashMap<&'a NodeId, HashMap<&'a NodeId, VecDeque<&'a Edge>>>);

impl<'a> Ends<'a> {
    pub(super) fn new(pipeline: &'a Pipeline) -> Self {
        let mut ends: HashMap<_, HashMap<_, VecDeque<&Edge>>> = HashMap::default();
        for edge in &pipeline.edges {
            ends.entry(&edge.from).or_default().entry(&edge.to).or_default().push_back(edge);
        }
        Self(ends)
    }

    /// Returns the next edge between these two nodes.
    pub(super) fn next(&mut self, from: &NodeId, to: &NodeId) -> Option<&'a Edge> {
        self.0.get_mut(from)?.get_mut(to)?.pop_front()
    }
}

/// Gives all elements of a pipeline their spans in the original.
pub(super) fn relocate(pipeline: &mut Pipeline, original: &Pipeline) {
    pipeline.span = original.span;
    relocate_attributes(&mut pipeline.attributes, Some(&original.attributes), original.span);
    let nodes: HashMap<&str, &Node> = original.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    for node in &mut pipeline.nodes {
        let before = nodes.get(node.id.as_str());
        node.span = before.map_or(original.span, |before| before.span);
        relocate_attributes(&mut node.attributes, before.map(|before| &before.attributes), node.span);
    }
    pipeline.subgraphs = subgraphs(pipeline, original);
    let mut ends = Ends::new(original);
    for edge in &mut pipeline.edges {
        let before = ends.next(&edge.from, &edge.to);
        let end = |id: &str| nodes.get(id).map_or(original.span, |node| node.span);
        edge.from_span = before.map_or_else(|| end(edge.from.as_str()), |before| before.from_span);
        edge.to_span = before.map_or_else(|| end(edge.to.as_str()), |before| before.to_span);
        edge.span = before.map_or(edge.from_span, |before| before.span);
        relocate_attributes(&mut edge.attributes, before.map(|before| &before.attributes), edge.span);
        let known = before.and_then(|before| before.condition.as_ref());
        match (&mut edge.condition, known) {
            (Some(condition), Some(known)) if condition.text == known.text => *condition = known.clone(),
            (Some(condition), _) => condition.clauses.iter_mut().for_each(|clause| clause.span = edge.span),
            (None, _) => {}
        }
    }
}

/// Gives nodes that come from other files, and their outgoing edges, the spans of the nodes that name these files.
/// `spans` maps the id of each inserted node to that span.
pub(crate) fn place(pipeline: &mut Pipeline, spans: &BTreeMap<NodeId, Span>) {
    for node in &mut pipeline.nodes {
        let Some(span) = spans.get(&node.id) else { continue };
        node.span = *span;
        relocate_attributes(&mut node.attributes, None, *span);
    }
    for edge in &mut pipeline.edges {
        let Some(span) = spans.get(&edge.from) else { continue };
        (edge.from_span, edge.to_span, edge.span) = (*span, *span, *span);
        relocate_attributes(&mut edge.attributes, None, *span);
        edge.condition.iter_mut().flat_map(|condition| &mut condition.clauses).for_each(|clause| clause.span = *span);
    }
}

/// Returns the subgraphs of the original, with those of their nodes that still exist.
fn subgraphs(pipeline: &Pipeline, original: &Pipeline) -> Vec<Subgraph> {
    let numbers: HashMap<&str, usize> =
        pipeline.nodes.iter().enumerate().map(|(number, node)| (node.id.as_str(), number)).collect();
    let kept = original.subgraphs.iter().map(|subgraph| {
        let ids = subgraph.members.iter().map(|member| original.nodes[*member].id.as_str());
        let mut members: Vec<usize> = ids.filter_map(|id| numbers.get(id).copied()).collect();
        members.sort_unstable();
        Subgraph { members, ..subgraph.clone() }
    });
    kept.collect()
}

fn relocate_attributes(attributes: &mut Attributes, before: Option<&Attributes>, whole: Span) {
    for (key, attribute) in attributes.iter_mut() {
        let before = before.and_then(|before| before.get(key)).filter(|before| before.value == attribute.value);
        (attribute.key_span, attribute.span) = before.map_or((whole, whole), |before| (before.key_span, before.span));
    }
}

/// For each statement of a canonical text: its start, and the spans of its attributes.
pub(super) struct Statements {
    lines: Vec<usize>,
    has_graph: bool,
    nodes: Vec<Vec<(String, Span)>>,
    edges: Vec<Vec<(String, Span)>>,
}

impl Statements {
    pub(super) fn new(text: Source<'_>, read: &Pipeline) -> Self {
        let keyed = |attributes: &Attributes| {
            let all = attributes.iter().map(|(key, value)| (key.to_string(), value.key_span.to(value.span)));
            all.collect()
        };
        Self {
            lines: std::iter::once(0).chain(text.text().match_indices('\n').map(|(at, _)| at + 1)).collect(),
            has_graph: !read.attributes.is_empty(),
            nodes: read.nodes.iter().map(|node| keyed(&node.attributes)).collect(),
            edges: read.edges.iter().map(|edge| keyed(&edge.attributes)).collect(),
        }
    }

    /// Converts a span in the canonical text to a span in the user's file. `pipeline` must be relocated already.
    pub(super) fn original_span(&self, span: Span, pipeline: &Pipeline) -> Span {
        let line = self.lines.partition_point(|start| *start <= span.start) - 1;
        let Some(number) = line.checked_sub(1 + usize::from(self.has_graph)) else { return pipeline.span };
        if let (Some(node), Some(keys)) = (pipeline.nodes.get(number), self.nodes.get(number)) {
            return attribute_at(keys, span, &node.attributes).unwrap_or(node.span);
        }
        let number = number.saturating_sub(pipeline.nodes.len());
        match (pipeline.edges.get(number), self.edges.get(number)) {
            (Some(edge), Some(keys)) => attribute_at(keys, span, &edge.attributes).unwrap_or(edge.span),
            _ => pipeline.span,
        }
    }
}

fn attribute_at(keys: &[(String, Span)], span: Span, relocated: &Attributes) -> Option<Span> {
    let (key, _) = keys.iter().find(|(_, whole)| (whole.start..whole.end).contains(&span.start))?;
    relocated.get(Key::new(key)).map(|attribute| attribute.span)
}
