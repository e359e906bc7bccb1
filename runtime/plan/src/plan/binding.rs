//! What executes a node and what it may do: component, scope, commands, hold-outs, limits.
//!
//! Plain data. The binder combines what author, operator and node allow; this file does not know the binder.

use super::capability::MachineFolder;
use super::narrowed::NarrowedGrant;
use super::origin::Grant;
use super::tool_provider::BoundProvider;
use super::tool_server::BoundServer;
use crate::lock::line::{Line, grant_lines};
use glovebox_host::call::CommandGrant;
use glovebox_host::component::Component;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::ir::holdouts::Writes;
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{HookKind, Limits, Network};
use std::sync::Arc;

/// What executes a node and what it may do. The empty binding denies everything. Each grant has its origin.
#[derive(Clone)]
pub struct Binding {
    /// The handler type.
    pub handler: String,
    /// The component.
    pub component: BoundComponent,
    /// BLAKE3 of the component's bytes.
    pub digest: Digest,
    /// True if the component is built in.
    pub first_party: bool,
    /// The role of the stage.
    pub role: Role,
    /// How the component reaches files.
    pub tier: FileTier,
    /// The scope of the component. Its commands have the same view.
    pub scope: Scope,
    /// The largest write scope of the component, before a node narrows it: the intersection of what author and operator allow.
    pub may_write: Vec<Entry>,
    /// The commands that the component may run.
    pub commands: CommandGrant,
    /// What the commands can reach in addition to the scope: network, scratch, cache, and the working directory.
    pub command_access: CommandAccess,
    /// The access of the stage to hold-outs.
    pub holdouts: HoldoutAccess,
    /// How the stage is separated from the program that it judges. `None` for a stage that judges no program.
    pub separation: Option<Separation>,
    /// Limits of one attempt.
    pub limits: Limits,
    /// True if the component may ask a model.
    pub model: bool,
    /// The agent program that does the work of the stage. `None` if the component does the work.
    pub program: Option<Arc<PlannedProgram>>,
    /// The hooks before and after the tool calls of the model.
    pub hooks: HookTexts,
    /// The tool servers that the stage may start.
    pub servers: Vec<BoundServer>,
    /// The plugins whose tools the stage may call.
    pub providers: Vec<BoundProvider>,
    /// The capabilities of the stage with their origins, sorted by capability.
    pub grants: Vec<Grant>,
    /// Grants of the lock file that the operator took back. Empty for a built-in component.
    pub narrowed: Vec<NarrowedGrant>,
    /// What the author wants. Empty for a built-in component.
    pub wants: Vec<Want>,
}

/// What the author of a plugin wants, beside what the operator grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// One line of the wants.
    pub line: Line,
    /// True if the operator grants all of it.
    pub is_granted: bool,
}

impl Want {
    /// Compares the wants of a plugin with what it gets.
    pub fn of_plugin(wants: &Grants, granted: &Grants) -> Vec<Self> {
        let lines = |grants: &Grants| -> Vec<Line> {
            let lines = grant_lines(grants, Role::Builder);
            let lines = lines.iter().map(|line| Line::parse(line));
            lines.filter(|line| !matches!(line, Line::Filesystem(FileTier::None) | Line::Limit(..))).collect()
        };
        let granted = lines(granted);
        let is_granted = |line: &Line| granted.iter().any(|granted| granted.covers(line));
        lines(wants).into_iter().map(|line| Self { is_granted: is_granted(&line), line }).collect()
    }
}

/// The agent program of a node, with the operator's settings for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProgram {
    /// The kind of agent program.
    pub program: AgentProgram,
    /// How the program is started.
    pub options: ProgramOptions,
    /// Folders of the machine that the program may read in addition to those of all commands.
    pub folders: Vec<MachineFolder>,
}

/// The component of a binding.
#[derive(Clone)]
pub enum BoundComponent {
    /// A compiled component, which can be called.
    Loaded(Arc<Component>),
    /// A plugin that is not in the lock file or differs from it, in a plan that is only shown. Its bytes were read, but
    /// nothing was compiled.
    Unlocked(Arc<Inspection>),
}

impl BoundComponent {
    /// Returns the inspection of the component's bytes.
    pub fn inspection(&self) -> &Inspection {
        match self {
            Self::Loaded(component) => component.inspection(),
            Self::Unlocked(inspection) => inspection,
        }
    }

    /// Returns the component to call. `None` for a component that may not run.
    pub fn loaded(&self) -> Option<&Arc<Component>> {
        match self {
            Self::Loaded(component) => Some(component),
            Self::Unlocked(_) => None,
        }
    }
}

