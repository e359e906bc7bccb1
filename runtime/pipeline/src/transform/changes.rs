//! The changes of a transform: added, removed and changed nodes, edges and attributes.
//!
//! The comparison uses settled graphs, so it also lists indirect changes, such as a model that nodes inherit from the graph. The
//! list is complete; the caller limits what it shows or stores.

use super::graph::{EDGE_KEYS, NODE_KEYS, SettledGraph};
use crate::hash::HashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Maximum length of a value that is printed, in bytes.
const VALUE_BYTES_MAX: usize = 120;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GraphChangeOp {
    /// The element was added.
    Added,
    /// The element was removed.
    Removed,
    /// The value of the attribute, or the name of the graph, was changed.
    Changed,
    /// The order of the elements was changed.
    Reordered,
}

/// The element that was changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "PlaceFields", into = "PlaceFields")]
pub enum ChangePlace {
    /// The graph and its attributes.
    Graph,
    /// A node.
    Node(String),
    /// An edge, by its source and target.
    Edge(String, String),
}

/// A [`ChangePlace`] in a record. If both fields are absent, the place is the graph.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PlaceFields {
    /// Id of the node; absent unless the element is a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Source and target of the edge; absent unless the element is an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edge: Option<(String, String)>,
}

/// One change of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphChange {
    /// Kind of the change.
    pub op: GraphChangeOp,
    /// The element that was changed.
    #[serde(flatten)]
    #[schemars(with = "PlaceFields")]
    pub place: ChangePlace,
    /// Key of the attribute; absent if the change is about a whole node or edge, or about the graph's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// Value before the change. A record contains its first 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change. A record contains its first 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl From<PlaceFields> for ChangePlace {
    fn from(fields: PlaceFields) -> Self {
        match fields {
            PlaceFields { node: Some(id), .. } => Self::Node(id),
            PlaceFields { edge: Some((from, to)), .. } => Self::Edge(from, to),
            PlaceFields { .. } => Self::Graph,
        }
    }
}

impl From<ChangePlace> for PlaceFields {
    fn from(place: ChangePlace) -> Self {
        match place {
            ChangePlace::Graph => Self { node: None, edge: None },
            ChangePlace::Node(id) => Self { node: Some(id), edge: None },
            ChangePlace::Edge(from, to) => Self { node: None, edge: Some((from, to)) },
        }
    }
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

/// Writes one line such as `+ node build: timeout="5m"`. Cuts long values. The caller must escape control characters.
impl fmt::Display for GraphChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.op {
            GraphChangeOp::Added => '+',
            GraphChangeOp::Removed => '-',
            GraphChangeOp::Changed | GraphChangeOp::Reordered => '~',
        };
        write!(f, "{sign} {}", self.place)?;
        if self.op == GraphChangeOp::Reordered {
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

/// Writes the beginning of a value, in quotes.
struct Cut<'a>(&'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.floor_char_boundary(VALUE_BYTES_MAX);
        let mark = if end < self.0.len() { "…" } else { "" };
        write!(f, "\"{}{mark}\"", &self.0[..end])
    }
}

/// Returns the differences between `before` and `after`: first the graph, then nodes, then edges. Removed elements come last in
/// each group.
pub fn changes(before: &SettledGraph, after: &SettledGraph) -> Vec<GraphChange> {
    let mut found = ChangeList(Vec::new());
    if before.name != after.name {
        let (before, after) = (Some(before.name.clone()), Some(after.name.clone()));
        found.0.push(GraphChange {
            op: GraphChangeOp::Changed,
            place: ChangePlace::Graph,
            attribute: None,
            before,
            after,
        });
    }
    found.attributes(&ChangePlace::Graph, &before.attributes, &after.attributes, &[]);
    let node = |node: &BTreeMap<String, String>| ChangePlace::Node(node["id"].clone());
    found.parts(&before.nodes, &after.nodes, node, &NODE_KEYS);
    let edge = |edge: &BTreeMap<String, String>| ChangePlace::Edge(edge["from"].clone(), edge["to"].clone());
    found.parts(&before.edges, &after.edges, edge, &EDGE_KEYS);
    found.0
}

struct ChangeList(Vec<GraphChange>);

type Part = BTreeMap<String, String>;

impl ChangeList {
    /// Compares elements of one kind. Elements with the same name are matched by their order.
    fn parts(&mut self, before: &[Part], after: &[Part], place: impl Fn(&Part) -> ChangePlace, keys: &[&str]) {
        let mut known: HashMap<String, VecDeque<(usize, &Part)>> = HashMap::default();
        for (index, part) in before.iter().enumerate() {
            known.entry(place(part).to_string()).or_default().push_back((index, part));
        }
        let (mut last, mut moved) = (None, None);
        for part in after {
            let of = place(part);
            let Some((index, was)) = known.get_mut(&of.to_string()).and_then(VecDeque::pop_front) else {
                self.whole(GraphChangeOp::Added, &of);
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
        gone.iter().for_each(|(_, part)| self.whole(GraphChangeOp::Removed, &place(part)));
        moved.iter().for_each(|of| self.whole(GraphChangeOp::Reordered, of));
    }

    fn whole(&mut self, op: GraphChangeOp, place: &ChangePlace) {
        self.0.push(GraphChange { op, place: place.clone(), attribute: None, before: None, after: None });
    }

    fn attributes(&mut self, place: &ChangePlace, before: &Part, after: &Part, but: &[&str]) {
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys.into_iter().filter(|key| !but.contains(&key.as_str())) {
            let (was, is) = (before.get(key), after.get(key));
            let op = match (was, is) {
                (None, Some(_)) => GraphChangeOp::Added,
                (Some(_), None) => GraphChangeOp::Removed,
                (Some(was), Some(is)) if was != is => GraphChangeOp::Changed,
                _ => continue,
            };
            let (before, after) = (was.cloned(), is.cloned());
            self.0.push(GraphChange { op, place: place.clone(), attribute: Some(key.clone()), before, after });
        }
    }
}
