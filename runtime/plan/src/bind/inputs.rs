//! What decides about the grants of a node, and what it comes to.

use super::request::{Holdouts, Place, Request};
use super::role::HandlerSource;
use crate::config::sandbox::SandboxSetting;
use crate::config::{AgentEntry, ServerEntry};
use crate::plan::{
    BoundServer, Capability, CommandAccess, Grant, HoldoutAccess, HookTexts, Origin, PlannedProgram, Separation,
};
use crate::verify::Verify;
use glovebox_host::call::CommandGrant;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_record::program::AgentProgram;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{LimitSettings, Limits};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All inputs that decide what a node may do.
#[derive(Clone, Copy)]
pub struct GrantInputs<'a> {
    /// What the node asks for.
    pub request: &'a Request<'a>,
    /// The node, for messages.
    pub place: Place<'a>,
    /// The source of its component.
    pub source: HandlerSource<'a>,
    /// The imports of the component and the manifest of its author.
    pub inspection: &'a Inspection,
    /// The capabilities that both author and operator allow.
    pub granted: &'a Grants,
    /// The operator's bounds for every stage.
    pub limits: &'a LimitSettings,
    /// The settings of agent programs.
    pub agents: &'a BTreeMap<AgentProgram, AgentEntry>,
    /// The operator's sandbox settings for commands.
    pub sandbox: &'a SandboxSetting,
    /// The operator's tool servers.
    pub servers: &'a BTreeMap<String, Arc<ServerEntry>>,
    /// The commands that verification stages run beside a plan.
    pub verify: Option<&'a Verify>,
    /// The hold-outs of the pipeline and the run.
    pub holdouts: Holdouts<'a>,
}

impl<'a> GrantInputs<'a> {
    /// The pipeline's hold-out folders, there or not.
    pub(super) fn scenarios(&self) -> &'a [Entry] {
        self.holdouts.reach.folders()
    }
}

/// What a node may do. The default denies everything.
#[derive(Debug, Clone, Default)]
pub struct Effective {
    /// How the component reaches files.
    pub tier: FileTier,
    /// The scope of the component and its commands.
    pub scope: Scope,
    /// Its largest write scope, whatever its node says: the intersection of author and operator.
    pub may_write: Vec<Entry>,
    /// What it may run.
    pub commands: CommandGrant,
    /// Access of its commands beyond the scope.
    pub command_access: CommandAccess,
    /// Its access to hold-outs.
    pub holdouts: HoldoutAccess,
    /// How it is separated from the program that it judges; none for a stage that judges none.
    pub separation: Option<Separation>,
    /// Whether it may ask the model.
    pub model: bool,
    /// The agent program that works in its place.
    pub program: Option<PlannedProgram>,
    /// The hooks around the tool calls of its model.
    pub hooks: HookTexts,
    /// The tool servers that it may start.
    pub servers: Vec<BoundServer>,
    /// Bounds of one attempt.
    pub limits: Limits,
    /// Its capabilities with their origins.
    pub grants: Vec<Grant>,
    /// Attributes that could not be followed.
    pub diagnostics: Vec<Diagnostic>,
}

impl Effective {
    pub(super) fn record_origin(&mut self, capability: Capability, origin: Origin) {
        self.grants.push(Grant { capability, origin });
    }
}

/// Records capabilities that have one origin.
pub(super) fn record_all(grants: &mut Vec<Grant>, origin: &Origin, capabilities: impl Iterator<Item = Capability>) {
    grants.extend(capabilities.map(|capability| Grant { capability, origin: origin.clone() }));
}
