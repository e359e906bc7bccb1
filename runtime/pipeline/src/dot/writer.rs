//! Writes canonical DOT: one statement per line, with every name and value in quotes, so that Graphviz and this parser read the
//! same graph.

use super::quote;
use crate::key::Key;
use glovebox_record::NodeId;
use std::fmt::{self, Write};

/// An element of the graph that can have attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Element<'a> {
    Graph,
    Node(&'a NodeId),
    /// An edge from the first node to the second.
    Edge(&'a NodeId, &'a NodeId),
}

/// The text of a graph that is being written.
pub(crate) struct Writer {
    text: String,
}

impl Writer {
    /// Begins a graph with this name.
    pub(crate) fn new(name: &str) -> Self {
        Self { text: format!("digraph {} {{\n", quote(name)) }
    }

    /// Writes `element [key=value, …];`.
    pub(crate) fn statement<'a>(&mut self, element: Element<'_>, attributes: impl Iterator<Item = (Key<'a>, &'a str)>) {
        self.text.push_str("  ");
        self.text.push_str(&match element {
            Element::Graph => "graph".to_owned(),
            Element::Node(id) => quote(id.as_str()),
            Element::Edge(from, to) => format!("{} -> {}", quote(from.as_str()), quote(to.as_str())),
        });
        let mut separator = " [";
        for (key, value) in attributes {
            write!(self.text, "{separator}{}={}", quote(key.as_str()), quote(value))
                .expect("writing to a string does not fail");
            separator = ", ";
        }
        self.text.push_str(if separator == ", " { "];\n" } else { ";\n" });
    }

    /// Writes a line that is indented for this number of enclosing subgraphs.
    pub(crate) fn line(&mut self, depth: usize, line: impl fmt::Display) {
        self.text.extend(std::iter::repeat_n("  ", depth + 1));
        writeln!(self.text, "{line}").expect("writing to a string does not fail");
    }

    /// Closes the graph and returns the text.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("}\n");
        self.text
    }
}
