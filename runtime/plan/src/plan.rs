//! The plan: a pipeline in which each node that does work has a component, grants and limits.
//!
//! A run does nothing outside of its plan: the plan says what each node, and all nodes together, could read, write, execute and
//! reach. `run.started` records its digest. The binder makes plans; this module does not know the binder.

pub mod binding;
pub mod capability;
mod capability_set;
pub mod compare;
pub mod deny;
mod egress;
mod holdout_readers;
mod models;
pub mod origin;
mod parallel;
pub mod print;
mod recovery;
mod sandbox;
mod sessions;
mod shared;
mod tool_server;
mod verify;

pub use binding::{Binding, BoundComponent, CommandAccess, HoldoutAccess, HookTexts, PlannedProgram, Separation};
pub use capability::Capability;
pub use capability_set::{CapabilitySet, PlanCapabilities, reached};
pub use egress::{Egress, EgressSink, EgressSource, PlanEgress};
pub use holdout_readers::{HoldoutPlan, HoldoutReader};
pub use models::{ChosenModel, PlanAsks, PlanModel, PlannedModel};
pub use origin::{Giver, Grant, GrantField, Origin};
pub use parallel::{PlanChild, PlanParallel, PlanSupervision};
pub use print::{CapabilityLists, PlanComponent, PlanExec, PlanFile, PlanNode, PlanOrigin, PlanUnlocked};
pub use recovery::{NodeRecovery, PlanRecovery, PlannedRecovery};
pub use sandbox::{
    Confinement, HostCapability, PlanSandbox, PolicyKind, PolicyProblem, SandboxPlan, TIER_NONE, TIER_UNAVAILABLE,
    TIER_UNCONFINED,
};
pub use shared::Shared;
pub use tool_server::{BoundServer, PlanToolServer, ServerGrant};
pub use verify::{PlanNoChange, PlanPhase, PlanVerify};

use self::capability::MachineFolder;
use crate::components::PluginProblem;
use crate::config::ExecSetting;
use crate::verify::Verify;
use glovebox_host::llm::{Model, Provider, Script};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_pipeline::transform::RuleReport;
use glovebox_record::Digest;
use glovebox_record::no_change::NoChangeRule;
use glovebox_record::scope::Entry;
use glovebox_record::spend::{Price, SpendBounds};
use glovebox_workspace::cache::Domain;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{BufWriter, Write};
use std::sync::{Arc, OnceLock};

/// The owner of a cost bound without a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unpriced {
    /// The run.
    Run,
    /// A node.
    Node(NodeId),
}

/// A pipeline, bound.
#[derive(Clone)]
pub struct Plan {
    /// The checked pipeline.
    pub pipeline: Arc<Pipeline>,
    /// One per node that a component executes. Nodes that ask for the same share one.
    pub bindings: BTreeMap<NodeId, Arc<Binding>>,
    /// Folders of the project and of the machine with a part of their own.
    pub folders: PlannedFolders,
    /// How commands run.
    pub commands: PlannedCommands,
    /// The source of model answers.
    pub models: PlannedModels,
    /// How the work of stages is judged, beside the pipeline's own rules.
    pub checks: PlannedChecks,
    /// Bounds that the operator sets.
    pub bounds: OperatorBounds,
    /// Findings that do not change what a run does.
    pub findings: PlanFindings,
    /// The hidden paths of stages that share a set, each list once; computed when the first stage asks.
    pub hidden: HiddenByDomain,
}

/// The folders of a plan that the workspace and the sandbox treat apart.
#[derive(Clone, Default)]
pub struct PlannedFolders {
    /// Ignored files the workspace takes along.
    pub include: Vec<String>,
    /// Hold-out folders that are sealed.
    pub sealed: Vec<Entry>,
    /// Folders of installed dependencies, which commands see read-only.
    pub dependencies: Vec<Entry>,
    /// Folders of the machine to which they link: stores of package managers and interpreters. Commands see them too.
    pub stores: Vec<MachineFolder>,
}

/// The commands of a plan.
#[derive(Clone)]
pub struct PlannedCommands {
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// The sandbox of commands.
    pub sandbox: SandboxPlan,
}

/// The model calls of a plan.
#[derive(Clone, Default)]
pub struct PlannedModels {
    /// The models that nodes ask; none with a script or with simulated answers.
    pub by_node: BTreeMap<NodeId, ChosenModel>,
    /// The script of a scripted model.
    pub script: Option<Arc<Script>>,
    /// The price of a scripted or simulated model's tokens, as configured.
    pub price: Option<Price>,
}

/// The operator's rules for the work of stages.
#[derive(Clone, Default)]
pub struct PlannedChecks {
    /// The commands that verification stages run beside their plans; none without such a stage.
    pub verify: Option<Arc<Verify>>,
    /// The rule for agents that change nothing; none without one.
    pub no_change: Option<NoChangeRule>,
    /// The write recovery; none unless the operator sets one.
    pub recovery: Option<PlannedRecovery>,
}

/// The operator's bounds of a run.
#[derive(Debug, Clone, Copy)]
pub struct OperatorBounds {
    /// Most bytes that the run's folder may hold when a stage begins.
    pub disk_bytes_max: u64,
    /// Most stages that run at once, of all branches together.
    pub parallel_max: usize,
    /// The operator's budget of a run's model calls.
    pub spend_max: SpendBounds,
}

