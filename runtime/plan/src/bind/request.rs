//! What the binder reads of a node, and where a message about the node points.
//!
//! Nodes that ask for the same get the same binding, and a file has thousands of them: the binder works out each [`Request`] once. That
//! is sound because it decides by the request alone. Of the node itself it has only a [`Place`].

use super::role::HandlerSource;
use crate::verify::{self, Verify};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::holdouts::NodeHoldouts;
use glovebox_pipeline::ir::{
    AgentBackend, Confinement, HandlerKind, Node, NodeId, Role, Subject, ToolHooks, ToolServers,
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
    /// What it asks to read.
    pub read_paths: Option<&'a [Entry]>,
    /// What it asks to write.
    pub write_paths: Option<&'a [Entry]>,
    /// Its command attributes.
    pub confinement: &'a Confinement,
    /// Its hold-out attributes.
    pub holdouts: &'a NodeHoldouts,
    /// The program under test.
    pub subject: &'a Subject,
    /// The commands around its tool calls.
    pub hooks: &'a ToolHooks,
    /// The agent program that it names.
    pub backend: Option<&'a AgentBackend>,
    /// The tools of other programs.
    pub tool_servers: &'a ToolServers,
    /// The commands that an agent asks for.
    pub commands: &'a [String],
    /// Its role in a verify contract; none for a stage that runs no plan.
    pub verification_role: Option<verify::Role<'a>>,
    /// The file of the hold-outs with the schema of a `json-schema` stage.
    pub sealed_schema: Option<&'a str>,
    /// The text that the handler runs in a shell.
    pub shell_text: Option<&'a str>,
    /// The longest attempt.
    pub timeout: Option<Duration>,
    /// The most model turns.
    pub max_turns: Option<u32>,
    /// The limits it lowers.
    pub limits: &'a LimitSettings,
    /// The grant of each hold-out folder to a verifier; empty for a builder.
    reasons: Vec<(&'a Entry, Option<ReachReason<'a>>)>,
}

/// The hold-outs of a pipeline and a run.
#[derive(Debug, Clone, Copy)]
pub struct Holdouts<'a> {
    /// The paths that the pipeline's verifiers can read.
    pub reach: &'a HoldoutReach,
    /// The folders that are sealed in this run.
    pub sealed: &'a [Entry],
    /// The commands that verification stages run beside a plan.
    pub verify: Option<&'a Verify>,
}

impl<'a> Holdouts<'a> {
    /// The grant of a hold-out folder to a verifier: the node itself, or the contract of a verification stage.
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

    /// The grant of this hold-out folder to a verifier; none if the folder is hidden from it.
    pub fn reach_reason(&self, folder: &Entry) -> Option<ReachReason<'a>> {
        self.reasons.iter().find(|(known, _)| *known == folder).and_then(|(_, reason)| *reason)
    }
}

/// A node as messages name it.
#[derive(Clone, Copy)]
pub struct Place<'a>(&'a Node);

impl<'a> Place<'a> {
    /// The place of a node.
    pub fn for_node(node: &'a Node) -> Self {
        Self(node)
    }

    /// The node's id.
    pub fn id(self) -> &'a NodeId {
        &self.0.id
    }

    /// The span of its first mention.
    pub fn span(self) -> Span {
        self.0.span
    }

    /// The span of an attribute; that of the node when the attribute has its default.
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
