//! The graph as others want it: JSON for programs, canonical DOT for Graphviz and for people.
//!
//! Both show the nodes and edges with the attributes that hold for them, defaults spread out. [`to_dot`] writes text that
//! Graphviz accepts and that this crate reads back to the same graph.

use crate::dot::quote;
use crate::ir::Pipeline;
use crate::keyed::Attributes;
use serde_json::{Map, Value};
use std::fmt::Write;

/// `{"name":…,"attributes":{…},"nodes":[{"id":…,…}],"edges":[{"from":…,"to":…,…}]}`; attribute values are strings.
///
/// An attribute that is itself called `id`, `from` or `to` does not replace the name of that key.
pub fn to_json(pipeline: &Pipeline) -> Value {
    let nodes = pipeline.nodes.iter().map(|node| {
        let own = [("id", node.id.as_str()), ("shape", &node.shape), ("handler", node.handler.name())];
        object(&own, &node.attributes)
    });
    let edges = pipeline
        .edges
        .iter()
        .map(|edge| object(&[("from", edge.from.as_str()), ("to", edge.to.as_str())], &edge.attributes));
    let mut graph = Map::new();
    graph.insert("name".to_owned(), Value::from(pipeline.name.as_str()));
    graph.insert("attributes".to_owned(), object(&[], &pipeline.attributes));
    graph.insert("nodes".to_owned(), Value::Array(nodes.collect()));
    graph.insert("edges".to_owned(), Value::Array(edges.collect()));
    Value::Object(graph)
}

fn object(own: &[(&str, &str)], attributes: &Attributes) -> Value {
    let given = attributes.iter().map(|(key, attribute)| (key.to_string(), Value::from(attribute.value.as_str())));
    let mut object: Map<String, Value> = given.collect();
    for (key, value) in own {
        object.insert((*key).to_owned(), Value::from(*value));
    }
    Value::Object(object)
}

/// Canonical DOT: one statement for each line, every value quoted, attributes in order of their keys.
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
    text.push_str("}\n");
    text
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
