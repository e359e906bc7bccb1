//! What the binder reads from a node, and the place to which a message about the node points.
//!
//! Nodes with equal requests get the same binding, and a file can have thousands of nodes, so the binder computes the
//! binding of each [`Request`] once. This is correct because a binding depends only on the request. The binder knows
//! the node itself only as a [`Place`].

use super::role::HandlerSource;
use crate::verify::{self, Verify};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::holdouts::NodeHoldouts;
use glovebox_pipeline::ir::{
    AgentBackend, Confinement, HandlerKind, Node, NodeId, Role, Subject, ToolHooks, ToolProviders, ToolServers,
};
use glovebox_pipeline::key::{self, Key};
use glovebox_pipeline::reach::{self, HoldoutReach, ReachReason};
use glovebox_pipeline::span::Span;
use glovebox_record::LimitSettings;
use glovebox_record::scope::Entry;
use std::fmt;
use std::time::Duration;

/// What a node asks for. Nodes with equal requests get equal bindings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request<'a> {
    /// The handler type.
    pub handler: &'a str,
    /// The paths that the node asks to read. `None` if the node does not name any.
    pub read_paths: Option<&'a [Entry]>,
    /// The paths that the node asks to write. `None` if the node does not name any.
    pub write_paths: Option<&'a [Entry]>,
    /// The node's attributes for the sandbox of commands.
    pub confinement: &'a Confinement,
    /// The node's attributes for hold-outs.
    pub holdouts: &'a NodeHoldouts,
    /// The program under test.
    pub subject: &'a Subject,
    /// The hooks before and after the tool calls of the node.
    pub hooks: &'a ToolHooks,
    /// The agent program that the node names. `None` if it names none.
    pub backend: Option<&'a AgentBackend>,
    /// The tool servers that the node names.
    pub tool_servers: &'a ToolServers,
    /// The plugins whose tools the node names.
    pub tool_providers: &'a ToolProviders,
    /// The commands that the node asks to run.
    pub commands: &'a [String],
    /// The node's role in a verify contract. `None` for a stage that runs no verification.
    pub verification_role: Option<verify::Role<'a>>,
    /// The file of the hold-outs that has the schema of a `json-schema` stage.
    pub sealed_schema: Option<&'a str>,
    /// The text that the handler runs in a shell.
    pub shell_text: Option<&'a str>,
    /// Maximum duration of an attempt. `None` if the node sets none.
    pub timeout: Option<Duration>,
    /// Maximum number of model turns. `None` if the node sets none.
    pub max_turns: Option<u32>,
    /// The limits that the node lowers.
    pub limits: &'a LimitSettings,
    /// For each hold-out folder, the reason why a verifier may read it. Empty for a builder.
    reasons: Vec<(&'a Entry, Option<ReachReason<'a>>)>,
}

/// The hold-outs of a pipeline and of a run.
#[derive(Debug, Clone, Copy)]
pub struct Holdouts<'a> {
    /// The paths that the pipeline's verifiers can read.
    pub reach: &'a HoldoutReach,
    /// The folders that are sealed in this run.
    pub sealed: &'a [Entry],
    /// The commands that verification stages run in addition to a model's plan.
    pub verify: Option<&'a Verify>,
}

impl<'a> Holdouts<'a> {
    /// Returns why a verifier may read a hold-out folder: because of the node itself, or of the verify contract of a
    /// verification stage.
    fn reach_reason(self, node: &'a Node, folder: &Entry) -> Option<ReachReason<'a>> {
        reach::reach_reason(node, folder).or_else(|| {
            let commands = self.verify?.commands(verify::Role::for_node(node));
            reach::contract_reason(node, folder, commands.into_iter().map(|command| command.line.as_str()))
        })
    }
}

impl<'a> Request<'a> {
    /// Reads the request of a node that this handler executes.
    pub fn new(node: &'a Node, source: HandlerSource<'a>, holdouts: Holdouts<'a>) -> Self {
        let shell_text = HandlerKind::from_name(source.name).command().and_then(|key| node.attributes.get(key));
        let checks_json = node.handler.kind() == HandlerKind::JsonSchema;
        let sealed_schema = node.attributes.get(key::JSON_SCHEMA_HOLDOUT).filter(|_| checks_json);
        let is_verifier = source.role() == Role::Verifier;
        let folders = holdouts.reach.folders().iter().chain(holdouts.sealed).filter(|_| is_verifier);
        Self {
            handler: source.name,
            read_paths: node.access.read_paths.as_deref(),
            write_paths: node.access.allowed_write_paths.as_deref(),
            confinement: &node.access.confinement,
            holdouts: &node.access.holdouts,
            subject: &node.access.subject,
            hooks: &node.agent.tool_hooks,
            backend: node.agent.backend.as_ref(),
            tool_servers: &node.agent.tool_servers,
            tool_providers: &node.agent.tool_providers,
            commands: node.access.allowed_commands.as_deref().unwrap_or_default(),
            verification_role: verify::Role::for_node(node),
            sealed_schema: sealed_schema.map(|attribute| attribute.value.trim()),
            shell_text: shell_text.map(|attribute| attribute.value.as_str()),
            timeout: node.bounds.timeout,
            max_turns: node.bounds.max_turns,
            limits: &node.bounds.limits,
            reasons: folders.map(|folder| (folder, holdouts.reach_reason(node, folder))).collect(),
        }
    }

    /// Returns why a verifier may read this hold-out folder. `None` if the folder is hidden from the node.
    pub fn reach_reason(&self, folder: &Entry) -> Option<ReachReason<'a>> {
        self.reasons.iter().find(|(known, _)| *known == folder).and_then(|(_, reason)| *reason)
    }
}

/// A node, as messages name it.
#[derive(Clone, Copy)]
pub struct Place<'a>(&'a Node);

impl<'a> Place<'a> {
    /// Creates the place of a node.
    pub fn for_node(node: &'a Node) -> Self {
        Self(node)
    }

    /// Returns the node's id.
    pub fn id(self) -> &'a NodeId {
        &self.0.id
    }

    /// Returns the span of the node's first mention.
    pub fn span(self) -> Span {
        self.0.span
    }

    /// Returns the span of an attribute. If the attribute has its default, returns the span of the node.
    pub fn span_of(self, attribute: Key<'_>) -> Span {
        self.0.attributes.get(attribute).map_or(self.0.span, |attribute| attribute.span)
    }

    /// Adds the node to a finding.
    pub fn named_in(self, diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.with_node(self.0.id.as_str())
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.id.fmt(f)
    }
}
