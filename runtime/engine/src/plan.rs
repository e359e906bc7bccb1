//! The plan: a pipeline in which each node that does work has a component, grants and limits.
//!
//! A run does nothing outside of its plan: the plan says what each node, and all nodes together, could read, write, execute and
//! reach. `run.started` records its digest. The binder makes plans; this module does not know the binder.

pub mod binding;
pub mod capability;
mod capability_set;
pub mod compare;
pub mod deny;
mod holdout_readers;
pub mod origin;
pub mod print;
mod sandbox;

pub use binding::{Binding, BoundComponent, CommandAccess, HoldoutAccess, Separation};
pub use capability::Capability;
pub use capability_set::{CapabilitySet, PlanCapabilities, RunBounds, reached};
pub use holdout_readers::{HoldoutPlan, HoldoutReader};
pub use origin::{Giver, Grant, GrantField, Origin};
pub use print::{CapabilityLists, PlanComponent, PlanExec, PlanFile, PlanNode, PlanOrigin, PlanUnlocked};
pub use sandbox::{
    Confinement, HostCapability, PlanSandbox, PolicyKind, PolicyProblem, SandboxPlan, TIER_NONE, TIER_UNAVAILABLE,
    TIER_UNCONFINED,
};

use crate::components::PluginProblem;
use crate::config::ExecSetting;
use crate::event::{Digest, RuleReport};
use glovebox_host::model::{Model, Provider, Script};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_record::scope::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A pipeline, bound.
#[derive(Clone)]
pub struct Plan {
    /// The checked pipeline.
    pub pipeline: Arc<Pipeline>,
    /// One per node that a component executes. Nodes that ask for the same share one.
    pub bindings: BTreeMap<NodeId, Arc<Binding>>,
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// Ignored files the workspace takes along.
    pub workspace_include: Vec<String>,
    /// Hold-out folders that are sealed.
    pub sealed: Vec<Entry>,
    /// Folders of installed dependencies, which commands see read-only.
    pub dependencies: Vec<Entry>,
    /// What commands run in.
    pub sandbox: SandboxPlan,
    /// What the project's rule plugins made of the pipeline.
    pub rule_report: RuleReport,
    /// `scripted` or `simulated`.
    pub model: String,
    /// The script of a scripted model.
    pub script: Option<Arc<Script>>,
    /// Most bytes that the run's folder may hold when a stage begins.
    pub disk_bytes_max: u64,
    /// Plugins that are not locked as they are; none in a plan that can run.
    pub unlocked: Vec<PluginProblem>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

impl Plan {
    /// The same plan, with what the rule plugins changed in the pipeline.
    #[must_use]
    pub fn with_rule_report(self, rule_report: RuleReport) -> Self {
        Self { rule_report, ..self }
    }

    /// The binding of a node; none for a control node.
    pub fn binding(&self, node: &NodeId) -> Option<&Binding> {
        self.bindings.get(node).map(Arc::as_ref)
    }

    /// The digest of the component of each handler.
    pub fn components(&self) -> BTreeMap<String, Digest> {
        self.bindings.values().map(|bound| (bound.handler.clone(), bound.digest)).collect()
    }

    /// Nodes that ask a model and get simulated answers: there is no script, and they have no `test.*` attributes.
    pub fn simulated(&self) -> BTreeSet<NodeId> {
        let is_simulated = |id: &NodeId| {
            let Some(node) = self.pipeline.node(id) else { return false };
            let attributes: Vec<(String, String)> =
                node.attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect();
            let model = Model::bind(id, &attributes, self.script.as_ref(), 0, 0);
            model.is_ok_and(|model| model.provider() == Provider::Simulated)
        };
        let asking = self.bindings.iter().filter(|(_, binding)| binding.model).map(|(id, _)| id);
        asking.filter(|id| is_simulated(id)).cloned().collect()
    }

    /// BLAKE3 of the plan's JSON without what the machine adds: the same pipeline, components, grants and limits give the same
    /// digest on every machine.
    pub fn digest(&self) -> Digest {
        let mut file = self.to_json();
        file.sandbox_tier = "";
        file.sandbox.degradations = &[];
        // The operator raises it so that `resume` can continue a run that reached it.
        file.disk_bytes_max = None;
        // The same plan after `glovebox plugin lock`.
        file.unlocked.clear();
        // The changes follow from the transformed pipeline, which the digest covers.
        for rule in &mut file.rules {
            rule.changes.clear();
            rule.changes_total = 0;
            rule.widened.clear();
        }
        let json = serde_json::to_vec(&file).expect("a plan holds text, numbers and lists only");
        Digest::of(&json)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("pipeline", &self.pipeline.name)
            .field("json", &self.to_json())
            .finish_non_exhaustive()
    }
}
