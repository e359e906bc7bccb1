//! The hold-outs of a plan: the sealed folders, the nodes that can read them, and the opt-outs.
//!
//! `run.started` records the same texts, so that the run itself shows which nodes could read the hold-outs.

use super::capability::Region;
use super::{Capability, HoldoutAccess, Plan};
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::ir::holdouts::{Copies, Feedback, Writes};
use glovebox_record::scope::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node that can read hold-outs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldoutReader {
    /// The node's id.
    pub node: String,
    /// The folders, each with a final slash.
    pub folders: Vec<String>,
    /// The origin of the grant with which the node reads the folders.
    pub from: String,
    /// True if other stages get only the verdict and the public hints of this node.
    pub is_withheld: bool,
}

/// The hold-outs of a run, before they are sealed. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldoutPlan {
    /// The hold-out folders, each with a final slash.
    pub folders: Vec<String>,
    /// The nodes that can read hold-outs.
    pub reach: Vec<String>,
    /// For each node in `reach`: the hold-out folders that it can read, and the grant for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readers: Vec<HoldoutReader>,
    /// Nodes that can read hold-outs and whose commands also see the project, so that builders' code could run next to the
    /// hold-outs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_isolated: Vec<String>,
    /// Protections that the pipeline's author gave up, as sentences.
    pub opt_outs: Vec<String>,
}

impl HoldoutPlan {
    /// Returns true if the run has no hold-outs.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }
}

impl Plan {
    /// Returns the hold-outs, the nodes that may read them, and the opt-outs of the pipeline's author.
    pub fn holdout_plan(&self) -> HoldoutPlan {
        let folders = self.folders.sealed.iter().map(ToString::to_string).collect();
        let reaching = self.bindings.iter().filter(|(_, binding)| binding.holdouts == HoldoutAccess::ReadOnly);
        let (mut reach, mut not_isolated, mut opt_outs) = (Vec::new(), Vec::new(), Vec::new());
        let mut readers = Vec::new();
        for (id, binding) in reaching {
            reach.push(id.to_string());
            readers.push(self.reader(id));
            if binding.separation.as_ref().is_some_and(|separation| !separation.is_isolated) {
                not_isolated.push(id.to_string());
            }
            if binding.is_builder() {
                opt_outs.push(format!("builder `{id}` may read hold-outs"));
            }
            if binding.separation.as_ref().is_some_and(|separation| separation.writes == Writes::Commit) {
                opt_outs.push(format!("`{id}` commits what it writes, and builders can read it"));
            }
            if self.feedback(id) == Feedback::Full {
                opt_outs.push(format!("builders can read what `{id}` prints"));
            }
        }
        if self.pipeline.scenario_copies == Copies::Allow && !self.folders.sealed.is_empty() {
            opt_outs.push("the workspace may contain copies of hold-outs".to_owned());
        }
        HoldoutPlan { folders, reach, readers, not_isolated, opt_outs }
    }

    fn reader(&self, id: &NodeId) -> HoldoutReader {
        let folders = self.holdouts_of(id);
        let given = |folder: &&Entry| Capability::ReadHoldouts(Region::from_entry(folder));
        let mut from: Vec<String> =
            folders.iter().map(|folder| self.origin(Some(id), &given(folder)).to_string()).collect();
        from.dedup();
        HoldoutReader {
            node: id.to_string(),
            folders: folders.iter().map(ToString::to_string).collect(),
            from: from.join("; "),
            is_withheld: self.withholds(id),
        }
    }

    /// Returns the hold-out folders that must be mounted for a node, read-only, at their original paths.
    pub fn holdouts_of(&self, node: &NodeId) -> Vec<&Entry> {
        let Some(binding) = self.binding(node).filter(|binding| binding.holdouts == HoldoutAccess::ReadOnly) else {
            return Vec::new();
        };
        self.folders.sealed.iter().filter(|folder| !binding.scope.is_hidden(folder.path())).collect()
    }

    /// Returns true if the node's result is withheld: the node can read hold-outs, and the author did not opt out.
    pub fn withholds(&self, node: &NodeId) -> bool {
        let reaches = self.binding(node).is_some_and(|binding| binding.holdouts == HoldoutAccess::ReadOnly);
        reaches && self.feedback(node) == Feedback::Summary
    }

    /// Returns true if the leak check covers the node: neither its input nor its result may contain a hold-out. If any
    /// stage has `scenario_feedback=full`, there are no leak checks, because the content is already disclosed.
    pub fn is_leak_checked(&self, node: &NodeId) -> bool {
        let absent = self.binding(node).is_some_and(|binding| binding.holdouts == HoldoutAccess::Absent);
        absent && !self.folders.sealed.is_empty() && !self.discloses_holdouts()
    }

    fn discloses_holdouts(&self) -> bool {
        let reaches = |binding: &super::Binding| binding.holdouts == HoldoutAccess::ReadOnly;
        self.bindings.iter().any(|(id, binding)| reaches(binding) && self.feedback(id) == Feedback::Full)
    }

    fn feedback(&self, node: &NodeId) -> Feedback {
        self.pipeline.node(node).map_or_else(Feedback::default, |node| node.access.holdouts.feedback)
    }
}
