//! A plan as `glovebox plan --json` prints it: what each node, and all nodes together, could read, write, execute and reach.
//!
//! The order is fixed, so two plans can be compared line by line, and the plan's digest covers the text. Decides nothing.

use super::capability::{Capability, MachineFolder};
use super::capability_set::{CapabilitySet, EachBinding};
use super::compare::PlanDiff;
use super::deny::Denied;
use super::egress::PlanEgress;
use super::models::{PlanAsks, PlanModel};
use super::origin::Grant;
use super::parallel::PlanParallel;
use super::recovery::PlanRecovery;
use super::sessions::{EdgesInto, PlanSession};
use super::tool_server::{PlanToolServer, ServerGrant};
use super::verify::{PlanNoChange, PlanVerify};
use super::{Binding, HoldoutPlan, Plan, PlanSandbox, Shared};
use crate::components::PluginProblem;
use glovebox_host::grants::FileTier;
use glovebox_pipeline::ir::{Handler, Node};
use glovebox_pipeline::transform::RuleRecord;
use glovebox_record::Digest;
use glovebox_record::HookKind;
use glovebox_record::spend::{Price, SpendBounds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The version of the JSON a plan is printed as.
pub const PLAN_SCHEMA_VERSION: u32 = 1;

impl Plan {
    /// What `glovebox plan --json` prints.
    pub fn to_json(&self) -> PlanFile<'_> {
        let (mut known, mut could) = (EachBinding::default(), CapabilityLists::default());
        let edges = EdgesInto::of_pipeline(&self.pipeline);
        let node = |node: &Node| self.sessions_of(node, &edges);
        let sessions = self.pipeline.stages().map(node);
        let nodes = self.pipeline.stages().zip(sessions);
        let nodes = nodes.map(|(node, sessions)| PlanNode { sessions, ..self.plan_node(node, &mut known, &mut could) });
        let mut nodes: Vec<PlanNode<'_>> = nodes.collect();
        nodes.sort_by(|a, b| a.id.cmp(b.id));
        let bounds = self.pipeline.bounds;
        let has_parallel = self.pipeline.nodes.iter().any(|node| node.handler == Handler::Parallel);
        PlanFile {
            schema_version: PLAN_SCHEMA_VERSION,
            pipeline: &self.pipeline.name,
            could,
            nodes,
            sandbox_tier: self.commands.sandbox.tier_word(),
            sandbox: self.commands.sandbox.printed(),
            model: self.model_word(),
            models: self.printed_models(),
            tool_servers: self.printed_servers(),
            steps_max: bounds.steps_max,
            wall_max_ms: bounds.wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            spend_max: self.spend_max(SpendBounds::default()),
            price: self.models.price,
            disk_bytes_max: Some(self.bounds.disk_bytes_max),
            parallel_max: has_parallel.then_some(self.bounds.parallel_max),
            exec: PlanExec {
                toolchains: self.commands.exec.toolchains.iter().map(|toolchain| toolchain.as_str()).collect(),
                path: &self.commands.exec.path,
                env: &self.commands.exec.env,
            },
            workspace_include: &self.folders.include,
            dependencies: self.folders.dependencies.iter().map(ToString::to_string).collect(),
            dependency_stores: &self.folders.stores,
            holdouts: Some(self.holdout_plan()).filter(|holdouts| !holdouts.is_empty()),
            verify: self.checks.verify.as_deref().map(PlanVerify::new),
            no_change: self.checks.no_change.as_ref().map(PlanNoChange::new),
            recovery: self.checks.recovery.as_ref().map(PlanRecovery::new),
            rules: self.findings.rule_report.rules.clone(),
            transformed: self.findings.rule_report.transformed.as_ref().map(|text| Digest::hash(text.as_bytes())),
            unlocked: self.findings.unlocked.iter().map(PlanUnlocked::new).collect(),
            egress: Vec::new(),
            against: None,
            denied: None,
        }
    }

    /// A node as it is printed. What it could do is added to what all could.
    fn plan_node<'a>(
        &'a self,
        node: &'a Node,
        known: &mut EachBinding<Bound<'a>>,
        all: &mut CapabilityLists,
    ) -> PlanNode<'a> {
        let bound = self.binding(&node.id).map(|binding| known.get_or_make(binding, || self.bound(binding)));
        if let Some(((could, _), false)) = &bound {
            all.extend(could);
        }
        let (could, component) = bound.map(|((could, component), _)| (could, component)).unzip();
        let could = could.unwrap_or_default();
        PlanNode {
            id: node.id.as_str(),
            handler: node.handler.name(),
            could,
            asks: self.models.by_node.get(&node.id).map(PlanAsks::new),
            output_schema: node.agent.output_schema.as_ref().map(|schema| Digest::hash(schema.text().as_bytes())),
            sessions: Vec::new(),
            parallel: PlanParallel::for_node(&self.pipeline, node),
            component,
        }
    }

    fn bound<'a>(&self, binding: &'a Binding) -> Bound<'a> {
        let mut could = CapabilityLists::from_set(&self.of_binding(binding));
        // What a stage writes beside hold-outs is dropped, unless the node commits it.
        let is_dropped = !binding.keeps_writes() && (binding.tier != FileTier::None || binding.runs_commands());
        could.scratch.extend(binding.scope.write.iter().filter(|_| is_dropped).map(ToString::to_string));
        (Shared::new(could), Shared::new(plan_component(binding)))
    }
}

