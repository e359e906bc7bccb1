//! The report about custom rules in a run's first record: the plugins that checked the graph, and their changes.

use super::GraphChange;
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest value of a recorded change, bytes. The whole is in the transformed pipeline.
const VALUE_BYTES_MAX: usize = 256;
/// The most changes of one component that are recorded one by one.
const CHANGES_MAX: usize = 200;

/// A rule plugin that checked the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRecord {
    /// Its name in `[rules]`.
    pub name: String,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// The changes of its transform, in the order graph, nodes, edges; the first two hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GraphChange>,
    /// The number of all changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_total: u64,
    /// The permissions that its changes add to those of the file; the first two hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<String>,
}

/// The effects of rule plugins on a pipeline. `resume` uses it and does not call them again. The default: no rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleReport {
    /// The plugins in order, each with its changes.
    pub rules: Vec<RuleRecord>,
    /// The pipeline as canonical text; none when no component changed it.
    pub transformed: Option<String>,
}

impl RuleRecord {
    /// Records a plugin and its changes.
    pub fn new(name: String, digest: Digest, changes: Vec<GraphChange>) -> Self {
        let changes_total = changes.len() as u64;
        let changes = changes.into_iter().take(CHANGES_MAX).map(shorten).collect();
        Self { name, digest, changes, changes_total, widened: Vec::new() }
    }

    /// Records the permissions that the plugin added.
    pub fn widen(&mut self, lines: impl IntoIterator<Item = String>) {
        self.widened = lines.into_iter().take(CHANGES_MAX).map(cut).collect();
    }
}

/// The change with the beginnings of its values.
fn shorten(change: GraphChange) -> GraphChange {
    GraphChange { before: change.before.map(cut), after: change.after.map(cut), ..change }
}

fn cut(mut value: String) -> String {
    let end = value.floor_char_boundary(VALUE_BYTES_MAX);
    if end < value.len() {
        value.truncate(end);
        value.push('…');
    }
    value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
