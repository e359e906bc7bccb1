//! The checked pipeline: the result of `parse` and `lower`.
//!
//! Every known string attribute has a type here. Later steps refer to the text only by span. This crate runs nothing: it does not know
//! which component executes a handler, or what that component may touch.

use crate::child::Child;
use crate::condition::Condition;
pub use crate::fork::{ErrorPolicy, ForkSetting, JoinPolicy, Merge};
use crate::gate::GateSettings;
use crate::holdout_roles::{Copies, NodeHoldouts};
use crate::index::Index;
use crate::key;
use crate::keyed::Attributes;
pub use crate::keyed::{Attribute, Text};
use crate::lower::handler::{CHILD_EXIT, HandlerKind, Role};
use crate::restart::Restarts;
use crate::session::SessionSettings;
use crate::span::Span;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{LimitSettings, Network};
pub use glovebox_record::{NodeId, Status};
pub use glovebox_schema::Schema;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The behaviour of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// The entry point; does nothing.
    Start,
    /// An exit; the engine checks the goal gates there.
    Exit,
    /// An exit of a child pipeline: the engine checks the child's goal gates there, and its branch ends.
    ChildExit,
    /// Passes the previous outcome through and lets the edges decide.
    Conditional,
    /// Begins a branch for each edge (spec §4.8).
    Parallel,
    /// Joins the branches of a fork and takes the best (spec §4.9). It compares their outcomes, or the named component judges them.
    FanIn(Option<Text>),
    /// Asks a person; each outgoing edge is a choice.
    Human,
    /// A component does the work: `codergen`, `tool`, `verify`, or a plugin's `ns.name`.
    Component(Text),
    /// A handler of the specification that this version does not execute: `stack.manager_loop`, ….
    Unavailable(Text),
}

impl Handler {
    /// The handler type as written in a pipeline.
    pub fn name(&self) -> &str {
        match self {
            Handler::Start => "start",
            Handler::Exit => "exit",
            Handler::ChildExit => CHILD_EXIT,
            Handler::Conditional => "conditional",
            Handler::Parallel => "parallel",
            Handler::FanIn(None) => "parallel.fan_in",
            Handler::Human => "wait.human",
            Handler::Component(name) | Handler::Unavailable(name) | Handler::FanIn(Some(name)) => name,
        }
    }

    /// The component that does the work of the node; none where the engine itself does it.
    pub fn component(&self) -> Option<&Text> {
        match self {
            Handler::Component(name) | Handler::FanIn(Some(name)) => Some(name),
            _ => None,
        }
    }

    /// True for a handler whose component may ask a model: an agent, or a plugin, whose grants decide.
    pub fn may_ask_model(&self) -> bool {
        let kind = self.component().map(|name| HandlerKind::of(name));
        matches!(kind, Some(HandlerKind::Codergen | HandlerKind::Plugin))
    }

    /// True for a node that joins branches.
    pub fn is_fan_in(&self) -> bool {
        matches!(self, Handler::FanIn(_))
    }

    /// What the handler is.
    pub fn kind(&self) -> HandlerKind {
        HandlerKind::of(self.name())
    }
}

/// Where a node's commands work and what they can reach. It never grants more than the operator does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Confinement {
    /// `codex.workdir`: the folder where commands start (decision codex-read-scope).
    pub workdir: Option<Entry>,
    /// `codex.add_dirs`: more folders that they may read (decision codex-read-scope).
    pub add_dirs: Vec<Entry>,
    /// `codex.strict_read_scope`: they see only workdir, `add_dirs`, the agent's program and the write scope (decision codex-read-scope).
    pub strict_read_scope: bool,
    /// `codex.path`, if it names a file of the workspace.
    pub program: Option<Entry>,
    /// Folders that they may write; deleted after the stage.
    pub scratch: Vec<Entry>,
    /// Folders that they may write; kept during the run, never committed.
    pub cache: Vec<Entry>,
    /// `cache_from`: what fills the caches before their first use; none for empty caches.
    pub cache_from: Option<CacheFrom>,
    /// The most that they may reach over the network; the operator's grant is the maximum.
    pub network: Option<Network>,
}

/// The agent program of an agent stage (`agent.backend`, decision codex-options).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentBackend {
    /// Which one.
    pub program: AgentProgram,
    /// What the node says about it.
    pub options: ProgramOptions,
}

/// The files that fill a stage's caches before their first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheFrom {
    /// The files that the run began with, before any stage changed them.
    Base,
}

/// The words of `cache_from`.
pub const CACHE_SOURCES: &[(&str, CacheFrom)] = &[("base", CacheFrom::Base)];

