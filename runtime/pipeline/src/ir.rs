//! The checked pipeline: what text becomes when `parse` and `lower` are through with it.
//!
//! Every string attribute that means something has a type here. Nothing below refers back to the text except by span, and
//! nothing runs: who executes a handler, and what it may touch, is not known in this crate.

use crate::condition::Condition;
use crate::holdouts::{Copies, NodeHoldouts};
use crate::keyed::Attributes;
use crate::span::Span;
pub use glovebox_record::{NodeId, Status};
use std::collections::BTreeMap;
use std::time::Duration;

/// A text that is not changed: up to 23 bytes stand where it is used, a longer one is shared by its copies. A file of ten
/// thousand nodes has a hundred thousand of them.
pub type Words = smol_str::SmolStr;

/// What gives a node its behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// The entry point; does nothing.
    Start,
    /// An exit; the engine checks the goal gates there.
    Exit,
    /// Passes the previous outcome through and lets the edges decide.
    Conditional,
    /// A component does the work: `codergen`, `tool`, `verify`, or a plugin's own `ns.name`.
    Component(Words),
    /// A handler of the specification that this version does not execute: `parallel`, `wait.human`, ….
    Unavailable(Words),
}

impl Handler {
    /// The handler type as written in a pipeline.
    pub fn name(&self) -> &str {
        match self {
            Handler::Start => "start",
            Handler::Exit => "exit",
            Handler::Conditional => "conditional",
            Handler::Component(name) | Handler::Unavailable(name) => name,
        }
    }
}

/// An attribute's text and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The value with escapes resolved.
    pub value: Words,
    /// The key's place.
    pub key_span: Span,
    /// The value's place, quotes included.
    pub span: Span,
}

/// A list of workspace paths as written: `main.go,src/` (seed 2). Checked: relative, no `..`, no empty entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathList(pub Vec<String>);

/// What a node says about where its commands work and what they reach. Nothing in it grants more than the operator does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// `codex.workdir`: where commands start, `./` for the workspace itself, a final `/` otherwise (seed 2).
    pub workdir: Option<String>,
    /// `codex.add_dirs`: folders that are read beside it, each with a final `/` (seed 2).
    pub add_dirs: PathList,
    /// `codex.strict_read_scope`: nothing is seen but workdir, `add_dirs`, the agent's program and the write scope (seed 2).
    pub strict_read_scope: bool,
    /// `codex.path`, where it names a file of the workspace.
    pub program: Option<String>,
    /// Folders that may be written and are dropped after the stage.
    pub scratch: PathList,
    /// Folders that may be written and are kept within the run, never committed.
    pub cache: PathList,
    /// `cache_from`: what fills the caches before their first use. None means nothing.
    pub cache_from: Option<CacheFrom>,
    /// What its commands shall reach, at most.
    pub network: Option<NetworkWish>,
}

/// What a stage's caches are filled from before their first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFrom {
    /// The files that the run began with, before any stage changed them.
    Base,
}

/// The words of `cache_from`.
pub const CACHE_SOURCES: &[(&str, CacheFrom)] = &[("base", CacheFrom::Base)];

/// The program under test of a stage that verifies. The default names none: the stage's commands say what `subject` starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// `verify_subject`: the shell text that `subject` without words starts.
    pub command: Option<Words>,
    /// `verify_subject_port`: the command starts with the stage, and this port of its loopback is reachable for the stage's
    /// commands. 1 to 65535.
    pub port: Option<u16>,
}

/// What a node's commands shall reach over the network; less than the operator grants, or as much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkWish {
    /// Nothing but a loopback of their own.
    None,
    /// Some domains through the host's proxy, as written.
    Proxy(Vec<String>),
    /// Whatever the machine can reach.
    Full,
}

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// What people see; the name when the file gives none.
    pub label: Words,
    /// The Graphviz shape, `box` by default.
    pub shape: Words,
    /// What executes it.
    pub handler: Handler,
    /// The instruction, `$goal` expanded; falls back to the label for codergen (spec §2.6).
    pub prompt: Option<Words>,
    /// Additional attempts; none when the file does not say (design §9 #1).
    pub max_retries: Option<u32>,
    /// Back-off between attempts, from `retry_policy` or the default (spec §3.6).
    pub backoff: Backoff,
    /// Must have succeeded before the pipeline may exit.
    pub goal_gate: bool,
    /// Where to go when it fails or its gate is unmet.
    pub retry_target: Option<NodeId>,
    /// The second choice for that.
    pub fallback_retry_target: Option<NodeId>,
    /// Longest execution of one attempt.
    pub timeout: Option<Duration>,
    /// Most model turns in one attempt.
    pub max_turns: Option<u32>,
    /// What it may write; none when the file does not say (design §9 #21).
    pub allowed_write_paths: Option<PathList>,
    /// What it may read; none means all of the workspace.
    pub read_paths: Option<PathList>,
    /// What confines its commands beyond what the operator decided.
    pub confinement: Confinement,
    /// Commands an agent may run: none, prefixes, or `*` for a shell (design §9 #24).
    pub allowed_commands: Option<Vec<String>>,
    /// What it says about hold-outs.
    pub holdouts: NodeHoldouts,
    /// The program under test, which runs apart from the stage's own commands.
    pub subject: Subject,
    /// Limits set by `limits.<name>` attributes, in the unit the name ends in (bytes, milliseconds, else a count).
    pub limits: BTreeMap<String, u64>,
    /// Success without a word from the handler is accepted (spec App. C, design §9 #14).
    pub auto_status: bool,
    /// A partial result is accepted when retries are used up.
    pub allow_partial: bool,
    /// Class names, own and derived from subgraphs.
    pub classes: Vec<String>,
    /// Every attribute, defaults included, by key.
    pub attributes: Attributes,
    /// The place of its first mention.
    pub span: Span,
}

