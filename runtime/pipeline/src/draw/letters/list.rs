//! A pipeline as a list: each node with what it is, below it where its edges lead.

use super::Letters;
use crate::draw::drawing::{DrawnEdge, DrawnNode, Role};
use crate::draw::scene::Parts;
use crate::draw::text::one_line;
use std::fmt::Write;

/// Writes the list.
pub(super) fn list(title: &str, parts: &Parts, letters: Letters) -> String {
    let mut leaving: Vec<Vec<&DrawnEdge>> = vec![Vec::new(); parts.nodes.len()];
    for (edge, (from, ..)) in parts.edges.iter().zip(&parts.ends) {
        leaving[*from].push(edge);
    }
    let arrow = if letters == Letters::Ascii { "->" } else { "→" };
    let mut text = format!("{title}: {} nodes, {} edges\n", parts.nodes.len(), parts.edges.len());
    for (node, edges) in parts.nodes.iter().zip(leaving) {
        text.push('\n');
        text.push_str(&heading(node));
        for edge in edges {
            writeln!(text, "  {arrow} {}{}", one_line(&edge.to), remark(edge))
                .expect("writing to a string does not fail");
        }
    }
    text
}

fn heading(node: &DrawnNode) -> String {
    let label = joined(node.lines.iter().filter(|line| line.role == Role::Label).map(|line| line.text.as_str()));
    let id = one_line(&node.id);
    let label = if label == id { String::new() } else { format!(" \"{label}\"") };
    let gate = if node.is_gate { ", goal gate" } else { "" };
    let standing = node.standing.map_or_else(String::new, |(standing, visits)| {
        let times = if visits > 1 { format!(" x{visits}") } else { String::new() };
        format!(" [{}{times}]", standing.as_str())
    });
    format!("{id}{label} ({}{gate}){standing}\n", node.handler)
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