/// The program under test of a verifying stage. By default there is none, and the stage's commands pass one to `subject`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// `verify_subject`: the shell text that `subject` runs if it has no arguments.
    pub command: Option<Text>,
    /// `verify_subject_port`, 1 to 65535: the command starts with the stage, and the stage's commands can reach this loopback port.
    pub port: Option<u16>,
}

/// Commands around each tool call of a node's model (spec §9.7). By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolHooks {
    /// `tool_hooks.pre`: the shell text before the call, which refuses the call unless it exits with 0.
    pub pre: Option<Text>,
    /// `tool_hooks.post`: the shell text after the call.
    pub post: Option<Text>,
    /// Whether the node has one of its own, not only those of the graph.
    pub is_own: bool,
}

/// The tools of other programs that a node's model may call, as the pipeline asks for them. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolServers {
    /// `mcp`: the name of a server, or `server.tool` for one of its tools, in file order.
    pub asked: Vec<String>,
    /// Whether the node has the attribute, not only the graph.
    pub is_own: bool,
}

impl ToolServers {
    /// Each server once, in file order, with the tools of it that are named; none of them if all are meant.
    pub fn servers(&self) -> Vec<(&str, Option<Vec<&str>>)> {
        let mut found: Vec<(&str, Option<Vec<&str>>)> = Vec::new();
        for (server, _) in self.parts() {
            if found.iter().all(|(known, _)| *known != server) {
                found.push((server, self.parts().filter(|(of, _)| *of == server).map(|(_, tool)| tool).collect()));
            }
        }
        found
    }

    fn parts(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.asked.iter().map(|text| text.split_once('.').map_or((text.as_str(), None), |(of, tool)| (of, Some(tool))))
    }
}

/// What the success of a goal gate needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRequires {
    /// Nothing but itself.
    #[default]
    Success,
    /// A receipt: a verifier's command passed there.
    Receipt,
}

/// The words of `gate_requires`.
pub const GATE_REQUIREMENTS: &[(&str, GateRequires)] =
    &[("success", GateRequires::Success), ("receipt", GateRequires::Receipt)];

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The displayed text; the id by default.
    pub label: Text,
    /// The Graphviz shape, `box` by default.
    pub shape: Text,
    /// What the node does.
    pub handler: Handler,
    /// Its part in the run; none if no component executes it.
    pub role: Option<Role>,
    /// The instruction with `$goal` expanded; the label by default for codergen (spec §2.6).
    pub prompt: Option<Text>,
    /// Additional attempts; none if the file sets none (decision what-is-retried).
    pub max_retries: Option<u32>,
    /// Back-off between attempts, from `retry_policy` or the default (spec §3.6).
    pub backoff: Backoff,
    /// What its model gets of what went before.
    pub session: SessionSettings,
    /// The node must succeed before the run may exit.
    pub goal_gate: bool,
    /// What its success needs to satisfy the gate.
    pub gate_requires: GateRequires,
    /// The stage whose last command must have passed before this one works (`required_tool_node`).
    pub required_tool: Option<NodeId>,
    /// The stage that runs its `verify_command`, named `ID.verify`; none without one.
    pub verification: Option<Box<Node>>,
    /// The next node after a failure or an unmet gate.
    pub retry_target: Option<NodeId>,
    /// Used if `retry_target` is absent.
    pub fallback_retry_target: Option<NodeId>,
    /// What it asks a person, if it is a human gate.
    pub gate: GateSettings,
    /// Maximum duration of one attempt.
    pub timeout: Option<Duration>,
    /// Maximum number of model turns in one attempt.
    pub max_turns: Option<u32>,
    /// What its model calls may cost in a run, all visits together.
    pub spend_max: SpendBounds,
    /// Maximum number of visits in a run (`max_visits`); none for no limit of its own.
    pub visits_max: Option<u32>,
    /// Maximum number of its steps in a run, retries and branches included (`max_steps`).
    pub steps_max: Option<u64>,
    /// Maximum wall time in which attempts of it are under way in a run (`max_wall_time`).
    pub wall_max: Option<Duration>,
    /// What it may write; none if the file does not set it (decision unset-write-scope).
    pub allowed_write_paths: Option<Vec<Entry>>,
    /// What it may read; none for the whole workspace.
    pub read_paths: Option<Vec<Entry>>,
    /// The confinement of its commands, within the operator's limits.
    pub confinement: Confinement,
    /// Commands that an agent may run: none, prefixes, or `*` for a shell (decision granted-agent-commands).
    pub allowed_commands: Option<Vec<String>>,
    /// Its settings for hold-outs.
    pub holdouts: NodeHoldouts,
    /// The program under test, which runs apart from the stage's own commands.
    pub subject: Subject,
    /// Commands around the tool calls of its model.
    pub tool_hooks: ToolHooks,
    /// The agent program that works in the place of Glovebox's own agent.
    pub backend: Option<AgentBackend>,
    /// Tools of other programs.
    pub tool_servers: ToolServers,
    /// What its model's last answer must look like.
    pub output_schema: Option<Arc<Schema>>,
    /// Limits from `limits.<name>` attributes.
    pub limits: LimitSettings,
    /// A missing status counts as a success (spec App. C, decision auto-status-fills-silence).
    pub auto_status: bool,
    /// A partial result is accepted when no retries are left.
    pub allow_partial: bool,
    /// Class names, its own and those of its subgraphs.
    pub classes: Vec<String>,
    /// How a fork ends; defaults for any other node.
    pub fork: ForkSetting,
    /// Whose changes a fan-in takes.
    pub merge: Merge,
    /// The child pipeline whose stages are the branch of this fork.
    pub child: Option<Box<Child>>,
    /// The node that runs the child pipeline that this node belongs to; none for a node of the file itself.
    pub child_of: Option<NodeId>,
    /// Every attribute, defaults included, by key.
    pub attributes: Attributes,
    /// The span of its first mention.
    pub span: Span,
}

