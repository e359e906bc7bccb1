//! A plan as `glovebox plan --json` prints it: what each node, and all nodes together, could read, write, execute and reach.
//!
//! The order is fixed, so two plans can be compared line by line, and the plan's digest covers the text. This module makes no
//! decisions.

use super::capability::{Capability, MachineFolder};
use super::capability_set::{CapabilitySet, EachBinding};
use super::compare::PlanDiff;
use super::deny::Denied;
use super::egress::PlanEgress;
use super::models::{PlanAsks, PlanModel};
use super::origin::Grant;
use super::parallel::PlanParallel;
use super::placement::PlanLacking;
use super::policy::PlanPolicy;
use super::recovery::PlanRecovery;
use super::sessions::{EdgesInto, PlanSession};
use super::tool_provider::PlanToolProvider;
use super::tool_server::{PlanToolServer, ServerGrant};
use super::verify::{PlanNoChange, PlanVerify};
use super::{Binding, HoldoutPlan, Plan, PlanSandbox, Shared};
use crate::components::PluginProblem;
use glovebox_host::grants::FileTier;
use glovebox_pipeline::ir::{Handler, Node};
use glovebox_pipeline::transform::RuleRecord;
use glovebox_record::Digest;
use glovebox_record::HookKind;
use glovebox_record::Need;
use glovebox_record::liveness::StallSettings;
use glovebox_record::spend::{Price, SpendBounds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The version of the JSON format of a plan.
pub const PLAN_SCHEMA_VERSION: u32 = 1;

impl Plan {
    /// Returns what `glovebox plan --json` prints.
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
            digest: None,
            pipeline: &self.pipeline.name,
            could,
            nodes,
            sandbox_tier: self.commands.sandbox.tier_word(),
            sandbox: self.commands.sandbox.printed(),
            model: self.model_word(),
            models: self.printed_models(),
            tool_servers: self.printed_servers(),
            tool_providers: self.printed_providers(),
            steps_max: bounds.steps_max,
            wall_max_ms: bounds.wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            stall: bounds.stall,
            spend_max: self.spend_max(SpendBounds::default()),
            price: self.models.price,
            disk_bytes_max: Some(self.bounds.disk_bytes_max),
            parallel_max: has_parallel.then_some(self.bounds.parallel_max),
            exec: PlanExec {
                toolchains: self.commands.exec.toolchains.iter().map(|toolchain| toolchain.as_str()).collect(),
                venv: self.commands.exec.venv.as_ref().map(|venv| venv.path.as_str()),
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
            policies: self.printed_policies(),
            rules: self.findings.rule_report.rules.clone(),
            transformed: self.findings.rule_report.transformed.as_ref().map(|text| Digest::hash(text.as_bytes())),
            lacking: self.placement.printed(),
            unlocked: self.findings.unlocked.iter().map(PlanUnlocked::new).collect(),
            egress: Vec::new(),
            against: None,
            denied: None,
        }
    }

    /// Returns a node as it is printed, and adds its capabilities to those of all nodes.
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
            runs_on: self.placement.need(&node.id),
            component,
        }
    }

    fn bound<'a>(&self, binding: &'a Binding) -> Bound<'a> {
        let mut could = CapabilityLists::from_set(&self.of_binding(binding));
        // Files that a stage writes while it can read hold-outs are discarded, unless the node commits them.
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
    /// Digest of the plan, which `run --plan` takes. It covers everything but what depends on the machine and what a
    /// resume may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The graph's name.
    pub pipeline: &'a str,
    /// The capabilities of all nodes together.
    pub could: CapabilityLists,
    /// The nodes, by id.
    pub nodes: Vec<PlanNode<'a>>,
    /// The sandbox tier of commands: `full`, `bwrap`, `landlock` or `unconfined`; `none` if no node can start a process;
    /// `unavailable` if this machine has no tier that the operator accepts.
    pub sandbox_tier: &'static str,
    /// The operator's settings for the sandbox.
    pub sandbox: PlanSandbox<'a>,
    /// The source of model answers: `scripted`, `live` or `simulated`.
    pub model: &'a str,
    /// The models that nodes ask. Absent if no node asks a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<PlanModel<'a>>,
    /// The tool servers that nodes may start. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_servers: Vec<PlanToolServer<'a>>,
    /// The plugins whose tools nodes may call. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_providers: Vec<PlanToolProvider<'a>>,
    /// Maximum number of steps of a run.
    pub steps_max: u64,
    /// Maximum duration of a run, in milliseconds. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// Settings of the stall watchdog. Absent if they are the default.
    #[serde(default, skip_serializing_if = "StallSettings::is_default")]
    pub stall: StallSettings,
    /// The budget of the run's model calls. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "SpendBounds::is_unlimited")]
    pub spend_max: SpendBounds,
    /// The price of a million tokens, in millionths of a US dollar. Absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Maximum number of bytes in the run's folder when a stage begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_max: Option<u64>,
    /// Maximum number of stages at a time, of all branches together. Absent without a parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_max: Option<usize>,
    /// How commands find their programs.
    pub exec: PlanExec<'a>,
    /// Ignored files that are copied into the workspace.
    pub workspace_include: &'a [String],
    /// Folders of installed dependencies. Commands see them read-only or, in a stage with explicit `allowed_write_paths`, through a
    /// layer that is dropped after the stage. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Folders of the machine to which `dependencies` link: stores of package managers and interpreters. Commands see them
    /// read-only. Absent if there are none.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub dependency_stores: &'a [MachineFolder],
    /// The hold-outs, and the nodes that may read them. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdouts: Option<HoldoutPlan>,
    /// The commands that verification stages run in addition to a model's plan. Absent without a verification stage or
    /// without `[verify]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<PlanVerify<'a>>,
    /// The rule for agents that change nothing. Absent if the operator sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_change: Option<PlanNoChange<'a>>,
    /// The write recovery. Absent unless the operator enables it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<PlanRecovery>,
    /// The policies that judge tool calls and edges, in order. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PlanPolicy<'a>>,
    /// The rule plugins that checked the pipeline, in order, and the changes of each. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleRecord>,
    /// BLAKE3 of the transformed pipeline, in canonical text. Absent if no rule plugin changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformed: Option<Digest>,
    /// The nodes that this machine cannot run, so that `glovebox run` refuses the plan here. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<PlanLacking<'a>>,
    /// Plugins that are not in `glovebox.lock` or differ from it, so that `glovebox run` refuses them. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<PlanUnlocked<'a>>,
    /// Data of the user that could leave the machine, and its destination. Absent if there is nothing to confirm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<PlanEgress>,
    /// The differences from another plan. Absent without `--against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<PlanDiff>,
    /// The grants that a rule of `--deny` refuses. Absent without such a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Vec<Denied>>,
}

