//! Compares two plans: what the new plan allows and the old plan does not, and the reverse.
//!
//! Pure. A capability that the old plan covers is not reported, even if it is written differently. Of one that reaches further, the
//! part that is new is reported. Nodes are the same when their ids are: a renamed node is a new node.

use super::capability::Capability;
use super::capability_set::{CapabilitySet, PlanCapabilities};
use glovebox_pipeline::ir::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The changed capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// New capabilities, such as `write src/`.
    pub more: Vec<String>,
    /// Capabilities that are gone.
    pub less: Vec<String>,
}

impl Change {
    /// True when nothing changed.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.less.is_empty()
    }
}

/// A plan compared with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanDiff {
    /// The pipeline's file or the run.
    pub target: String,
    /// True for a run: its pipeline as it began, with the configuration as it is now.
    pub is_run: bool,
    /// All nodes together.
    pub could: Change,
    /// Nodes with a change, by id.
    pub nodes: Vec<NodeChange>,
    /// Limits and bounds that are raised or gone, and checks that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loosened: Vec<String>,
}

/// The changed capabilities of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeChange {
    /// The node.
    pub id: String,
    /// `kept`, `new` or `gone`.
    pub presence: String,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
}

/// A capability of the new plan that the old one does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The node; none for what no single node has.
    pub node: Option<NodeId>,
    /// Its new capabilities.
    pub capability: Capability,
}

/// The capability as one line, with the node that has it.
impl fmt::Display for Addition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.node {
            write!(f, "{node}: ")?;
        }
        write!(f, "{}", self.capability)
    }
}

/// Everything the new plan allows and the old one does not: node by node, then what only the run as a whole has.
pub fn additions(old: &PlanCapabilities, new: &PlanCapabilities) -> Vec<Addition> {
    let nothing = CapabilitySet::default();
    let mut found = Vec::new();
    for (id, own) in &new.nodes {
        let before = old.nodes.get(id);
        // A gate that is new asks where nothing was asked.
        let is_news = |capability: &Capability| before.is_some() || !capability.is_of_gate();
        let more = own.minus(before.unwrap_or(&nothing)).into_iter().filter(is_news);
        found.extend(more.map(|capability| Addition { node: Some(id.clone()), capability }));
    }
    // Node-level additions were reported above. Report only what appears in the run-wide set.
    let of_run = new.run.without(&new.nodes).minus(&old.run).into_iter();
    found.extend(of_run.map(|capability| Addition { node: None, capability }));
    found
}

/// The owner of the old plan of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherPlan {
    /// A pipeline file.
    File(String),
    /// A run.
    Run(String),
}

/// Compares two plans; `other` names the old one.
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