/// The shared part of nodes with the same binding.
type Bound<'a> = (Shared<CapabilityLists>, Shared<PlanComponent<'a>>);

/// A plan as it is printed. Every list is sorted or in file order.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "glovebox plan --json")]
pub struct PlanFile<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// The graph's name.
    pub pipeline: &'a str,
    /// The capabilities of all nodes together.
    pub could: CapabilityLists,
    /// One per node, by id.
    pub nodes: Vec<PlanNode<'a>>,
    /// Confinement of subprocesses: `full`, `bwrap`, `landlock` or `unconfined`; `none` when there can be none, `unavailable` when
    /// this machine has no tier that is good enough.
    pub sandbox_tier: &'static str,
    /// What the operator asks of it.
    pub sandbox: PlanSandbox<'a>,
    /// `scripted`, `live` or `simulated`.
    pub model: &'a str,
    /// The models that nodes ask; absent where that is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<PlanModel<'a>>,
    /// The tool servers that nodes may start; absent where that is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_servers: Vec<PlanToolServer<'a>>,
    /// Most steps of a run.
    pub steps_max: u64,
    /// Longest run, milliseconds; absent when unbounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// The budget of its model calls; absent when unlimited.
    #[serde(default, skip_serializing_if = "SpendBounds::is_open")]
    pub spend_max: SpendBounds,
    /// The price of a million tokens, in millionths of a dollar; absent where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Most bytes that the run's folder may hold when a stage begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_max: Option<u64>,
    /// Most stages at a time, of all branches together; absent without a parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_max: Option<usize>,
    /// How commands find their programs.
    pub exec: PlanExec<'a>,
    /// Ignored files the workspace takes along.
    pub workspace_include: &'a [String],
    /// Folders of installed dependencies, which commands see read-only; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Folders of the machine to which they link: stores of package managers and interpreters. Commands see them read-only; absent when
    /// there are none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub dependency_stores: &'a [MachineFolder],
    /// The hold-outs, and who may read them; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdouts: Option<HoldoutPlan>,
    /// The commands that verification stages run beside their plans; absent without such a stage, and without `[verify]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<PlanVerify<'a>>,
    /// The rule for agents that change nothing; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_change: Option<PlanNoChange<'a>>,
    /// The write recovery; absent unless the operator sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<PlanRecovery>,
    /// The rule plugins that checked the pipeline, in order, and what each changed; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRecord>,
    /// BLAKE3 of the pipeline as their transforms made it, in canonical text; absent when none changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformed: Option<Digest>,
    /// Plugins that are not in `glovebox.lock` as they are, so that `glovebox run` refuses them; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<PlanUnlocked<'a>>,
    /// Data of the user that could leave the machine, and its destination; absent when there is nothing to confirm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<PlanEgress>,
    /// The difference from another plan; absent without `--against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<PlanDiff>,
    /// Every grant that a rule of `--deny` refuses; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Vec<Denied>>,
}