/// A plugin that is not in the lock file or differs from it.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanUnlocked<'a> {
    /// The name of the plugin.
    pub plugin: &'a str,
    /// The difference from the lock file.
    pub reason: &'a str,
}

impl<'a> PlanUnlocked<'a> {
    fn new(problem: &'a PluginProblem) -> Self {
        Self { plugin: &problem.name, reason: &problem.message }
    }
}

/// The environment of commands.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanExec<'a> {
    /// Toolchains whose folders and variables are added.
    pub toolchains: Vec<&'static str>,
    /// An environment of Python outside of the project. Its programs come first in PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venv: Option<&'a str>,
    /// Folders that are added after the fixed PATH.
    pub path: &'a [String],
    /// Environment variables and their values.
    pub env: &'a BTreeMap<String, String>,
}

/// A set of capabilities as lists of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityLists {
    /// Paths of the workspace: a final `/` means the subtree, and `./` all of it. Also absolute folders of the machine that
    /// commands may read.
    pub read: BTreeSet<String>,
    /// Paths of the workspace that could be written.
    pub write: BTreeSet<String>,
    /// Complete shell texts; commands as their first words followed by `…`; `*` for any command.
    pub execute: BTreeSet<String>,
    /// Hosts that commands could reach; `*` for everything that the machine can reach. Components reach no host, because no
    /// interface for it is linked. Commands in the tier `unconfined` are not limited by this list.
    pub reach: BTreeSet<String>,
    /// Folders that commands could write and that are discarded after the stage.
    #[serde(default)]
    pub scratch: BTreeSet<String>,
    /// Folders that commands could write and that are kept within the run, but never committed.
    #[serde(default)]
    pub cache: BTreeSet<String>,
    /// Tools that a model could call: those of servers, such as `github.get_issue`, with `github.*` for all tools of a server; and those
    /// of plugins, such as `acme.search/find`, with `acme.search/*` for all tools of a plugin.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// True if commands could read every commit and branch of the project's repository. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history: bool,
    /// True if a model could be asked.
    pub model: bool,
}

