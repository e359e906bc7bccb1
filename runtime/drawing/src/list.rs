//! A pipeline as a list for terminals and text files: each node with its edges below it, in file order.
//!
//! The list has one line for each node and each edge, with complete labels and conditions, so it works for any width
//! and any number of nodes. A back edge of the picture is marked `(back)`. Labels are untrusted and reach the list only
//! through `text`.

use super::drawing::{DrawnEdge, DrawnNode, Tone};
use super::layout::{EdgeDirection, Link, edge_directions};
use super::overlay::Overlay;
use super::scene::{EdgeEnds, Parts, title};
use super::text::{counted, excerpt, one_line};
use glovebox_pipeline::ir::{Edge, Pipeline};
use std::fmt::Write;

/// Maximum number of characters of a label or condition. The rest is replaced by `…`.
const TEXT_CHARACTERS_MAX: usize = 400;

/// Writes a pipeline as a list. If a run is given, its progress is included.
pub fn to_list(pipeline: &Pipeline, overlay: Option<&Overlay>) -> String {
    let parts = Parts::new(pipeline, overlay);
    let link = |ends: &EdgeEnds| Link { from: ends.from, to: ends.to, label: None, weight: ends.weight, bundle: 0 };
    let links: Vec<Link> = parts.ends.iter().map(link).collect();
    let directions = edge_directions(parts.nodes.len(), &links, parts.root);
    let mut leaving: Vec<Vec<String>> = vec![Vec::new(); parts.nodes.len()];
    for ((drawn, link), direction) in parts.edges.iter().zip(&links).zip(directions) {
        let edge = drawn.index.map(|index| &pipeline.edges[index]);
        leaving[link.from].push(edge_line(drawn, edge, direction));
    }
    let homes = homes(&parts);
    let mut list = format!(
        "{}: {}, {}\n",
        title(pipeline),
        counted(parts.nodes.len(), "node"),
        counted(parts.edges.len(), "edge")
    );
    for (index, node) in parts.nodes.iter().enumerate() {
        let heading = node_line(node, &pipeline.nodes[index].label, &homes[index]);
        write!(list, "\n{heading}\n{}", leaving[index].concat()).expect("writing to a string does not fail");
    }
    list
}

/// Returns the subgraphs around each node, such as `"Loop A" > "Checks"`. Empty for a node outside of all subgraphs.
fn homes(parts: &Parts) -> Vec<String> {
    let mut homes = vec![String::new(); parts.nodes.len()];
    for (index, cluster) in parts.clusters.iter().enumerate() {
        let around = std::iter::successors(Some(index), |index| parts.clusters[*index].parent);
        let mut titles: Vec<String> = around
            .map(|index| excerpt(&parts.boxes[index].title, TEXT_CHARACTERS_MAX))
            .filter(|title| !title.is_empty())
            .map(|title| quoted(&title))
            .collect();
        titles.reverse();
        cluster.items.iter().for_each(|node| homes[*node] = titles.join(" > "));
    }
    homes
}

/// Returns the beginning of a label on one line. Graphviz's `\l` and `\r` count as line breaks.
fn line(label: &str) -> String {
    excerpt(&label.replace("\\l", " ").replace("\\r", " "), TEXT_CHARACTERS_MAX)
}

/// Quotes a label, so that it cannot imitate the text around it.
fn quoted(label: &str) -> String {
    format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a node with its label, handler, subgraph and progress: `test "Run tests" (tool, in "Loop A")  [fail x2]`.
fn node_line(node: &DrawnNode, label: &str, home: &str) -> String {
    let id = one_line(&node.id);
    let label = match line(label) {
        label if label.is_empty() || label == id => String::new(),
        label => format!(" {}", quoted(&label)),
    };
    let gate = if node.is_gate { ", goal gate" } else { "" };
    let home = if home.is_empty() { String::new() } else { format!(", in {home}") };
    let progress = node.progress.map_or_else(String::new, |(progress, visits)| {
        let times = if visits > 1 { format!(" x{visits}") } else { String::new() };
        format!("  [{}{times}]", progress.as_str())
    });
    format!("{id}{label} ({}{gate}{home}){progress}", node.handler)
}

/// Writes an edge with its label, condition and direction. For a jump, `edge` is `None`. Example:
/// `  -> fix  "Try again"  if outcome=fail  (back)  [taken x2]`.
fn edge_line(drawn: &DrawnEdge, edge: Option<&Edge>, direction: EdgeDirection) -> String {
    let mut text = format!("  -> {}", one_line(&drawn.to));
    if let Some(edge) = edge {
        let label = line(&edge.label);
        if !label.is_empty() {
            text.push_str(&format!("  {}", quoted(&label)));
        }
        if let Some(condition) = &edge.condition {
            text.push_str(&format!("  if {}", excerpt(&condition.text, TEXT_CHARACTERS_MAX)));
        }
    }
    let kind = match drawn.tone {
        Tone::Restart => Some("fresh run"),
        Tone::Jump => Some("jump to a retry target"),
        Tone::Plain | Tone::Success | Tone::Fail => None,
    };
    let direction = match direction {
        EdgeDirection::Forward => None,
        EdgeDirection::Back => Some("back"),
        EdgeDirection::Loop => Some("to itself"),
    };
    let remarks: Vec<&str> = direction.into_iter().chain(kind).collect();
    if !remarks.is_empty() {
        text.push_str(&format!("  ({})", remarks.join(", ")));
    }
    if drawn.taken > 0 {
        text.push_str(&format!("  [taken x{}]", drawn.taken));
    }
    text + "\n"
}
