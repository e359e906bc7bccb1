//! What the first record says of the project's own rules: who judged the graph, and what they changed in it.

use super::Digest;
use glovebox_pipeline::transform::{Change, ChangeOp, ChangePlace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest value of a recorded change, bytes. The whole is in the transformed pipeline.
const VALUE_BYTES_MAX: usize = 256;
/// The most changes of one component that are recorded one by one.
const CHANGES_MAX: usize = 200;

/// A component of rules that judged the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRecord {
    /// Its name in `[rules]`.
    pub name: String,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// What its transform changed, in the order graph, nodes, edges; the first two hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GraphChange>,
    /// How many changes there are in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_total: u64,
    /// What the pipeline could do after it and not as the file has it; the first two hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<String>,
}

/// What the rule components made of a pipeline. A resume uses it instead of asking them again. The default: no rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleReport {
    /// The components in order, and what each changed.
    pub rules: Vec<RuleRecord>,
    /// The pipeline as canonical text; none when no component changed it.
    pub transformed: Option<String>,
}

/// One change of a graph. Without a node and an edge it is about the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphChange {
    /// `added`, `removed`, `changed` or `reordered`.
    pub op: String,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The edge's ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<(String, String)>,
    /// The attribute; absent when it is about the whole node or edge, or the graph's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The value before, its first 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value now, its first 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl RuleRecord {
    /// Records a component and what it changed.
    pub fn new(name: &str, digest: Digest, changes: &[Change]) -> Self {
        let kept = changes.iter().take(CHANGES_MAX).map(GraphChange::of).collect();
        Self { name: name.to_owned(), digest, changes: kept, changes_total: changes.len() as u64, widened: Vec::new() }
    }

    /// Records what the component widened.
    pub fn widen(&mut self, lines: &[String]) {
        self.widened = lines.iter().take(CHANGES_MAX).map(|line| cut(line)).collect();
    }
}

impl GraphChange {
    fn of(change: &Change) -> Self {
        let (node, edge) = match &change.place {
            ChangePlace::Graph => (None, None),
            ChangePlace::Node(id) => (Some(id.clone()), None),
            ChangePlace::Edge(from, to) => (None, Some((from.clone(), to.clone()))),
        };
        let cut = |value: &Option<String>| value.as_deref().map(cut);
        let (before, after) = (cut(&change.before), cut(&change.after));
        Self { op: change.op.as_str().to_owned(), node, edge, attribute: change.attribute.clone(), before, after }
    }
}

/// `+ node build: timeout="5m"`, as [`Change`] is printed.
impl fmt::Display for GraphChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (&self.node, &self.edge) {
            (Some(id), _) => ChangePlace::Node(id.clone()),
            (None, Some((from, to))) => ChangePlace::Edge(from.clone(), to.clone()),
            (None, None) => ChangePlace::Graph,
        };
        let op = ChangeOp::parse(&self.op).unwrap_or(ChangeOp::Changed);
        let (attribute, before, after) = (self.attribute.clone(), self.before.clone(), self.after.clone());
        Change { op, place, attribute, before, after }.fmt(f)
    }
}

fn cut(value: &str) -> String {
    let end = value.floor_char_boundary(VALUE_BYTES_MAX);
    if end < value.len() { format!("{}…", &value[..end]) } else { value.to_owned() }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