/// The findings of making a plan.
#[derive(Clone, Default)]
pub struct PlanFindings {
    /// The report of the project's rule plugins.
    pub rule_report: RuleReport,
    /// Plugins that are not locked as they are; none in a plan that can run.
    pub unlocked: Vec<PluginProblem>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// The hidden entries of the scopes of each domain.
pub type HiddenByDomain = OnceLock<HashMap<Domain, BTreeSet<Vec<Entry>>>>;

impl Plan {
    /// The same plan, with what the rule plugins changed in the pipeline.
    #[must_use]
    pub fn with_rule_report(self, rule_report: RuleReport) -> Self {
        Self { findings: PlanFindings { rule_report, ..self.findings }, ..self }
    }

    /// The same plan, with the most stages at a time that a flag asks for.
    #[must_use]
    pub fn with_parallel_max(self, asked: Option<u64>) -> Self {
        let asked = asked.and_then(|most| usize::try_from(most).ok());
        let parallel_max = asked.unwrap_or(self.bounds.parallel_max);
        Self { bounds: OperatorBounds { parallel_max, ..self.bounds }, ..self }
    }

    /// The budget of a run's model calls with these flags: the least of flags, pipeline and operator.
    pub fn spend_max(&self, flags: SpendBounds) -> SpendBounds {
        self.pipeline.spend_max(flags).least(self.bounds.spend_max)
    }

    /// The owner of a cost bound that cannot be enforced, because a model has no price, and that model; none where it can.
    pub fn unpriced(&self, flags: SpendBounds) -> Option<(Unpriced, &str)> {
        let is_bounded = self.spend_max(flags).cost_max.is_some();
        let has_bound =
            |id: &NodeId| self.pipeline.node(id).is_some_and(|node| node.bounds.spend_max.cost_max.is_some());
        let mut asking = self.unpriced_nodes().into_iter();
        match is_bounded {
            true => asking.next().map(|(_, model)| (Unpriced::Run, model)),
            false => asking.find(|(id, _)| has_bound(id)).map(|(id, model)| (Unpriced::Node(id.clone()), model)),
        }
    }

    /// The nodes that ask a model without a price, and its name in glovebox.toml.
    fn unpriced_nodes(&self) -> Vec<(&NodeId, &str)> {
        let asked = self.models.by_node.iter().filter(|(_, chosen)| chosen.model.price.is_none());
        let asked = asked.map(|(id, chosen)| (id, chosen.model.name.as_str()));
        let is_scripted =
            self.models.price.is_none() && self.models.script.as_ref().is_some_and(|script| !script.names_costs());
        let scripted = self.bindings.iter().filter(|(_, binding)| is_scripted && binding.model);
        asked.chain(scripted.map(|(id, _)| (id, Provider::Scripted.as_str()))).collect()
    }

    /// The binding of a node; none for a control node.
    pub fn binding(&self, node: &NodeId) -> Option<&Binding> {
        self.bindings.get(node).map(Arc::as_ref)
    }

    /// The digest of the component of each handler.
    pub fn components(&self) -> BTreeMap<String, Digest> {
        self.bindings.values().map(|bound| (bound.handler.clone(), bound.digest)).collect()
    }

    /// The write scopes of nodes that may write less than they ask for.
    pub fn narrowed_scopes(&self) -> BTreeMap<NodeId, Vec<Entry>> {
        let is_narrowed = |id: &NodeId, bound: &[Entry]| {
            let wanted = self.pipeline.node(id).and_then(|node| node.access.allowed_write_paths.as_ref());
            wanted.into_iter().flatten().any(|wanted| !bound.iter().any(|entry| entry.covers(wanted)))
        };
        let scopes = self.bindings.iter().map(|(id, binding)| (id, &binding.scope.write));
        scopes.filter(|(id, bound)| is_narrowed(id, bound)).map(|(id, bound)| (id.clone(), bound.clone())).collect()
    }

    /// Nodes that ask a model and get simulated answers: no script and no provider answers, and they have no `test.*` attributes.
    pub fn simulated(&self) -> BTreeSet<NodeId> {
        let is_simulated = |id: &NodeId| {
            let Some(node) = self.pipeline.node(id) else { return false };
            let attributes: Vec<(String, String)> =
                node.attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect();
            let model = Model::bind(id, &attributes, self.models.script.as_ref(), 0, 0);
            model.is_ok_and(|model| model.provider() == Provider::Simulated)
        };
        let asking = self.bindings.iter().filter(|(_, binding)| binding.model).map(|(id, _)| id);
        asking.filter(|id| !self.models.by_node.contains_key(*id) && is_simulated(id)).cloned().collect()
    }

    /// BLAKE3 of the plan's JSON without what the machine adds: the same pipeline, components, grants and limits give the same
    /// digest on every machine where dependencies link to the same folders.
    pub fn digest(&self) -> Digest {
        let mut file = self.to_json();
        file.sandbox_tier = "";
        file.sandbox.degradations = &[];
        // The operator raises it so that `resume` can continue a run that reached it.
        file.disk_bytes_max = None;
        file.spend_max = self.pipeline.bounds.spend_max;
        // The operator corrects it without another plan.
        file.models.iter_mut().for_each(|model| model.price = None);
        // It changes how fast a run is, and nothing else.
        file.parallel_max = None;
        // The same plan after `glovebox plugin lock`.
        file.unlocked.clear();
        // The changes follow from the transformed pipeline, which the digest covers.
        for rule in &mut file.rules {
            rule.changes.clear();
            rule.changes_total = 0;
            rule.widened.clear();
        }
        let mut hasher = blake3::Hasher::new();
        let mut buffered = BufWriter::new(&mut hasher);
        serde_json::to_writer(&mut buffered, &file).expect("a plan holds text, numbers and lists only");
        buffered.flush().expect("a hasher takes everything");
        drop(buffered);
        hasher.finalize().into()
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
