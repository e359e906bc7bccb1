//! The types of a checked pipeline, which is the result of `parse` and `lower`.
//!
//! Every known attribute has a typed value here. Later steps refer to the source text only by span. This crate runs nothing: it
//! does not know which component executes a handler, or what that component may access. These types do not depend on the steps
//! that create or use them.

mod access;
mod agent;
mod bounds;
mod checks;
mod child;
mod edge;
mod gate;
mod handler;
pub mod holdouts;
mod index;
mod node;
mod parallel;
mod restart;
mod routing;
mod session;

pub use crate::keyed::{Attribute, Text};
pub use access::{Access, CACHE_SOURCES, CacheFrom, Confinement, Subject};
pub use agent::{AgentBackend, AgentSettings, ToolHooks, ToolProviders, ToolServers};
pub use bounds::{NodeBounds, RunBounds, STEPS_MAX_DEFAULT};
pub use checks::{Checks, GATE_REQUIREMENTS, GateRequires};
pub use child::{CYCLES_DEFAULT, Child, INTERVAL_DEFAULT, STEERING_KEY, Supervision};
pub use edge::{Edge, EdgeIndex};
pub use gate::GateSettings;
pub use glovebox_record::{NodeId, Status};
pub use glovebox_schema::Schema;
pub(crate) use handler::{CHILD_EXIT, FAN_IN_SHAPE, TYPES};
pub use handler::{Handler, HandlerKind, Role, SHAPES};
pub use node::Node;
pub use parallel::{
    ERROR_POLICIES, ErrorPolicy, JOIN_POLICIES, JoinPolicy, MAX_PARALLEL_DEFAULT, MERGES, Merge, ParallelSettings,
};
pub use restart::{RESTARTS_MAX_DEFAULT, Restarts};
pub use routing::{Backoff, Routing};
pub use session::SessionSettings;

use crate::key;
use crate::keyed::Attributes;
use crate::span::Span;
use glovebox_record::liveness::StallSettings;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use holdouts::Copies;
use index::Index;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

/// A subgraph, for drawings. Its defaults and classes have already been applied to its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgraph {
    /// Name of the subgraph, if the file gives one.
    pub name: Option<String>,
    /// Label of the subgraph, if the file gives one.
    pub label: Option<String>,
    /// Index of the enclosing subgraph.
    pub parent: Option<usize>,
    /// Indices of the nodes that are declared directly in this subgraph, ascending. Several subgraphs may declare the same node.
    pub members: Vec<usize>,
}

/// Default of `loop_restart_signature_limit`; other engines have the same default.
pub const SIGNATURE_LIMIT_DEFAULT: u32 = 3;

/// A checked pipeline. Nodes and edges are in file order.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Name of the graph.
    pub name: String,
    /// The goal, with the inputs of `--set` inserted.
    pub goal: String,
    /// The displayed name; by default the name of the graph.
    pub label: String,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order.
    pub edges: Vec<Edge>,
    /// Subgraphs in file order, an outer subgraph before those inside it; most files have none.
    pub subgraphs: Vec<Subgraph>,
    /// The start node.
    pub start: NodeId,
    /// Maximum number of retries for nodes without `max_retries` (spec §2.5).
    pub default_max_retries: u32,
    /// Number of visits of a node that end with the same failure before the branch fails. `None` if the graph does not
    /// set it.
    pub signature_limit: Option<u32>,
    /// Limits on restarts by edges with `loop_restart`.
    pub restarts: Restarts,
    /// The next node after an unsatisfied goal gate that has no retry target of its own.
    pub retry_target: Option<NodeId>,
    /// The node to use if `retry_target` is absent.
    pub fallback_retry_target: Option<NodeId>,
    /// Folders with hold-outs. `None` if the file does not name any.
    pub scenarios: Option<Vec<Entry>>,
    /// True if the caller found one of these folders ([`crate::Inputs::scenarios_found`]).
    pub scenarios_found: bool,
    /// The project's folders and files with sources, from the caller. Findings about a write scope suggest them.
    pub sources: Vec<Entry>,
    /// Plugins that the operator binds as verifiers, by handler type ([`Pipeline::set_verifiers`]).
    pub verifiers: BTreeSet<String>,
    /// Whether the workspace may contain copies of hold-outs (`scenario_copies`).
    pub scenario_copies: Copies,
    /// Limits of a run.
    pub bounds: RunBounds,
    /// Session settings of stages for which neither the edge nor the node has settings.
    pub session: SessionSettings,
    /// True if some stage may continue a conversation, so that conversations must be kept.
    pub keeps_conversations: bool,
    /// Graph attributes by key.
    pub attributes: Attributes,
    /// Span of the name of the graph, or of the whole graph if it has no name.
    pub span: Span,
    /// Index of nodes and edges, built at the first lookup of a node.
    pub(crate) index: OnceLock<Index>,
}

impl Pipeline {
    /// Sets which plugins the operator binds as verifiers, by handler type. All other plugins are builders.
    pub fn set_verifiers(&mut self, verifiers: BTreeSet<String>) {
        for node in &mut self.nodes {
            if node.handler.kind() == HandlerKind::Plugin {
                let role = if verifiers.contains(node.handler.name()) { Role::Verifier } else { Role::Builder };
                node.role = Some(role);
            }
        }
        self.verifiers = verifiers;
    }

    /// Returns true if a built-in stage has no write scope, so that it may write the whole workspace.
    pub fn has_open_scope(&self) -> bool {
        self.nodes.iter().any(|node| node.handler.kind().is_first_party() && node.access.allowed_write_paths.is_none())
    }

    /// Returns the maximum number of steps of a run with this `--max-steps`: the smaller of flag and attribute
    /// (decision bounds-and-flags), or the default if neither is set.
    pub fn steps_max(&self, flag: Option<u64>) -> u64 {
        match flag {
            Some(flag) if self.attributes.contains_key(key::MAX_STEPS) => flag.min(self.bounds.steps_max),
            Some(flag) => flag,
            None => self.bounds.steps_max,
        }
    }

    /// Returns the budget of a run's model calls: the smaller of flag and attribute for each bound.
    pub fn spend_max(&self, flags: SpendBounds) -> SpendBounds {
        self.bounds.spend_max.least(flags)
    }

    /// Returns the maximum wall time of a run with this `--max-wall-time`: the smaller of flag and attribute.
    pub fn wall_max(&self, flag: Option<Duration>) -> Option<Duration> {
        [flag, self.bounds.wall_max].into_iter().flatten().min()
    }

    /// Returns the settings of the stall watchdog of a run with these flags: the lower of each flag and attribute.
    pub fn stall(&self, flags: StallSettings) -> StallSettings {
        self.bounds.stall.least(flags)
    }

    /// Returns the node or the verification with this id. The first call builds an index, in time linear in the length
    /// of the file.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        let index = self.index();
        match index.place(id) {
            Some(place) => self.nodes.get(place.node?),
            None => self.nodes.get(index.place(&NodeId::new(id.verified()?))?.node?)?.checks.verification.as_deref(),
        }
    }

    /// Returns all stages that may run: the nodes in file order, each before its verification.
    pub fn stages(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flat_map(Node::stages)
    }

    /// Returns the outgoing edges of a node with their indices, in file order.
    pub fn outgoing(&self, id: &NodeId) -> impl Iterator<Item = (EdgeIndex, &Edge)> {
        let indices = self.index().place(id).map_or(&[][..], |place| &place.edges);
        indices.iter().filter_map(|index| Some((EdgeIndex(*index), self.edges.get(*index)?)))
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.nodes, &self.edges))
    }
}
