//! The report about custom rules in a run's first record: the plugins that checked the graph, and their changes.

use super::GraphChange;
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a value in a recorded change, in bytes. The transformed pipeline contains the whole value.
const VALUE_BYTES_MAX: usize = 256;
/// Maximum number of changes of one component that are recorded individually.
const CHANGES_MAX: usize = 200;

/// A rule plugin that checked the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRecord {
    /// Name of the plugin in `[rules]`.
    pub name: String,
    /// Digest of the plugin's bytes.
    pub digest: Digest,
    /// Changes that the plugin's transform made, in the order graph, nodes, edges; at most the first 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GraphChange>,
    /// Total number of changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_total: u64,
    /// Permissions that the plugin's changes add to those of the file; at most the first 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widened: Vec<String>,
}

/// What rule plugins did to a pipeline. `resume` uses the report and does not call the plugins again. The default is a
/// report without plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleReport {
    /// The plugins in order, each with its changes.
    pub rules: Vec<RuleRecord>,
    /// The pipeline as canonical text. `None` if no component changed it.
    pub transformed: Option<String>,
}

impl RuleRecord {
    /// Creates the record of a plugin and its changes.
    pub fn new(name: String, digest: Digest, changes: Vec<GraphChange>) -> Self {
        let changes_total = changes.len() as u64;
        let changes = changes.into_iter().take(CHANGES_MAX).map(shorten).collect();
        Self { name, digest, changes, changes_total, widened: Vec::new() }
    }

    /// Records the permissions that the plugin's changes added.
    pub fn widen(&mut self, lines: impl IntoIterator<Item = String>) {
        self.widened = lines.into_iter().take(CHANGES_MAX).map(cut).collect();
    }
}

/// Returns the change with its values cut to their beginnings.
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
