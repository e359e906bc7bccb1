//! Write recovery in a plan: which writes outside of a write scope a person may allow, and which may be discarded
//! (decision write-recovery).
//!
//! Everything follows from what the author and the operator wrote before the first stage. Nothing in this module grants anything.

use crate::config::DiscardPattern;
use glovebox_pipeline::ir::NodeId;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The write recovery of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedRecovery {
    /// Paths that may be discarded.
    pub discard: Vec<DiscardPattern>,
    /// Paths that fail the stage without a question.
    pub deny: Vec<Entry>,
    /// Maximum time that a question waits. `None` for no maximum.
    pub timeout: Option<Duration>,
    /// The stages about which a person may be asked.
    pub nodes: BTreeMap<NodeId, NodeRecovery>,
}

/// The files that may be proposed for one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRecovery {
    /// The files, each with the text that explains why it is proposed.
    pub proposals: BTreeMap<ScopePath, String>,
}

impl NodeRecovery {
    fn printed(&self) -> BTreeMap<String, String> {
        self.proposals.iter().map(|(path, why)| (path.to_string(), why.to_owned())).collect()
    }
}

impl PlannedRecovery {
    /// Returns true if the path may be discarded.
    pub fn discards(&self, path: &ScopePath) -> bool {
        self.discard.iter().any(|pattern| pattern.matches(path))
    }
}

/// Write recovery as a plan prints it.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanRecovery {
    /// Always `ask`: a person decides.
    pub mode: &'static str,
    /// Paths that may be discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discard: Vec<String>,
    /// Paths that fail the stage without a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Maximum time that a question waits, in milliseconds. Absent if there is no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The stages about which a person may be asked: the files that may be proposed, each with the text that explains why.
    pub nodes: BTreeMap<String, BTreeMap<String, String>>,
}

impl PlanRecovery {
    pub(super) fn new(planned: &PlannedRecovery) -> Self {
        Self {
            mode: "ask",
            discard: planned.discard.iter().map(ToString::to_string).collect(),
            deny: planned.deny.iter().map(ToString::to_string).collect(),
            timeout_ms: planned.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            nodes: planned.nodes.iter().map(|(id, node)| (id.to_string(), node.printed())).collect(),
        }
    }
}
