//! Output formats of a graph: JSON for programs, canonical DOT for Graphviz and for people.
//!
//! Both contain the nodes and edges with all their attributes, defaults included. [`to_dot`] writes text that Graphviz accepts and that this
//! crate parses to the same graph.

use crate::dot::quote;
use crate::ir::{Pipeline, Subgraph};
use crate::keyed::Attributes;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Version of [`GraphFile`].
pub const SCHEMA_VERSION: u32 = 1;

/// A pipeline for programs. Attribute values are strings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GraphFile {
    /// Version of this vocabulary.
    pub schema_version: u32,
    /// The graph's name.
    pub name: String,
    /// Graph attributes.
    pub attributes: BTreeMap<String, String>,
    /// Nodes in file order: `id`, `shape`, `handler`, and every attribute of the node.
    pub nodes: Vec<BTreeMap<String, String>>,
    /// Edges in file order: `from`, `to`, and every attribute of the edge.
    pub edges: Vec<BTreeMap<String, String>>,
    /// Subgraphs in file order, an outer one before those in it; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subgraphs: Vec<SubgraphEntry>,
}

/// A subgraph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SubgraphEntry {
    /// Its name; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its label; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The index of the subgraph around it; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// The nodes that are declared directly in it, in file order.
    pub nodes: Vec<String>,
}

/// Writes a pipeline for programs.
///
/// An attribute with the key `id`, `from` or `to` does not replace the name.
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

/// Canonical DOT: one statement per line, every value quoted, attributes in order of their keys.
///
/// Subgraphs come last and name their nodes again. So the nodes keep their order, attributes and classes, and Graphviz draws the boxes.
pub fn to_dot(pipeline: &Pipeline) -> String {
    let mut text = format!("digraph {} {{\n", quote(&pipeline.name));
    if !pipeline.attributes.is_empty() {
        write_statement(&mut text, "graph", &pipeline.attributes);
    }
    for node in &pipeline.nodes {
        write_statement(&mut text, &quote(node.id.as_str()), &node.attributes);
    }
    for edge in &pipeline.edges {
        write_statement(
            &mut text,
            &format!("{} -> {}", quote(edge.from.as_str()), quote(edge.to.as_str())),
            &edge.attributes,
        );
    }
    write_subgraphs(&mut text, pipeline);
    text.push_str("}\n");
    text
}

fn write_subgraphs(text: &mut String, pipeline: &Pipeline) {
    let mut open: Vec<usize> = Vec::new();
    for (index, subgraph) in pipeline.subgraphs.iter().enumerate() {
        while open.last().copied() != subgraph.parent && !open.is_empty() {
            open.pop();
            write_line(text, open.len(), "}");
        }
        let name = subgraph.name.as_ref().map(|name| format!("{} ", quote(name))).unwrap_or_default();
        write_line(text, open.len(), &format!("subgraph {name}{{"));
        open.push(index);
        // Graphviz would give a subgraph without a label the label of the graph around it.
        let label = quote(subgraph.label.as_deref().unwrap_or_default());
        write_line(text, open.len(), &format!("graph [\"label\"={label}];"));
        for member in &subgraph.members {
            write_line(text, open.len(), &format!("{};", quote(pipeline.nodes[*member].id.as_str())));
        }
    }
    for depth in (0..open.len()).rev() {
        write_line(text, depth, "}");
    }
}

fn write_line(text: &mut String, depth: usize, line: &str) {
    text.extend(std::iter::repeat_n("  ", depth + 1));
    text.push_str(line);
    text.push('\n');
}

fn write_statement(text: &mut String, subject: &str, attributes: &Attributes) {
    text.push_str("  ");
    text.push_str(subject);
    for (index, (key, attribute)) in attributes.iter().enumerate() {
        let separator = if index == 0 { " [" } else { ", " };
        write!(text, "{separator}{}={}", quote(key), quote(&attribute.value))
            .expect("writing to a string does not fail");
    }
    text.push_str(if attributes.is_empty() { ";\n" } else { "];\n" });
}
