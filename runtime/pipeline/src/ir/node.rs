//! One node.

use super::holdouts::NodeHoldouts;
use super::{
    AgentBackend, Backoff, Child, Confinement, GateRequires, GateSettings, Handler, HandlerKind, Merge, NodeId,
    ParallelSettings, Role, Schema, SessionSettings, Subject, Text, ToolHooks, ToolServers,
};
use crate::keyed::Attributes;
use crate::span::Span;
use glovebox_record::LimitSettings;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use std::sync::Arc;
use std::time::Duration;

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
    pub fork: ParallelSettings,
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

    /// True if it runs a child pipeline whose stages are not part of the pipeline yet.
    pub fn wants_child(&self) -> bool {
        matches!(self.handler, Handler::Unavailable(_))
            && matches!(self.handler.kind(), HandlerKind::Subpipeline | HandlerKind::Manager)
    }

    /// True for a builder: hold-outs test its work, so it must not learn them.
    pub fn is_builder(&self) -> bool {
        self.role == Some(Role::Builder)
    }

    /// True for a verifier: it tests the work of builders and may have hold-outs in reach.
    pub fn is_verifier(&self) -> bool {
        self.role == Some(Role::Verifier)
    }
}
