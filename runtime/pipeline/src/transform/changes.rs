//! The changes of a transform: added, removed and changed nodes, edges and attributes.
//!
//! The comparison uses settled graphs, so it also lists consequences, such as a model that nodes inherit from the graph. The list is
//! complete; the caller limits what it shows or stores.

use super::graph::{EDGE_KEYS, NODE_KEYS, SettledGraph};
use crate::hash::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The longest value that is printed, bytes.
const VALUE_BYTES_MAX: usize = 120;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeOp {
    /// The element is new.
    Added,
    /// The element is gone.
    Removed,
    /// The attribute has another value, or the graph has another name.
    Changed,
    /// The same elements have another order.
    Reordered,
}

impl ChangeOp {
    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeOp::Added => "added",
            ChangeOp::Removed => "removed",
            ChangeOp::Changed => "changed",
            ChangeOp::Reordered => "reordered",
        }
    }

    /// Parses the word of a record.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Added, Self::Removed, Self::Changed, Self::Reordered].into_iter().find(|op| op.as_str() == word)
    }
}

/// The changed element.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangePlace {
    /// The graph and its attributes.
    Graph,
    /// A node.
    Node(String),
    /// An edge, by its ends.
    Edge(String, String),
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of the change.
    pub op: ChangeOp,
    /// The changed element.
    pub place: ChangePlace,
    /// The attribute; none for the node, the edge or the graph's name itself.
    pub attribute: Option<String>,
    /// The value before.
    pub before: Option<String>,
    /// The value now.
    pub after: Option<String>,
}

impl fmt::Display for ChangePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangePlace::Graph => f.write_str("graph"),
            ChangePlace::Node(id) => write!(f, "node {id}"),
            ChangePlace::Edge(from, to) => write!(f, "edge {from} -> {to}"),
        }
    }
}

/// `+ node build: timeout="5m"`. Cuts long values. The printer must escape control characters.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.op {
            ChangeOp::Added => '+',
            ChangeOp::Removed => '-',
            ChangeOp::Changed | ChangeOp::Reordered => '~',
        };
        write!(f, "{sign} {}", self.place)?;
        if self.op == ChangeOp::Reordered {
            return f.write_str(": another order");
        }
        let Some(value) = self.after.as_ref().or(self.before.as_ref()) else { return Ok(()) };
        write!(f, ": {}=", self.attribute.as_deref().unwrap_or("name"))?;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "{} -> {}", Cut(before), Cut(after)),
            _ => write!(f, "{}", Cut(value)),
        }
    }
}

/// The beginning of a value, in quotes.
struct Cut<'a>(&'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.floor_char_boundary(VALUE_BYTES_MAX);
        let mark = if end < self.0.len() { "…" } else { "" };
        write!(f, "\"{}{mark}\"", &self.0[..end])
    }
}

/// Lists the differences from `before` to `after`: the graph, then nodes, then edges; removed elements last among their kind.
pub fn changes(before: &SettledGraph, after: &SettledGraph) -> Vec<Change> {
    let mut found = ChangeList(Vec::new());
    if before.name != after.name {
        let (before, after) = (Some(before.name.clone()), Some(after.name.clone()));
        found.0.push(Change { op: ChangeOp::Changed, place: ChangePlace::Graph, attribute: None, before, after });
    }
    found.attributes(&ChangePlace::Graph, &before.attributes, &after.attributes, &[]);
    let node = |node: &BTreeMap<String, String>| ChangePlace::Node(node["id"].clone());
    found.parts(&before.nodes, &after.nodes, node, &NODE_KEYS);
    let edge = |edge: &BTreeMap<String, String>| ChangePlace::Edge(edge["from"].clone(), edge["to"].clone());
    found.parts(&before.edges, &after.edges, edge, &EDGE_KEYS);
    found.0
}

struct ChangeList(Vec<Change>);

type Part = BTreeMap<String, String>;

impl ChangeList {
    /// Compares elements of one kind; the order distinguishes elements with the same name.
    fn parts(&mut self, before: &[Part], after: &[Part], place: impl Fn(&Part) -> ChangePlace, keys: &[&str]) {
        let mut known: HashMap<String, VecDeque<(usize, &Part)>> = HashMap::default();
        for (index, part) in before.iter().enumerate() {
            known.entry(place(part).to_string()).or_default().push_back((index, part));
        }
        let (mut last, mut moved) = (None, None);
        for part in after {
            let of = place(part);
            let Some((index, was)) = known.get_mut(&of.to_string()).and_then(VecDeque::pop_front) else {
                self.whole(ChangeOp::Added, &of);
                self.attributes(&of, &Part::new(), part, keys);
                continue;
            };
            if last > Some(index) {
                moved.get_or_insert_with(|| of.clone());
            }
            last = last.max(Some(index));
            self.attributes(&of, was, part, keys);
        }
        let mut gone: Vec<(usize, &Part)> = known.into_values().flatten().collect();
        gone.sort_by_key(|(index, _)| *index);
        gone.iter().for_each(|(_, part)| self.whole(ChangeOp::Removed, &place(part)));
        moved.iter().for_each(|of| self.whole(ChangeOp::Reordered, of));
    }

    fn whole(&mut self, op: ChangeOp, place: &ChangePlace) {
        self.0.push(Change { op, place: place.clone(), attribute: None, before: None, after: None });
    }

    fn attributes(&mut self, place: &ChangePlace, before: &Part, after: &Part, but: &[&str]) {
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !but.contains(&key.as_str())) {
            let (was, is) = (before.get(key), after.get(key));
            let op = match (was, is) {
                (None, Some(_)) => ChangeOp::Added,
                (Some(_), None) => ChangeOp::Removed,
                (Some(was), Some(is)) if was != is => ChangeOp::Changed,
                _ => continue,
            };
            let (before, after) = (was.cloned(), is.cloned());
            self.0.push(Change { op, place: place.clone(), attribute: Some(key.clone()), before, after });
        }
    }
}
