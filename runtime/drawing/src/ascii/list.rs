//! A pipeline as a list: each node with what it is, below it where its edges lead.

use super::CharSet;
use crate::drawing::{DrawnEdge, DrawnNode, Role};
use crate::scene::Parts;
use crate::text::{counted, one_line};
use std::fmt::Write;

/// Writes the list.
pub(super) fn list(title: &str, parts: &Parts, char_set: CharSet) -> String {
    let mut leaving: Vec<Vec<&DrawnEdge>> = vec![Vec::new(); parts.nodes.len()];
    for (edge, (from, ..)) in parts.edges.iter().zip(&parts.ends) {
        leaving[*from].push(edge);
    }
    let arrow = if char_set == CharSet::Ascii { "->" } else { "→" };
    let mut text = format!("{title}: {}, {}\n", counted(parts.nodes.len(), "node"), counted(parts.edges.len(), "edge"));
    let mut homes: Vec<&str> = vec![""; parts.nodes.len()];
    for (drawn, cluster) in parts.boxes.iter().zip(&parts.clusters) {
        cluster.items.iter().for_each(|node| homes[*node] = &drawn.title);
    }
    for ((node, edges), home) in parts.nodes.iter().zip(leaving).zip(homes) {
        text.push('\n');
        text.push_str(&heading(node, home));
        for edge in edges {
            writeln!(text, "  {arrow} {}{}", one_line(&edge.to), remark(edge))
                .expect("writing to a string does not fail");
        }
    }
    text
}

/// What a node is; `home` is the subgraph it stands in, empty for none.
fn heading(node: &DrawnNode, home: &str) -> String {
    let label = joined(node.lines.iter().filter(|line| line.role == Role::Label).map(|line| line.text.as_str()));
    let id = one_line(&node.id);
    let label = if label == id { String::new() } else { format!(" \"{label}\"") };
    let gate = if node.is_gate { ", goal gate" } else { "" };
    let progress = node.progress.map_or_else(String::new, |(progress, visits)| {
        let times = if visits > 1 { format!(" x{visits}") } else { String::new() };
        format!(" [{}{times}]", progress.as_str())
    });
    let home = if home.is_empty() { String::new() } else { format!(", in {home}") };
    format!("{id}{label} ({}{gate}{home}){progress}\n", node.handler)
}

fn remark(edge: &DrawnEdge) -> String {
    let lines = edge.label.iter().flat_map(|label| &label.lines);
    let said = joined(lines.map(|line| line.text.as_str()));
    let said = if said.is_empty() { said } else { format!("  {said}") };
    let taken = if edge.taken > 0 { format!("  [taken x{}]", edge.taken) } else { String::new() };
    said + &taken
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.collect::<Vec<_>>().join(" ")
}
