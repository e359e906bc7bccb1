//! The plan: a pipeline in which each node that a component executes has its component, grants and limits.
//!
//! A run does nothing that its plan does not allow: the plan lists what each node, and all nodes together, could read, write,
//! execute and reach. `run.started` records the digest of the plan. The binder creates plans; this module does not know the
//! binder.

pub mod binding;
pub mod capability;
mod capability_set;
pub mod compare;
pub mod deny;
mod egress;
mod holdout_readers;
mod models;
pub mod narrowed;
pub mod origin;
mod parallel;
mod placement;
mod policy;
pub mod print;
mod recovery;
mod sandbox;
mod sessions;
mod shared;
mod tool_provider;
mod tool_server;
mod verify;

pub use binding::{Binding, BoundComponent, CommandAccess, HoldoutAccess, HookTexts, PlannedProgram, Separation, Want};
pub use capability::Capability;
pub use capability_set::{CapabilitySet, PlanCapabilities, reached};
pub use egress::{Client, Egress, EgressSink, EgressSource, PlanEgress};
pub use holdout_readers::{HoldoutPlan, HoldoutReader};
pub use models::{ChosenModel, PlanAsks, PlanModel, PlannedModel};
pub use origin::{Grant, GrantField, Origin, OriginPart};
pub use parallel::{PlanChild, PlanParallel, PlanSupervision};
pub use placement::{PlanLacking, PlannedPlacement, ProgramFolders, UnmetNeed, UnmetNeeds};
pub use policy::{BoundPolicy, PlanPolicy, PolicyBinding};
pub use print::{CapabilityLists, PlanComponent, PlanExec, PlanFile, PlanNode, PlanOrigin, PlanUnlocked, PlanWant};
pub use recovery::{NodeRecovery, PlanRecovery, PlannedRecovery};
pub use sandbox::{
    Confinement, HostCapability, PlanSandbox, PolicyKind, PolicyProblem, SandboxPlan, TIER_NONE, TIER_UNAVAILABLE,
    TIER_UNCONFINED,
};
pub use shared::Shared;
pub use tool_provider::{BoundProvider, PlanToolProvider, ProviderComponent};
pub use tool_server::{BoundServer, PlanToolServer, ServerGrant};
pub use verify::{PlanNoChange, PlanPhase, PlanVerify};

use self::capability::MachineFolder;
use crate::components::PluginProblem;
use crate::config::{ExecSetting, HistorySetting};
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

/// What sets a cost limit for a model that has no price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unpriced {
    /// The run sets the limit.
    Run,
    /// This node sets the limit.
    Node(NodeId),
}

/// A pipeline that is bound to components, grants and limits.
#[derive(Clone)]
pub struct Plan {
    /// The checked pipeline.
    pub pipeline: Arc<Pipeline>,
    /// The binding of each node that a component executes. Nodes with equal requests share one binding.
    pub bindings: BTreeMap<NodeId, Arc<Binding>>,
    /// Folders of the project and of the machine that the workspace or the sandbox treats specially.
    pub folders: PlannedFolders,
    /// The settings of commands.
    pub commands: PlannedCommands,
    /// The sources of model answers.
    pub models: PlannedModels,
    /// What the stages ask of their machines.
    pub placement: PlannedPlacement,
    /// The operator's rules for judging the work of stages, in addition to the checks of the pipeline.
    pub checks: PlannedChecks,
    /// Limits that the operator sets.
    pub bounds: OperatorBounds,
    /// Findings that do not change what a run does.
    pub findings: PlanFindings,
    /// The hidden paths of the stages of each trust domain, each list once. Computed at the first use.
    pub hidden: HiddenByDomain,
}

/// The folders of a plan that the workspace or the sandbox treats specially.
#[derive(Clone, Default)]
pub struct PlannedFolders {
    /// Ignored files that are copied into the workspace.
    pub include: Vec<String>,
    /// What the operator says about the history of the project's repository.
    pub history: HistorySetting,
    /// True if commands that see the whole project see the history of its repository.
    pub shows_history: bool,
    /// Folders in which hold-outs are looked for.
    pub scenarios: Vec<Entry>,
    /// Hold-out folders that are sealed.
    pub sealed: Vec<Entry>,
    /// Folders of installed dependencies, which commands see read-only.
    pub dependencies: Vec<Entry>,
    /// Folders of the machine to which the folders of `dependencies` link: stores of package managers and interpreters.
    /// Commands see them too.
    pub stores: Vec<MachineFolder>,
    /// Folders of files that git ignores and that later runs begin with. `None` if no run reuses caches of an earlier
    /// one.
    pub reuse: Option<Vec<Entry>>,
}

/// The settings of a plan's commands.
#[derive(Clone)]
pub struct PlannedCommands {
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// The sandbox of commands.
    pub sandbox: SandboxPlan,
}

/// The settings of a plan's model calls.
#[derive(Clone, Default)]
pub struct PlannedModels {
    /// The models that nodes ask. Empty with a script or with simulated answers.
    pub by_node: BTreeMap<NodeId, ChosenModel>,
    /// The script whose answers replace those of a model. `None` without `--script`.
    pub script: Option<Arc<Script>>,
    /// The configured price of the tokens of a scripted or simulated model. `None` if none is configured.
    pub price: Option<Price>,
}

