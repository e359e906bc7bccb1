//! What executes a node and what it may do: component, scope, commands, hold-outs, limits.
//!
//! Plain data. How the three sides that grant (author, operator, node) come to it is decided by the binder, which this file
//! does not know.

use super::capability::MachineFolder;
use super::origin::Grant;
use super::tool_server::BoundServer;
use glovebox_host::call::CommandGrant;
use glovebox_host::component::Component;
use glovebox_host::grants::FileTier;
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::ir::holdouts::Writes;
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{HookKind, Limits, Network};
use std::sync::Arc;

/// What executes a node and what it may do. The empty binding denies everything; each grant says where it comes from.
#[derive(Clone)]
pub struct Binding {
    /// The handler type.
    pub handler: String,
    /// The component.
    pub component: BoundComponent,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Whether it came with the binary.
    pub first_party: bool,
    /// Its part in the run.
    pub role: Role,
    /// How it reaches files.
    pub tier: FileTier,
    /// Its scope, which is its commands' view as well.
    pub scope: Scope,
    /// Its largest write scope, whatever its node says: the intersection of author and operator.
    pub may_write: Vec<Entry>,
    /// What it may run.
    pub commands: CommandGrant,
    /// Access of its commands beyond the scope: network, scratch, cache, and the working directory.
    pub command_access: CommandAccess,
    /// Its access to hold-outs.
    pub holdouts: HoldoutAccess,
    /// How it is separated from the program that it judges; none for a stage that judges none.
    pub separation: Option<Separation>,
    /// Bounds of one attempt.
    pub limits: Limits,
    /// Whether it may ask the model.
    pub model: bool,
    /// The agent program that works in its place.
    pub program: Option<Arc<PlannedProgram>>,
    /// The hooks around the tool calls of its model.
    pub hooks: HookTexts,
    /// The tool servers that it may start.
    pub servers: Vec<BoundServer>,
    /// Its capabilities with their origins, in the order of the capabilities.
    pub grants: Vec<Grant>,
}

/// The agent program of a node, with what the operator says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProgram {
    /// Which one.
    pub program: AgentProgram,
    /// How it is started.
    pub options: ProgramOptions,
    /// Folders of the machine that it sees beside those of all commands.
    pub folders: Vec<MachineFolder>,
}

/// The component of a binding.
#[derive(Clone)]
pub enum BoundComponent {
    /// Compiled; it can be called.
    Loaded(Arc<Component>),
    /// A plugin that is not locked as it is, in a plan that is only shown: its bytes were read, and nothing of it was compiled.
    Unlocked(Arc<Inspection>),
}

impl BoundComponent {
    /// The inspection of its bytes.
    pub fn inspection(&self) -> &Inspection {
        match self {
            Self::Loaded(component) => component.inspection(),
            Self::Unlocked(inspection) => inspection,
        }
    }

    /// The component to call; none for one that may not run.
    pub fn loaded(&self) -> Option<&Arc<Component>> {
        match self {
            Self::Loaded(component) => Some(component),
            Self::Unlocked(_) => None,
        }
    }
}

/// Access of a node's commands beyond its scope. The default denies everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAccess {
    /// Their network access.
    pub network: Network,
    /// Subtrees they may write that are dropped after the stage.
    pub scratch: Vec<Entry>,
    /// Subtrees they may write that are kept per run and trust domain, never committed.
    pub cache: Vec<Entry>,
    /// Whether a verifier's caches begin each visit with what its command made of the files the run began with.
    pub cache_from_base: bool,
    /// Where they start when they do not say; the root of the workspace by default.
    pub workdir: ScopePath,
}

/// Shell texts that run around each tool call of a model. The default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookTexts {
    /// Before a call; it may refuse the call.
    pub pre: Option<String>,
    /// After a call.
    pub post: Option<String>,
}

impl HookTexts {
    /// The text of one of them.
    pub fn text(&self, kind: HookKind) -> Option<&str> {
        match kind {
            HookKind::Pre => self.pre.as_deref(),
            HookKind::Post => self.post.as_deref(),
        }
    }

    /// Both, as far as there are any.
    pub fn iter(&self) -> impl Iterator<Item = (HookKind, &str)> {
        [HookKind::Pre, HookKind::Post].into_iter().filter_map(|kind| Some((kind, self.text(kind)?)))
    }

    /// True when nothing runs.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What a stage may do with hold-outs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldoutAccess {
    /// They do not exist for it.
    #[default]
    Absent,
    /// It reads those that its scope does not hide, at their original paths; it never writes them.
    ReadOnly,
}

impl HoldoutAccess {
    /// The word in a plan.
    pub fn as_str(self) -> &'static str {
        match self {
            HoldoutAccess::Absent => "absent",
            HoldoutAccess::ReadOnly => "read-only",
        }
    }
}

/// How a verifying stage is separated from the program under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Separation {
    /// The shell text of `verify_subject`.
    pub command: Option<String>,
    /// The port of its loopback at which the stage's commands reach it.
    pub port: Option<u16>,
    /// True when the stage's own commands see nothing of the workspace but hold-outs: then no builder's code can run among them.
    pub is_isolated: bool,
    /// The treatment of writes in the stage's scope; [`Writes::Commit`] also when no hold-outs are in its reach.
    pub writes: Writes,
    /// True when the node has `allowed_write_paths`: a write outside of them then fails the stage, even where no write is kept.
    pub is_scope_named: bool,
}

impl Binding {
    /// True when the stage may start processes.
    pub fn runs_commands(&self) -> bool {
        runs_commands(&self.commands) || self.program.is_some()
    }

    /// True when a sandbox for commands is needed: for those of the stage, for hooks, or for tool servers.
    pub fn starts_processes(&self) -> bool {
        self.runs_commands() || !self.hooks.is_empty() || !self.servers.is_empty()
    }

    /// True for a stage whose work is judged by others, so that it must not learn what judges it.
    pub fn is_builder(&self) -> bool {
        self.role == Role::Builder
    }

    /// The same with files that a person allowed, as far as author and operator do.
    #[must_use]
    pub fn with_granted(&self, paths: &[ScopePath]) -> Self {
        let entries = paths.iter().filter(|path| self.may_write.iter().any(|entry| entry.contains(path)));
        let mut widened = self.clone();
        widened.scope.write.extend(entries.filter_map(|path| Entry::parse(path.as_str()).ok()));
        widened
    }

    /// True when what the stage writes in its scope is committed. With hold-outs in reach it is not, unless the node says so.
    pub fn keeps_writes(&self) -> bool {
        self.separation.as_ref().is_none_or(|separation| separation.writes == Writes::Commit)
    }

    /// True when the stage has files of its own: it may change some, itself or through a command, has hooks or tool servers, or reads
    /// hold-outs, which the workspace does not have.
    pub fn needs_copy(&self) -> bool {
        let sees_more = !self.scope.write.is_empty() || self.holdouts == HoldoutAccess::ReadOnly;
        self.starts_processes() || (self.tier != FileTier::None && sees_more)
    }
}

/// True when the grant lets anything run.
pub fn runs_commands(commands: &CommandGrant) -> bool {
    commands.any || !commands.shell_texts.is_empty() || !commands.argv_prefixes.is_empty()
}
