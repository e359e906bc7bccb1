//! Writes a graph as JSON for programs, and as canonical DOT for Graphviz and for people.
//!
//! Both formats contain the nodes and edges with all their attributes, including defaults. Graphviz accepts the text from
//! [`to_dot`], and this crate parses it to the same graph.

use crate::dot::{Element, Writer, quote};
use crate::hash::HashSet;
use crate::inputs::Inputs;
use crate::ir::{Node, NodeId, Pipeline, Subgraph, Text};
use crate::key::Key;
use crate::keyed::Attributes;
use crate::source::Source;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of [`GraphFile`].
pub const SCHEMA_VERSION: u32 = 1;

/// A pipeline for programs. All values of attributes are strings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GraphFile {
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the graph.
    pub name: String,
    /// Attributes of the graph.
    pub attributes: BTreeMap<String, String>,
    /// Nodes in file order: `id`, `shape`, `handler`, and every attribute of the node.
    pub nodes: Vec<BTreeMap<String, String>>,
    /// Edges in file order: `from`, `to`, and every attribute of the edge.
    pub edges: Vec<BTreeMap<String, String>>,
    /// Subgraphs in file order, an outer subgraph before those inside it; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subgraphs: Vec<SubgraphEntry>,
}

/// A subgraph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SubgraphEntry {
    /// Name of the subgraph; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Label of the subgraph; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Index of the enclosing subgraph; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Names of the nodes that are declared directly in this subgraph, in file order.
    pub nodes: Vec<String>,
}

/// Converts a pipeline to the format for programs.
///
/// An attribute with the key `id`, `from` or `to` does not replace the name of the element.
pub fn to_json(pipeline: &Pipeline) -> GraphFile {
    let nodes = pipeline.nodes.iter().map(|node| {
        let own = [("id", node.id.as_str()), ("shape", &node.shape), ("handler", node.handler.name())];
        object(&own, &node.attributes)
    });
    let edges = pipeline.edges.iter();
    let edges = edges.map(|edge| object(&[("from", edge.from.as_str()), ("to", edge.to.as_str())], &edge.attributes));
    GraphFile {
        schema_version: SCHEMA_VERSION,
        name: pipeline.name.clone(),
        attributes: object(&[], &pipeline.attributes),
        nodes: nodes.collect(),
        edges: edges.collect(),
        subgraphs: pipeline.subgraphs.iter().map(|subgraph| subgraph_entry(pipeline, subgraph)).collect(),
    }
}

fn subgraph_entry(pipeline: &Pipeline, subgraph: &Subgraph) -> SubgraphEntry {
    SubgraphEntry {
        name: subgraph.name.clone(),
        label: subgraph.label.clone(),
        parent: subgraph.parent,
        nodes: subgraph.members.iter().map(|member| pipeline.nodes[*member].id.as_str().to_owned()).collect(),
    }
}

fn object(own: &[(&str, &str)], attributes: &Attributes) -> BTreeMap<String, String> {
    let given = attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string()));
    let own = own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    given.chain(own).collect()
}

/// Returns the pipeline as canonical DOT: one statement per line, every value in quotes, attributes in the order of their keys.
///
/// Subgraphs come last and repeat the names of their nodes. So the nodes keep their order, attributes and classes, and Graphviz
/// draws the boxes of the subgraphs.
pub fn to_dot(pipeline: &Pipeline) -> String {
    let mut writer = Writer::new(&pipeline.name);
    if !pipeline.attributes.is_empty() {
        writer.statement(Element::Graph, pairs(&pipeline.attributes));
    }
    for node in &pipeline.nodes {
        writer.statement(Element::Node(&node.id), pairs(&node.attributes));
    }
    for edge in &pipeline.edges {
        writer.statement(Element::Edge(&edge.from, &edge.to), pairs(&edge.attributes));
    }
    write_subgraphs(&mut writer, pipeline);
    writer.finish()
}

fn pairs(attributes: &Attributes) -> impl Iterator<Item = (Key<'_>, &str)> {
    attributes.iter().map(|(key, attribute)| (key, attribute.value.as_str()))
}

fn write_subgraphs(writer: &mut Writer, pipeline: &Pipeline) {
    let mut open: Vec<usize> = Vec::new();
    for (index, subgraph) in pipeline.subgraphs.iter().enumerate() {
        while open.last().copied() != subgraph.parent && !open.is_empty() {
            open.pop();
            writer.line(open.len(), "}");
        }
        let name = subgraph.name.as_ref().map(|name| format!("{} ", quote(name))).unwrap_or_default();
        writer.line(open.len(), format_args!("subgraph {name}{{"));
        open.push(index);
        // Without a label of its own, Graphviz would give the subgraph the label of the enclosing graph.
        let label = quote(subgraph.label.as_deref().unwrap_or_default());
        writer.line(open.len(), format_args!("graph [\"label\"={label}];"));
        for member in &subgraph.members {
            writer.line(open.len(), format_args!("{};", quote(pipeline.nodes[*member].id.as_str())));
        }
    }
    for depth in (0..open.len()).rev() {
        writer.line(depth, "}");
    }
}

/// Returns the pipeline with an added node for each undeclared name in an edge, so that it can be drawn.
pub fn with_undeclared(mut draft: Pipeline) -> Pipeline {
    let sample = crate::parse(Source::new("digraph g { n }")).lower(&Inputs::default()).pipeline.nodes.pop();
    let Some(sample) = sample else { return draft };
    let mut known: HashSet<&NodeId> = draft.nodes.iter().map(|node| &node.id).collect();
    let named = draft.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    let undeclared: Vec<NodeId> = named.filter(|id| known.insert(id)).cloned().collect();
    draft.nodes.extend(undeclared.into_iter().map(|id| {
        let label = Text::from(format!("{id} (undeclared)").as_str());
        Node { id, label, ..sample.clone() }
    }));
    draft
}