/// What a node's commands can reach in addition to its scope. The default denies everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAccess {
    /// The network access of the commands.
    pub network: Network,
    /// Subtrees that the commands may write and that are discarded after the stage.
    pub scratch: Vec<Entry>,
    /// Subtrees that the commands may write and that are kept per run and trust domain, but never committed.
    pub cache: Vec<Entry>,
    /// True if each visit of a verifier begins with a copy of the caches that its own command filled from the files that the
    /// run began with (`cache_from`).
    pub cache_from_base: bool,
    /// The default working directory of the commands. It is the root of the workspace unless the node sets another.
    pub workdir: ScopePath,
}

/// Shell texts that run before and after each tool call of a model. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookTexts {
    /// Runs before a call, and may refuse the call.
    pub pre: Option<String>,
    /// Runs after a call.
    pub post: Option<String>,
}

impl HookTexts {
    /// Returns the text of the hook of this kind. `None` if there is no such hook.
    pub fn text(&self, kind: HookKind) -> Option<&str> {
        match kind {
            HookKind::Pre => self.pre.as_deref(),
            HookKind::Post => self.post.as_deref(),
        }
    }

    /// Returns the hooks that exist.
    pub fn iter(&self) -> impl Iterator<Item = (HookKind, &str)> {
        [HookKind::Pre, HookKind::Post].into_iter().filter_map(|kind| Some((kind, self.text(kind)?)))
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What a stage may do with hold-outs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldoutAccess {
    /// Hold-outs do not exist for the stage.
    #[default]
    Absent,
    /// The stage reads the hold-outs that its scope does not hide, at their original paths. It never writes them.
    ReadOnly,
}

impl HoldoutAccess {
    /// Returns the name of the access in a plan.
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
    /// The shell text of `verify_subject`. `None` if the node names no program under test.
    pub command: Option<String>,
    /// The loopback port at which the stage's commands reach the program under test. `None` if the node names no port.
    pub port: Option<u16>,
    /// True if the stage's own commands see only hold-outs of the workspace, so that no builder's code can run among them.
    pub is_isolated: bool,
    /// The treatment of writes in the stage's scope. Always [`Writes::Commit`] for a stage that cannot read hold-outs.
    pub writes: Writes,
    /// True if the node has `allowed_write_paths`. A write outside of these paths fails the stage, even if no writes are kept.
    pub is_scope_named: bool,
}

impl Binding {
    /// Returns true if the stage may start commands or an agent program.
    pub fn runs_commands(&self) -> bool {
        runs_commands(&self.commands) || self.program.is_some()
    }

    /// Returns true if a sandbox for commands is needed: for commands of the stage, for hooks, or for tool servers.
    pub fn starts_processes(&self) -> bool {
        self.runs_commands() || !self.hooks.is_empty() || !self.servers.is_empty()
    }

    /// Returns true if nothing that the stage reads can leave the machine: its component is built in, it asks no model, and
    /// no process of it has a network. What a model of a run with scripted answers would get counts as leaving.
    pub fn keeps_what_it_reads(&self) -> bool {
        let is_local = |network: &Network| *network == Network::None;
        self.first_party
            && !self.model
            && self.program.is_none()
            && is_local(&self.command_access.network)
            && self.servers.iter().all(|server| is_local(&server.entry.network))
    }

    /// Returns true for a builder. A builder's work is judged by other stages, so it must not learn how they judge it.
    pub fn is_builder(&self) -> bool {
        self.role == Role::Builder
    }

    /// Returns true for a verifier, whose receipts prove results.
    pub fn is_verifier(&self) -> bool {
        self.role == Role::Verifier
    }

    /// Returns the binding with these files added to the write scope, as far as author and operator allow them. A person
    /// allowed them.
    #[must_use]
    pub fn with_granted(&self, paths: &[ScopePath]) -> Self {
        let entries = paths.iter().filter(|path| self.may_write.iter().any(|entry| entry.contains(path)));
        let mut widened = self.clone();
        widened.scope.write.extend(entries.filter_map(|path| Entry::parse(path.as_str()).ok()));
        widened
    }

    /// Returns true if writes in the stage's scope are committed. Writes of a stage that can read hold-outs are
    /// committed only if the node has `scenario_writes="commit"`.
    pub fn keeps_writes(&self) -> bool {
        self.separation.as_ref().is_none_or(|separation| separation.writes == Writes::Commit)
    }

    /// Returns true if the stage needs its own copy of the workspace: it may change files, itself or through a command, has
    /// hooks or tool servers, or reads hold-outs, which are not in the workspace.
    pub fn needs_copy(&self) -> bool {
        let sees_more = !self.scope.write.is_empty() || self.holdouts == HoldoutAccess::ReadOnly;
        self.starts_processes() || (self.tier != FileTier::None && sees_more)
    }
}

/// Returns true if the grant allows any command.
pub fn runs_commands(commands: &CommandGrant) -> bool {
    commands.any || !commands.shell_texts.is_empty() || !commands.argv_prefixes.is_empty()
}