impl CapabilityLists {
    /// Adds the capabilities of another set.
    pub fn extend(&mut self, other: &CapabilityLists) {
        self.read.extend(other.read.iter().cloned());
        self.write.extend(other.write.iter().cloned());
        self.execute.extend(other.execute.iter().cloned());
        self.reach.extend(other.reach.iter().cloned());
        self.scratch.extend(other.scratch.iter().cloned());
        self.cache.extend(other.cache.iter().cloned());
        self.tools.extend(other.tools.iter().cloned());
        self.history |= other.history;
        self.model |= other.model;
    }

    /// Adds a grant of a tool server. Its read paths are not added, because the stage may read them too, and its variables
    /// are in the list of servers.
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

    /// Creates the lists of a set of capabilities.
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
                C::ToolProvider(name, grant) => {
                    match grant {
                        ServerGrant::Tool(tool) => lists.tools.insert(format!("{name}/{tool}")),
                        ServerGrant::AnyTool => lists.tools.insert(format!("{name}/*")),
                        // The stage may read these paths too. A plugin has no other grant.
                        _ => false,
                    };
                    continue;
                }
                C::AnyCommand => (&mut lists.execute, &"*"),
                C::Agent(program) => (&mut lists.execute, program),
                C::Reach(host) => (&mut lists.reach, host),
                C::FullNetwork => (&mut lists.reach, &"*"),
                C::History => {
                    lists.history = true;
                    continue;
                }
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
    /// The node's id.
    pub id: &'a str,
    /// The handler type of the node.
    pub handler: &'a str,
    /// The capabilities of the node. Empty for a control node.
    pub could: Shared<CapabilityLists>,
    /// The model that the node asks. Absent if it asks no provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<PlanAsks<'a>>,
    /// BLAKE3 of the JSON schema, in one line, that the model's answer must match. Absent if any answer is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Digest>,
    /// The context fidelity of the model's prompt, by incoming edge. Absent if it is always `compact`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<PlanSession>,
    /// How the branches of the node run and end. Absent for a node that is not a parallel node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<PlanParallel>,
    /// What the machine of the node must have: labels by name, `arch=` and `tier=`. Absent if every machine has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<&'a Need>,
    /// The component that executes the node. Absent for a control node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Shared<PlanComponent<'a>>>,
}

/// The component that executes a node.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanComponent<'a> {
    /// BLAKE3 of the component's bytes.
    pub digest: Digest,
    /// True if the component is built in.
    pub first_party: bool,
    /// `builder` or `verifier`. Only a verifier can read hold-outs by default.
    pub role: &'static str,
    /// The world that the component targets.
    pub world: &'a str,
    /// The imports of the component, sorted.
    pub imports: Vec<&'a str>,
    /// How the component reaches files: `none`, `workspace` or `posix`.
    pub filesystem: &'static str,
    /// The hidden paths of the stage.
    pub hidden: Vec<String>,
    /// The working directory of commands, relative to the workspace; `.` is its root.
    pub workdir: String,
    /// Limits of one attempt, by name.
    pub limits: BTreeMap<&'static str, u64>,
    /// What the author of a plugin wants, sorted; absent for a built-in component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<PlanWant>,
    /// The origins of all grants, sorted.
    pub origins: Vec<PlanOrigin>,
}

/// What the author of a plugin wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanWant {
    /// The want, such as `read src/`.
    pub want: String,
    /// True if the operator grants all of it.
    pub granted: bool,
}

/// The origin of a grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PlanOrigin {
    /// The grant, such as `write src/`.
    pub grant: String,
    /// What allows the capability, then what narrows it, separated by commas, such as `` `allowed_commands` of the node
    /// ``.
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
        wants: binding
            .wants
            .iter()
            .map(|want| PlanWant { want: want.line.to_string(), granted: want.is_granted })
            .collect(),
        origins,
    }
}
