//! A settled graph as data: created from a pipeline, parsed from JSON, and written as canonical DOT.
//!
//! Attribute values are strings, as in `glovebox graph --format json`. The JSON comes from a plugin, so unknown fields
//! are errors, and [`agree`] compares the parsed pipeline with the plugin's graph.

use crate::dot::{Element, Writer};
use crate::graph::{GraphFile, SCHEMA_VERSION, to_json};
use crate::hash::HashMap;
use crate::ir::{Node, NodeId, Pipeline};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Keys of a node that are not attributes.
pub(super) const NODE_KEYS: [&str; 2] = ["id", "handler"];
/// Keys of an edge that are not attributes.
pub(super) const EDGE_KEYS: [&str; 2] = ["from", "to"];

/// A graph with final values. It has no subgraphs: their defaults and classes are part of the nodes. Drawings take the boxes from
/// the original pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettledGraph {
    /// Version of this format, which is also that of [`GraphFile`].
    pub schema_version: u32,
    /// Name of the graph.
    pub name: String,
    /// Attributes of the graph.
    pub attributes: BTreeMap<String, String>,
    /// Nodes in order: `id`, `shape`, `handler`, and every attribute of the node.
    pub nodes: Vec<BTreeMap<String, String>>,
    /// Edges in order: `from`, `to`, and every attribute of the edge.
    pub edges: Vec<BTreeMap<String, String>>,
}

/// The JSON form of a plugin's graph.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    schema_version: Option<u32>,
    name: String,
    attributes: BTreeMap<String, String>,
    nodes: Vec<BTreeMap<String, String>>,
    edges: Vec<BTreeMap<String, String>>,
}

impl SettledGraph {
    /// Converts a pipeline, with its final goal and prompts.
    pub fn from_pipeline(pipeline: &Pipeline) -> Self {
        let mut attributes = object(&[], &pipeline.attributes);
        if !pipeline.goal.is_empty() {
            attributes.insert(key::GOAL.as_str().to_owned(), pipeline.goal.clone());
        }
        let edge = |edge: &crate::ir::Edge| {
            object(&[("from", edge.from.as_str()), ("to", edge.to.as_str())], &edge.attributes)
        };
        Self {
            schema_version: SCHEMA_VERSION,
            name: pipeline.name.clone(),
            attributes,
            nodes: pipeline.nodes.iter().map(settled_node).collect(),
            edges: pipeline.edges.iter().map(edge).collect(),
        }
    }

    /// Parses a graph from JSON.
    ///
    /// # Errors
    /// Returns the first mistake. Its text may quote the input.
    pub fn parse(text: &str) -> Result<Self, String> {
        let answer: Answer = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(version) = answer.schema_version.filter(|version| *version != SCHEMA_VERSION) {
            return Err(format!("`schema_version` is {version}, expected {SCHEMA_VERSION}"));
        }
        for (index, node) in answer.nodes.iter().enumerate() {
            if !node.contains_key("id") {
                return Err(format!("node {index} has no `id`"));
            }
        }
        for (index, edge) in answer.edges.iter().enumerate() {
            if !EDGE_KEYS.iter().all(|key| edge.contains_key(*key)) {
                return Err(format!("edge {index} has no `from` or no `to`"));
            }
        }
        let Answer { schema_version: _, name, attributes, nodes, edges } = answer;
        Ok(Self { schema_version: SCHEMA_VERSION, name, attributes, nodes, edges })
    }

    /// Converts a pipeline with its subgraphs. The result is what `glovebox graph --format json` prints, but with final values
    /// and without `layout`.
    pub fn with_subgraphs(pipeline: &Pipeline) -> GraphFile {
        let Self { name, attributes, nodes, edges, .. } = Self::from_pipeline(pipeline);
        GraphFile { name, attributes, nodes, edges, ..to_json(pipeline) }
    }
}

fn settled_node(node: &Node) -> BTreeMap<String, String> {
    let own = [("id", node.id.as_str()), ("shape", &node.shape), ("handler", node.handler.name())];
    let mut settled = object(&own, &node.attributes);
    let written = settled.get(key::PROMPT.as_str()).is_some_and(|prompt| !prompt.trim().is_empty());
    // A prompt that equals the label is stored only if the file sets it.
    if let Some(prompt) = node.prompt.as_ref().filter(|prompt| written || **prompt != node.label) {
        settled.insert(key::PROMPT.as_str().to_owned(), prompt.to_string());
    }
    if let Some(schema) = &node.agent.output_schema {
        settled.insert(key::OUTPUT_SCHEMA.to_string(), schema.text().to_owned());
    }
    settled
}