/// A subgraph as a part of the picture. What it means for its nodes, defaults and classes, is in the nodes already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgraph {
    /// Its name; none when the file gives none.
    pub name: Option<String>,
    /// Its label; none when the file gives none.
    pub label: Option<String>,
    /// The index of the subgraph around it.
    pub parent: Option<usize>,
    /// Indices of the nodes that are declared directly in it, ascending. A node may be declared in several.
    pub members: Vec<usize>,
}

/// Delay between attempts (spec §3.6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// Attempts in all that a preset brings when `max_retries` is absent.
    pub attempts: Option<u32>,
    /// Delay before the first retry, milliseconds.
    pub initial_ms: u64,
    /// Multiplier for each further retry.
    pub factor: f64,
    /// Longest delay, milliseconds.
    pub max_ms: u64,
    /// Whether the delay is multiplied by 0.5 to 1.5.
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
    pub label: Words,
    /// Guard; none means unconditional.
    pub condition: Option<Condition>,
    /// Priority, higher first.
    pub weight: i64,
    /// Taken before weights when nothing else matched (seed 1).
    pub default: bool,
    /// Asks for a fresh run at the target.
    pub loop_restart: bool,
    /// Every attribute by key.
    pub attributes: Attributes,
    /// The place of the source's name.
    pub from_span: Span,
    /// The place of the target's name.
    pub to_span: Span,
    /// Its place, from one name to the other.
    pub span: Span,
}

/// Bounds of a whole run (design §9 #23). None means unlimited except where a default is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Stage executions; [`STEPS_MAX_DEFAULT`] when the file does not say.
    pub steps_max: u64,
    /// Wall time of the run.
    pub wall_max: Option<Duration>,
}

/// Default of `max_steps`: a loop without an end stops here (seed 1; peers use 200).
pub const STEPS_MAX_DEFAULT: u64 = 200;

/// A checked pipeline. Nodes and edges are in file order.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// The graph's name.
    pub name: String,
    /// The goal, `--set` inputs expanded.
    pub goal: String,
    /// Display name, the graph's name when absent.
    pub label: String,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order.
    pub edges: Vec<Edge>,
    /// Subgraphs in file order, each before those in it; most files have none.
    pub subgraphs: Vec<Subgraph>,
    /// The start node.
    pub start: NodeId,
    /// Retries for nodes that do not say (spec §2.5).
    pub default_max_retries: u32,
    /// Where to go when a gate is unmet and its node names no target.
    pub retry_target: Option<NodeId>,
    /// The second choice for that.
    pub fallback_retry_target: Option<NodeId>,
    /// Folders with hold-outs, each with a final slash; none when the file does not say.
    pub scenarios: Option<PathList>,
    /// True when the caller found one of these folders ([`crate::Inputs::scenarios_found`]).
    pub scenarios_found: bool,
    /// `scenario_copies`: whether the workspace may hold copies of hold-outs.
    pub scenario_copies: Copies,
    /// Bounds of a run.
    pub bounds: Bounds,
    /// Graph attributes by key.
    pub attributes: Attributes,
    /// The place of its name, of the whole graph when it has none.
    pub span: Span,
}

impl Pipeline {
    /// Most stage executions of a run that was started with this `--max-steps`: the lower of flag and attribute (design §9 #23).
    /// The default holds only when neither says.
    pub fn steps_max(&self, flag: Option<u64>) -> u64 {
        match flag {
            Some(flag) if self.attributes.contains_key("max_steps") => flag.min(self.bounds.steps_max),
            Some(flag) => flag,
            None => self.bounds.steps_max,
        }
    }

    /// Longest wall time of a run that was started with this `--max-wall-time`: the lower of flag and attribute.
    pub fn wall_max(&self, flag: Option<Duration>) -> Option<Duration> {
        [flag, self.bounds.wall_max].into_iter().flatten().min()
    }

    /// The node of that name. Linear; the engine keeps its own index.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| &node.id == id)
    }

    /// Outgoing edges of a node with their indices, in file order.
    pub fn outgoing<'a>(&'a self, id: &'a NodeId) -> impl Iterator<Item = (EdgeIndex, &'a Edge)> {
        self.edges
            .iter()
            .enumerate()
            .filter(move |(_, edge)| &edge.from == id)
            .map(|(index, edge)| (EdgeIndex(index), edge))
    }
}