/// A plugin that is not locked as it is.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanUnlocked<'a> {
    /// Its name.
    pub plugin: &'a str,
    /// The differences from the lock.
    pub reason: &'a str,
}

impl<'a> PlanUnlocked<'a> {
    fn new(problem: &'a PluginProblem) -> Self {
        Self { plugin: &problem.name, reason: &problem.message }
    }
}

/// The commands' environment.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanExec<'a> {
    /// Toolchains that are added.
    pub toolchains: Vec<&'static str>,
    /// Folders after the fixed PATH.
    pub path: &'a [String],
    /// Variables with values.
    pub env: &'a BTreeMap<String, String>,
}

/// A set of capabilities as lists of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityLists {
    /// Paths of the workspace, a trailing `/` is the subtree, `./` is all of it; absolute folders of the machine for commands.
    pub read: BTreeSet<String>,
    /// Paths of the workspace.
    pub write: BTreeSet<String>,
    /// Shell texts in full, argv as leading words followed by `…`, `*` for anything.
    pub execute: BTreeSet<String>,
    /// Hosts that commands could reach, `*` for whatever the machine can. Components reach none: no interface for it is linked.
    /// While the sandbox tier is `unconfined` commands are outside of this.
    pub reach: BTreeSet<String>,
    /// Folders that commands could write and that are dropped after the stage.
    #[serde(default)]
    pub scratch: BTreeSet<String>,
    /// Folders that commands could write and that are kept within the run, never committed.
    #[serde(default)]
    pub cache: BTreeSet<String>,
    /// Tools of servers that a model could call, such as `github.get_issue`; `github.*` for all of a server.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// Whether a model could be asked.
    pub model: bool,
}

impl CapabilityLists {
    /// Adds what another could do.
    pub fn extend(&mut self, other: &CapabilityLists) {
        self.read.extend(other.read.iter().cloned());
        self.write.extend(other.write.iter().cloned());
        self.execute.extend(other.execute.iter().cloned());
        self.reach.extend(other.reach.iter().cloned());
        self.scratch.extend(other.scratch.iter().cloned());
        self.cache.extend(other.cache.iter().cloned());
        self.tools.extend(other.tools.iter().cloned());
        self.model |= other.model;
    }

    /// Adds what a tool server does. What it reads its stage may read, and its variables are in the list of servers.
    fn add_server(&mut self, name: &str, grant: &ServerGrant) {
        let (list, text) = match grant {
            ServerGrant::Start(words) => (&mut self.execute, format!("{} (tool server {name})", words.join(" "))),
            ServerGrant::Tool(tool) => (&mut self.tools, format!("{name}.{tool}")),
            ServerGrant::AnyTool => (&mut self.tools, format!("{name}.*")),
            ServerGrant::Reach(host) => (&mut self.reach, format!("{host} (tool server {name})")),
            ServerGrant::FullNetwork => (&mut self.reach, format!("* (tool server {name})")),
            ServerGrant::Read(_) | ServerGrant::Variable(..) => return,
        };
        list.insert(text);
    }

