//! Compares two plans: what the new plan allows and the old plan does not, and the reverse.
//!
//! Pure. A capability that the old plan covers is not reported, even if it is written differently. If a capability covers
//! more than before, only the new part is reported. Nodes with equal ids are the same node, so a renamed node is a new node.

use super::capability::Capability;
use super::capability_set::{CapabilitySet, PlanCapabilities};
use glovebox_pipeline::ir::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The capabilities that were added and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// New capabilities, such as `write src/`.
    pub more: Vec<String>,
    /// Capabilities that were removed.
    pub less: Vec<String>,
}

impl Change {
    /// Returns true if commands could read the history of the repository before, and cannot read it now. Files of the run may
    /// contain what they have read.
    pub fn withdraws_history(&self) -> bool {
        let of_a_node = format!(": {}", Capability::History);
        self.less.iter().any(|removed| removed.ends_with(&of_a_node))
    }

    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.less.is_empty()
    }
}

/// The differences between a plan and an older plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDiff {
    /// The pipeline file or the run that the plan is compared with.
    pub target: String,
    /// True if `target` is a run. The plan of a run is made from its pipeline at the start and the current configuration.
    pub is_run: bool,
    /// The changes of all nodes together.
    pub could: Change,
    /// The nodes that changed, by id.
    pub nodes: Vec<NodeChange>,
    /// Limits that are raised or removed, and checks that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loosened: Vec<String>,
}

/// The capabilities of a node that were added and removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeChange {
    /// The node's id.
    pub id: String,
    /// `kept` if both plans have the node; `new` or `gone` if only the new or only the old plan has it.
    pub presence: String,
    /// The capabilities that were added and removed.
    #[serde(flatten)]
    pub change: Change,
}

/// A capability of the new plan that the old plan does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The node with the capability. `None` for a capability of the run as a whole.
    pub node: Option<NodeId>,
    /// The new capability.
    pub capability: Capability,
}

/// Writes the capability as one line, with the node that has it.
impl fmt::Display for Addition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "{node}: ")?;
        }
        write!(f, "{}", self.capability)
    }
}

/// Returns everything that the new plan allows and the old plan does not: node by node, then the capabilities that only the
/// run as a whole has.
pub fn additions(old: &PlanCapabilities, new: &PlanCapabilities) -> Vec<Addition> {
    let nothing = CapabilitySet::default();
    let mut found = Vec::new();
    for (id, own) in &new.nodes {
        let before = old.nodes.get(id);
        // A new human gate only adds a question where there was none before.
        let is_news = |capability: &Capability| before.is_some() || !capability.is_of_gate();
        let more = own.minus(before.unwrap_or(&nothing)).into_iter().filter(is_news);
        found.extend(more.map(|capability| Addition { node: Some(id.clone()), capability }));
    }
    // Additions of nodes are already in the list. Here only capabilities of the whole run are added.
    let of_run = new.run.without(&new.nodes).minus(&old.run).into_iter();
    found.extend(of_run.map(|capability| Addition { node: None, capability }));
    found
}

/// The source of the old plan of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherPlan {
    /// A pipeline file.
    File(String),
    /// A run.
    Run(String),
}

/// Compares two plans. `other` names the source of the old one.
pub fn compare(old: &PlanCapabilities, new: &PlanCapabilities, other: OtherPlan) -> PlanDiff {
    let nothing = CapabilitySet::default();
    let ids: BTreeSet<&NodeId> = old.nodes.keys().chain(new.nodes.keys()).collect();
    let node = |id: &NodeId| {
        let (before, now) = (old.nodes.get(id), new.nodes.get(id));
        let presence = match (before, now) {
            (Some(_), Some(_)) => "kept",
            (None, _) => "new",
            (_, None) => "gone",
        };
        let change = change(before.unwrap_or(&nothing), now.unwrap_or(&nothing));
        let is_news = presence != "kept" || !change.is_empty();
        is_news.then(|| NodeChange { id: id.to_string(), presence: presence.to_owned(), change })
    };
    let nodes = ids.into_iter().filter_map(node).collect();
    let (target, is_run) = match other {
        OtherPlan::File(path) => (path, false),
        OtherPlan::Run(id) => (id, true),
    };
    PlanDiff { target, is_run, could: change(&old.run, &new.run), nodes, loosened: Vec::new() }
}

fn change(old: &CapabilitySet, new: &CapabilitySet) -> Change {
    Change { more: new.minus(old).lines(), less: old.minus(new).lines() }
}
