//! The inputs that decide the grants of a node, and the result.

use super::request::{Holdouts, Place, Request};
use super::role::HandlerSource;
use super::tool_providers::LoadedProvider;
use crate::config::sandbox::SandboxSetting;
use crate::config::{AgentEntry, PluginEntry, ServerEntry};
use crate::plan::{
    BoundProvider, BoundServer, Capability, CommandAccess, Grant, HoldoutAccess, HookTexts, Origin, PlannedProgram,
    Separation,
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
    /// The attributes with which the node asks for access.
    pub request: &'a Request<'a>,
    /// The node, for messages.
    pub place: Place<'a>,
    /// Where the node's component comes from.
    pub source: HandlerSource<'a>,
    /// The imports of the component and the manifest of its author.
    pub inspection: &'a Inspection,
    /// The grants on which author and operator agree.
    pub granted: &'a Grants,
    /// The operator's limits for every stage.
    pub limits: &'a LimitSettings,
    /// The settings of agent programs.
    pub agents: &'a BTreeMap<AgentProgram, AgentEntry>,
    /// True if policies judge the tool calls of agents.
    pub has_policies: bool,
    /// The operator's sandbox settings for commands.
    pub sandbox: &'a SandboxSetting,
    /// The operator's tool servers.
    pub servers: &'a BTreeMap<String, Arc<ServerEntry>>,
    /// The plugins whose tools the node asks for, with `None` for a plugin that may not run.
    pub providers: &'a [(&'a str, Option<LoadedProvider<'a>>)],
    /// The plugins of the configuration.
    pub plugins: &'a BTreeMap<String, PluginEntry>,
    /// The commands that verification stages run in addition to a model's plan.
    pub verify: Option<&'a Verify>,
    /// The hold-outs of the pipeline and the run.
    pub holdouts: Holdouts<'a>,
}

impl<'a> GrantInputs<'a> {
    /// Returns the hold-out folders that the pipeline names, whether they exist or not.
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
    /// The largest write scope of the component, before a node narrows it: the intersection of what author and operator allow.
    pub may_write: Vec<Entry>,
    /// The commands that the component may run.
    pub commands: CommandGrant,
    /// What the commands can reach in addition to the scope.
    pub command_access: CommandAccess,
    /// The access of the stage to hold-outs.
    pub holdouts: HoldoutAccess,
    /// How the stage is separated from the program that it judges. `None` for a stage that judges no program.
    pub separation: Option<Separation>,
    /// True if the component may ask a model.
    pub model: bool,
    /// The agent program that does the work of the stage. `None` if the component does the work.
    pub program: Option<PlannedProgram>,
    /// The hooks before and after the tool calls of the model.
    pub hooks: HookTexts,
    /// The tool servers that the stage may start.
    pub servers: Vec<BoundServer>,
    /// The plugins whose tools the stage may call.
    pub providers: Vec<BoundProvider>,
    /// Limits of one attempt.
    pub limits: Limits,
    /// The capabilities of the stage with their origins.
    pub grants: Vec<Grant>,
    /// Findings about attributes that cannot have their effect.
    pub diagnostics: Vec<Diagnostic>,
}

impl Effective {
    pub(super) fn record_origin(&mut self, capability: Capability, origin: Origin) {
        self.grants.push(Grant { capability, origin });
    }
}

/// Records several capabilities with the same origin.
pub(super) fn record_all(grants: &mut Vec<Grant>, origin: &Origin, capabilities: impl Iterator<Item = Capability>) {
    grants.extend(capabilities.map(|capability| Grant { capability, origin: origin.clone() }));
}