fn object(own: &[(&str, &str)], attributes: &Attributes) -> BTreeMap<String, String> {
    let given = attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string()));
    let own = own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    given.chain(own).collect()
}

/// Writes the canonical DOT of a plugin's graph. An attribute with a key such as `id` is not in that graph, because the
/// key has another meaning in the JSON. So the attribute keeps its value from `before`.
pub(super) fn to_text(graph: &SettledGraph, before: &Pipeline) -> String {
    let mut writer = Writer::new(&graph.name);
    if !graph.attributes.is_empty() {
        writer.statement(Element::Graph, pairs(&graph.attributes, &[]));
    }
    let nodes: HashMap<&str, &Node> = before.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    for node in &graph.nodes {
        let id = NodeId::new(node["id"].as_str());
        let kept = nodes.get(id.as_str()).map(|node| &node.attributes);
        writer.statement(Element::Node(&id), pairs(node, &NODE_KEYS).chain(unseen(kept, &NODE_KEYS)));
    }
    let mut known = super::relocate::Ends::new(before);
    for edge in &graph.edges {
        let [from, to] = EDGE_KEYS.map(|key| NodeId::new(edge[key].as_str()));
        let kept = known.next(&from, &to).map(|edge| &edge.attributes);
        writer.statement(Element::Edge(&from, &to), pairs(edge, &EDGE_KEYS).chain(unseen(kept, &EDGE_KEYS)));
    }
    writer.finish()
}

fn pairs<'a>(
    attributes: &'a BTreeMap<String, String>,
    but: &'static [&'static str],
) -> impl Iterator<Item = (Key<'a>, &'a str)> {
    let all = attributes.iter().filter(|(key, _)| !but.contains(&key.as_str()));
    all.map(|(key, value)| (Key::new(key), value.as_str()))
}

fn unseen<'a>(
    attributes: Option<&'a Attributes>,
    keys: &'static [&'static str],
) -> impl Iterator<Item = (Key<'a>, &'a str)> {
    let all = keys.iter().map(|key| Key::new(key)).filter_map(move |key| Some((key, attributes?.get(key)?)));
    all.map(|(key, attribute)| (key, attribute.value.as_str()))
}

/// Compares a plugin's graph with the pipeline that was parsed from its text. The error names the first value that was
/// lost.
pub(super) fn agree(answer: &SettledGraph, read: &Pipeline) -> Result<(), String> {
    let ids = read.nodes.iter().map(|node| node.id.as_str());
    if answer.name != read.name || !ids.eq(answer.nodes.iter().map(|node| node["id"].as_str())) {
        return Err("DOT cannot express the graph's name or its nodes, or a node occurs twice".to_owned());
    }
    let ends = read.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str()));
    if !ends.eq(answer.edges.iter().map(|edge| (edge["from"].as_str(), edge["to"].as_str()))) {
        return Err("DOT cannot express the graph's edges".to_owned());
    }
    same(&answer.attributes, &read.attributes, &[])
        .map_err(|key| format!("DOT cannot express `{key}` of the graph"))?;
    for (answered, node) in answer.nodes.iter().zip(&read.nodes) {
        let id = node.id.as_str();
        same(answered, &node.attributes, &["id", "handler", "shape", "class"])
            .map_err(|key| format!("DOT cannot express `{key}` of node `{id}`"))?;
        let handler = answered.get("handler").filter(|handler| *handler != node.handler.name());
        if let Some(handler) = handler {
            let is = node.handler.name();
            return Err(format!(
                "node `{id}` has the handler `{handler}`, but its `type` and `shape` select the handler `{is}`: change \
                `type` or `shape`"
            ));
        }
    }
    for (answered, edge) in answer.edges.iter().zip(&read.edges) {
        same(answered, &edge.attributes, &EDGE_KEYS)
            .map_err(|key| format!("DOT cannot express `{key}` of edge `{} -> {}`", edge.from, edge.to))?;
    }
    Ok(())
}

/// Compares attributes, except those in `but`. The error is the first key with another value.
fn same(answered: &BTreeMap<String, String>, read: &Attributes, but: &[&str]) -> Result<(), String> {
    let all = answered.iter().filter(|(key, _)| !but.contains(&key.as_str()));
    let mut lost = all.filter(|(key, value)| {
        read.get(Key::new(key)).map(|attribute| attribute.value.as_str()) != Some(value.as_str())
    });
    lost.next().map_or(Ok(()), |(key, _)| Err(key.clone()))
}