/// The operator's rules for judging the work of stages.
#[derive(Clone, Default)]
pub struct PlannedChecks {
    /// The commands that verification stages run in addition to a model's plan. `None` without a verification stage or `[verify]`.
    pub verify: Option<Arc<Verify>>,
    /// The rule for agents that change nothing. `None` if the operator sets no rule.
    pub no_change: Option<NoChangeRule>,
    /// The write recovery. `None` unless the operator enables it.
    pub recovery: Option<PlannedRecovery>,
    /// The policies over tool calls and edges, in the order of `glovebox.toml`.
    pub policies: Vec<BoundPolicy>,
}

/// The operator's limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct OperatorBounds {
    /// Maximum number of bytes in the run's folder when a stage begins.
    pub disk_bytes_max: u64,
    /// Maximum number of stages that run at the same time, of all branches together.
    pub parallel_max: usize,
    /// The operator's budget of a run's model calls.
    pub spend_max: SpendBounds,
}

/// What was found while the plan was made.
#[derive(Clone, Default)]
pub struct PlanFindings {
    /// The report of the project's rule plugins.
    pub rule_report: RuleReport,
    /// Plugins that differ from the lock file or are not in it. Empty in a plan that can run.
    pub unlocked: Vec<PluginProblem>,
    /// Warnings about the pipeline.
    pub warnings: Vec<Diagnostic>,
}

/// The lists of hidden entries of the scopes in each trust domain.
pub type HiddenByDomain = OnceLock<HashMap<Domain, BTreeSet<Vec<Entry>>>>;

impl Plan {
    /// Returns the plan with the report of the rule plugins.
    #[must_use]
    pub fn with_rule_report(self, rule_report: RuleReport) -> Self {
        Self { findings: PlanFindings { rule_report, ..self.findings }, ..self }
    }

    /// Returns the plan with the value of a flag for the maximum number of stages at a time. Without the flag, the setting stays.
    #[must_use]
    pub fn with_parallel_max(self, asked: Option<u64>) -> Self {
        let asked = asked.and_then(|most| usize::try_from(most).ok());
        let parallel_max = asked.unwrap_or(self.bounds.parallel_max);
        Self { bounds: OperatorBounds { parallel_max, ..self.bounds }, ..self }
    }

    /// Returns the budget of a run's model calls with these flags: the lowest of flags, pipeline and operator.
    pub fn spend_max(&self, flags: SpendBounds) -> SpendBounds {
        self.pipeline.spend_max(flags).least(self.bounds.spend_max)
    }

    /// Returns what sets a cost limit that cannot be enforced because a model has no price, and the name of that model.
    /// `None` if every cost limit can be enforced.
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

    /// Returns the nodes that ask a model without a price, and the name of that model in `glovebox.toml`.
    fn unpriced_nodes(&self) -> Vec<(&NodeId, &str)> {
        let asked = self.models.by_node.iter().filter(|(_, chosen)| chosen.model.price.is_none());
        let asked = asked.map(|(id, chosen)| (id, chosen.model.name.as_str()));
        let is_scripted =
            self.models.price.is_none() && self.models.script.as_ref().is_some_and(|script| !script.names_costs());
        let scripted = self.bindings.iter().filter(|(_, binding)| is_scripted && binding.model);
        asked.chain(scripted.map(|(id, _)| (id, Provider::Scripted.as_str()))).collect()
    }

    /// Returns the binding of a node. `None` for a control node.
    pub fn binding(&self, node: &NodeId) -> Option<&Binding> {
        self.bindings.get(node).map(Arc::as_ref)
    }

    /// Returns the digest of the component of each handler.
    pub fn components(&self) -> BTreeMap<String, Digest> {
        self.bindings.values().map(|bound| (bound.handler.clone(), bound.digest)).collect()
    }

    /// Returns the write scopes of the nodes that may write less than they ask for.
    pub fn narrowed_scopes(&self) -> BTreeMap<NodeId, Vec<Entry>> {
        let is_narrowed = |id: &NodeId, bound: &[Entry]| {
            let wanted = self.pipeline.node(id).and_then(|node| node.access.allowed_write_paths.as_ref());
            wanted.into_iter().flatten().any(|wanted| !bound.iter().any(|entry| entry.covers(wanted)))
        };
        let scopes = self.bindings.iter().map(|(id, binding)| (id, &binding.scope.write));
        scopes.filter(|(id, bound)| is_narrowed(id, bound)).map(|(id, bound)| (id.clone(), bound.clone())).collect()
    }

    /// Returns the nodes that ask a model and get simulated answers, because no script, no provider and no `test.*`
    /// attributes answer.
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

    /// Returns the BLAKE3 digest of the plan's JSON, without what depends on the machine. The same pipeline, components,
    /// grants and limits give the same digest on every machine on which dependencies link to the same folders.
    pub fn digest(&self) -> Digest {
        let mut file = self.to_json();
        file.sandbox_tier = "";
        file.sandbox.degradations = &[];
        file.lacking.clear();
        // The operator raises these limits so that `resume` can continue a run that reached them.
        file.disk_bytes_max = None;
        file.spend_max = self.pipeline.bounds.spend_max;
        // The operator can correct a price, and the plan stays the same.
        file.models.iter_mut().for_each(|model| model.price = None);
        // This limit changes only how fast a run is.
        file.parallel_max = None;
        // The plan must be the same after `glovebox plugin lock`.
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