    /// The parts of a set of capabilities.
    pub fn from_set(capabilities: &CapabilitySet) -> Self {
        use Capability as C;
        let mut lists = Self::default();
        for capability in capabilities.iter() {
            let (list, text): (_, &dyn fmt::Display) = match capability {
                C::Read(region) => (&mut lists.read, &region.entry),
                C::ReadMachine(folder) => (&mut lists.read, folder),
                C::Write(region) => (&mut lists.write, &region.entry),
                C::Scratch(entry) => (&mut lists.scratch, entry),
                C::Cache(entry) => (&mut lists.cache, entry),
                C::Shell(text) => (&mut lists.execute, text),
                C::Argv(words) => (&mut lists.execute, words),
                C::Hook(kind, text) => {
                    let when = if *kind == HookKind::Pre { "before" } else { "after" };
                    lists.execute.insert(format!("{text} ({when} each tool call)"));
                    continue;
                }
                C::ToolServer(name, grant) => {
                    lists.add_server(name, grant);
                    continue;
                }
                C::AnyCommand => (&mut lists.execute, &"*"),
                C::Agent(program) => (&mut lists.execute, program),
                C::Reach(host) => (&mut lists.reach, host),
                C::FullNetwork => (&mut lists.reach, &"*"),
                C::Model => {
                    lists.model = true;
                    continue;
                }
                C::ReadHoldouts(_)
                | C::Plugin(_)
                | C::TellHoldouts
                | C::CommitBesideHoldouts
                | C::Subject(_)
                | C::Toolchain(_)
                | C::Programs(_)
                | C::Variable(_)
                | C::Include(_)
                | C::SandboxTier(_)
                | C::Spend(..)
                | C::Limit(..)
                | C::Offer(..)
                | C::Default(_) => continue,
            };
            list.insert(text.to_string());
        }
        lists
    }
}

/// One node of a printed plan.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanNode<'a> {
    /// The node.
    pub id: &'a str,
    /// Its handler type.
    pub handler: &'a str,
    /// Its capabilities; empty when the engine passes it by itself.
    pub could: Shared<CapabilityLists>,
    /// The model that it asks; absent where no provider is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<PlanAsks<'a>>,
    /// BLAKE3 of the schema that its model's answer must match, as JSON in one line; absent where any answer is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Digest>,
    /// The context fidelity of its model's prompt, by incoming edge; absent where it is `compact`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<PlanSession>,
    /// How its branches run and end; absent where no branch begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<PlanParallel>,
    /// The handler; absent when the engine passes the node by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Shared<PlanComponent<'a>>>,
}

/// What executes a node.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanComponent<'a> {
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Whether it came with the binary.
    pub first_party: bool,
    /// `builder` or `verifier`; a verifier may have hold-outs in reach.
    pub role: &'static str,
    /// The world it was built for.
    pub world: &'a str,
    /// What it imports, sorted.
    pub imports: Vec<&'a str>,
    /// `none`, `workspace` or `posix`.
    pub filesystem: &'static str,
    /// Hidden paths.
    pub hidden: Vec<String>,
    /// Where its commands start, relative to the workspace; `.` is its root.
    pub workdir: String,
    /// Bounds of one attempt by name.
    pub limits: BTreeMap<&'static str, u64>,
    /// The origins of all grants, sorted.
    pub origins: Vec<PlanOrigin>,
}

/// The origin of a grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PlanOrigin {
    /// The grant, such as `write src/`.
    pub grant: String,
    /// Its giver, and those who narrowed it.
    pub from: String,
}

impl PlanOrigin {
    fn new(grant: &Grant) -> Self {
        Self { grant: grant.capability.to_string(), from: grant.origin.to_string() }
    }
}

fn plan_component(binding: &Binding) -> PlanComponent<'_> {
    let inspection = binding.component.inspection();
    let mut imports: Vec<&str> = inspection.imports.iter().map(|import| import.name.as_str()).collect();
    imports.sort();
    let mut origins: Vec<PlanOrigin> = binding.grants.iter().map(PlanOrigin::new).collect();
    origins.sort();
    PlanComponent {
        digest: binding.digest,
        first_party: binding.first_party,
        role: binding.role.as_str(),
        world: inspection.world,
        imports,
        filesystem: binding.tier.as_str(),
        hidden: binding.scope.hidden.iter().map(ToString::to_string).collect(),
        workdir: binding.command_access.workdir.to_string(),
        limits: binding.limits.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        origins,
    }
}
