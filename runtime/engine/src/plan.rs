//! The plan: a pipeline whose every working node is bound to a component, its grants and its limits.
//!
//! Nothing in a run lies outside it: it says what each node, and all of them together, could read, write, execute and reach.
//! Its digest goes into `run.started`. How a plan is made is decided by the binder, which this module does not know.

pub mod binding;
pub mod capability;
mod capability_set;
pub mod compare;
pub mod deny;
mod holdout_readers;
pub mod origin;
pub mod print;
mod sandbox;

pub use binding::{Binding, CommandAccess, HoldoutAccess, Separation};
pub use capability::Capability;
pub use capability_set::{CapabilitySet, PlanCapabilities, RunBounds, reached};
pub use holdout_readers::HoldoutPlan;
pub use origin::{Giver, Grant, Origin};
pub use print::{CapabilityLists, PlanComponent, PlanExec, PlanFile, PlanNode, PlanOrigin};
pub use sandbox::{
    Confinement, PlanSandbox, PolicyKind, PolicyProblem, SandboxPlan, TIER_NONE, TIER_UNAVAILABLE, TIER_UNCONFINED,
};

use crate::config::ExecSetting;
use crate::event::{Digest, RuleReport};
use glovebox_host::model::Script;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_record::scope::Entry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A pipeline, bound.
#[derive(Clone)]
pub struct Plan {
    /// The checked pipeline.
    pub pipeline: Arc<Pipeline>,
    /// One per node that a component executes.
    pub bindings: BTreeMap<NodeId, Binding>,
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// Ignored files the workspace takes along.
    pub workspace_include: Vec<String>,
    /// Hold-out folders that are sealed.
    pub sealed: Vec<Entry>,
    /// What commands run in.
    pub sandbox: SandboxPlan,
    /// What the project's rule components made of the pipeline.
    pub rule_report: RuleReport,
    /// `scripted` or `simulated`.
    pub model: String,
    /// The script of a scripted model.
    pub script: Option<Arc<Script>>,
    /// Most bytes that the run's folder may hold when a stage begins.
    pub disk_bytes_max: u64,
    /// What was odd but no error.
    pub warnings: Vec<Diagnostic>,
}

impl Plan {
    /// The same plan, of a pipeline that rule components have checked and perhaps changed.
    #[must_use]
    pub fn with_rule_report(self, rule_report: RuleReport) -> Self {
        Self { rule_report, ..self }
    }

    /// The binding of a node; none for the nodes the engine passes by itself.
    pub fn binding(&self, node: &NodeId) -> Option<&Binding> {
        self.bindings.get(node)
    }

    /// BLAKE3 of the plan's JSON without what the machine adds: the same pipeline, components, grants and limits give the same
    /// digest on every machine.
    pub fn digest(&self) -> Digest {
        let mut file = self.to_json();
        file.sandbox_tier.clear();
        file.sandbox.degradations.clear();
        // To be raised before a run that reached it goes on.
        file.disk_bytes_max = None;
        // What was changed follows from the transformed pipeline, which counts.
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