impl Node {
    /// The node, and its verification if it has one.
    pub fn stages(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(self).chain(self.verification.as_deref())
    }

    /// Its name in its own file: a node of a child pipeline has that of the node that runs the child in front.
    pub fn own_name(&self) -> &str {
        let owner = self.child_of.as_ref().map_or("", NodeId::as_str);
        let inside = self.id.as_str().strip_prefix(owner).and_then(|rest| rest.strip_prefix("__"));
        inside.filter(|_| self.child_of.is_some()).unwrap_or(self.id.as_str())
    }
}

/// An element of the graph that has attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Element<'a> {
    Graph,
    Node(&'a NodeId),
    /// From one node to another.
    Edge(&'a NodeId, &'a NodeId),
}

/// A subgraph, for drawings. Its defaults and classes are already part of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgraph {
    /// Its name, if the file gives one.
    pub name: Option<String>,
    /// Its label, if the file gives one.
    pub label: Option<String>,
    /// The index of the subgraph around it.
    pub parent: Option<usize>,
    /// Indices of the nodes declared directly in it, ascending. Several subgraphs may declare the same node.
    pub members: Vec<usize>,
}

/// Delay between attempts (spec §3.6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The preset's total number of attempts, used if `max_retries` is absent.
    pub attempts: Option<u32>,
    /// Delay before the first retry, milliseconds.
    pub initial_ms: u64,
    /// Multiplier for each further retry.
    pub factor: f64,
    /// Maximum delay, milliseconds.
    pub max_ms: u64,
    /// Multiplies the delay by a random factor from 0.5 to 1.5.
    pub jitter: bool,
}

impl Default for Backoff {
    /// 200 ms, doubled for each retry up to a minute, with jitter (spec §3.6).
    fn default() -> Self {
        Self { attempts: None, initial_ms: 200, factor: 2.0, max_ms: 60_000, jitter: true }
    }
}

/// Index of an edge in [`Pipeline::edges`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIndex(pub usize);

/// One edge.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Source.
    pub from: NodeId,
    /// Target.
    pub to: NodeId,
    /// Caption and routing key.
    pub label: Text,
    /// The condition; none for an unconditional edge.
    pub condition: Option<Condition>,
    /// Priority, higher first.
    pub weight: i64,
    /// Wins over weights if no condition, label or id decides (decision edge-order).
    pub default: bool,
    /// Begins a new generation of the run at the target.
    pub loop_restart: bool,
    /// What the model of its target gets of what went before.
    pub session: SessionSettings,
    /// Every attribute by key.
    pub attributes: Attributes,
    /// The span of the source's name.
    pub from_span: Span,
    /// The span of the target's name.
    pub to_span: Span,
    /// Its span, from one name to the other.
    pub span: Span,
}

/// Limits of a whole run (decision bounds-and-flags). None means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of stage executions; [`STEPS_MAX_DEFAULT`] by default.
    pub steps_max: u64,
    /// Maximum wall time of the run.
    pub wall_max: Option<Duration>,
    /// What its model calls may cost.
    pub spend_max: SpendBounds,
}

/// Default of `loop_restart_signature_limit`, as other engines have it.
pub const SIGNATURE_LIMIT_DEFAULT: u32 = 3;

/// Default of `max_steps`: an endless loop stops here (other engines use 200 too).
pub const STEPS_MAX_DEFAULT: u64 = 200;

/// A checked pipeline. Nodes and edges are in file order.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// The graph's name.
    pub name: String,
    /// The goal, `--set` inputs expanded.
    pub goal: String,
    /// The displayed name; the graph's name by default.
    pub label: String,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order.
    pub edges: Vec<Edge>,
    /// Subgraphs in file order, an outer one before those in it; most files have none.
    pub subgraphs: Vec<Subgraph>,
    /// The start node.
    pub start: NodeId,
    /// Retries for nodes without `max_retries` (spec §2.5).
    pub default_max_retries: u32,
    /// Visits of a node that may end with the same failure; with the last of them the branch fails.
    pub signature_limit: u32,
    /// Restarts by edges with `loop_restart`.
    pub restarts: Restarts,
    /// The next node after an unmet gate without a target of its own.
    pub retry_target: Option<NodeId>,
    /// Used if `retry_target` is absent.
    pub fallback_retry_target: Option<NodeId>,
    /// Folders with hold-outs; none if the file names none.
    pub scenarios: Option<Vec<Entry>>,
    /// True if the caller found one of these folders ([`crate::Inputs::scenarios_found`]).
    pub scenarios_found: bool,
    /// The project's folders and files with sources, from the caller; a finding about a write scope offers them.
    pub sources: Vec<Entry>,
    /// Plugins that the operator binds as verifiers, by handler type ([`Pipeline::set_verifiers`]).
    pub verifiers: BTreeSet<String>,
    /// `scenario_copies`: whether the workspace may contain copies of hold-outs.
    pub scenario_copies: Copies,
    /// Bounds of a run.
    pub bounds: Bounds,
    /// What models get of what went before, where neither edge nor node says it.
    pub session: SessionSettings,
    /// True if some stage may continue a conversation, so that conversations must be kept.
    pub keeps_conversations: bool,
    /// Graph attributes by key.
    pub attributes: Attributes,
    /// The span of its name; of the whole graph if it has none.
    pub span: Span,
    /// Made when something first looks up a node.
    pub(crate) index: OnceLock<Index>,
}

impl Pipeline {
    /// Says which plugins the operator binds as verifiers, by handler type. All other plugins are builders.
    pub fn set_verifiers(&mut self, verifiers: BTreeSet<String>) {
        for node in &mut self.nodes {
            if node.handler.kind() == HandlerKind::Plugin {
                let role = if verifiers.contains(node.handler.name()) { Role::Verifier } else { Role::Builder };
                node.role = Some(role);
            }
        }
        self.verifiers = verifiers;
    }

    /// True if a built-in stage has no write scope, and so may write the whole workspace.
    pub fn has_open_scope(&self) -> bool {
        self.nodes.iter().any(|node| node.handler.kind().is_first_party() && node.allowed_write_paths.is_none())
    }

    /// Maximum number of stage executions of a run with this `--max-steps`: the smaller of flag and attribute (decision bounds-and-flags),
    /// or the default if neither is set.
    pub fn steps_max(&self, flag: Option<u64>) -> u64 {
        match flag {
            Some(flag) if self.attributes.contains_key(key::MAX_STEPS) => flag.min(self.bounds.steps_max),
            Some(flag) => flag,
            None => self.bounds.steps_max,
        }
    }

    /// What a run's model calls may cost with these flags: the smaller of each flag and attribute.
    pub fn spend_max(&self, flags: SpendBounds) -> SpendBounds {
        self.bounds.spend_max.least(flags)
    }

    /// Maximum wall time of a run with this `--max-wall-time`: the smaller of flag and attribute.
    pub fn wall_max(&self, flag: Option<Duration>) -> Option<Duration> {
        [flag, self.bounds.wall_max].into_iter().flatten().min()
    }

    /// The node with this id, or the verification of a node. The first call makes an index, which is linear in the file.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        let index = self.index();
        match index.place(id) {
            Some(place) => self.nodes.get(place.node?),
            None => self.nodes.get(index.place(&NodeId::new(id.verified()?))?.node?)?.verification.as_deref(),
        }
    }

    /// Everything that may run: the nodes in file order, each before its verification.
    pub fn stages(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flat_map(Node::stages)
    }

    /// Outgoing edges of a node with their indices, in file order.
    pub fn outgoing(&self, id: &NodeId) -> impl Iterator<Item = (EdgeIndex, &Edge)> {
        let indices = self.index().place(id).map_or(&[][..], |place| &place.edges);
        indices.iter().filter_map(|index| Some((EdgeIndex(*index), self.edges.get(*index)?)))
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.nodes, &self.edges))
    }
}
