//! Roles of stages towards hold-outs (builder, verifier), the folders of hold-outs, and the opt-outs of a pipeline.
//!
//! Paths are as written in the file. This crate does not know whether a folder exists, or what a stage sees of it.

use crate::ir::{Node, Pipeline};
use crate::key::{self, Key};
use crate::lower::handler::Role;
use glovebox_record::scope::Entry;

/// The default folder with hold-outs (decision hold-out-folder).
pub const FOLDER_DEFAULT: &str = "scripts/scenarios/";

/// How much output of a stage with hold-outs reaches a builder (decision verdict-and-hints-only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Feedback {
    /// The verdict and `hint:` lines.
    #[default]
    Summary,
    /// All output, hold-outs included.
    Full,
}

/// The values of `scenario_feedback`.
pub const FEEDBACKS: &[(&str, Feedback)] = &[("summary", Feedback::Summary), ("full", Feedback::Full)];

/// What happens to the files that a stage with hold-outs in reach writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Writes {
    /// The engine drops them after the stage, so no builder sees them.
    #[default]
    Scratch,
    /// The engine commits those in the write scope, whatever they contain.
    Commit,
}

/// The values of `scenario_writes`.
pub const WRITES: &[(&str, Writes)] = &[("scratch", Writes::Scratch), ("commit", Writes::Commit)];

/// Whether the workspace may contain an exact copy of a hold-out, which every stage can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Copies {
    /// The run does not begin.
    #[default]
    Refuse,
    /// The run begins with a warning.
    Allow,
}

/// The values of `scenario_copies`.
pub const COPIES: &[(&str, Copies)] = &[("refuse", Copies::Refuse), ("allow", Copies::Allow)];

/// What the attribute `holdouts` names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Named {
    /// `true`: every hold-out folder.
    All,
    /// These folders; `false` and an empty value name none.
    Folders(Vec<Entry>),
}

impl Named {
    /// True if it names no folder.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Folders(folders) if folders.is_empty())
    }

    /// True if it names this folder.
    pub fn covers(&self, folder: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Folders(folders) => covers(folders, folder),
        }
    }

    /// The folders that it lists; none for all.
    pub fn listed(&self) -> &[Entry] {
        match self {
            Self::All => &[],
            Self::Folders(folders) => folders,
        }
    }
}

/// The settings of a node for hold-outs. The default hides them from builders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeHoldouts {
    /// `holdouts`: what a verifier runs; none if the file does not say.
    pub named: Option<Named>,
    /// `codex.allow_read_scenarios`: a builder may read them (decision hold-out-opt-outs).
    pub allow_read: bool,
    /// `codex.block_read_paths`: what the node does not see, instead of the hold-outs (decision hold-out-opt-outs). None means the
    /// hold-outs.
    pub block_read: Option<Vec<Entry>>,
    /// `scenario_feedback` of the node, else of the graph: how much of this node's output reaches builders.
    pub feedback: Feedback,
    /// `scenario_writes`: what happens to the files that it writes.
    pub writes: Writes,
}

/// True for a builder: hold-outs test its work, so it must not learn them.
pub fn is_builder(node: &Node) -> bool {
    node.role == Some(Role::Builder)
}

/// True for a verifier: it tests the work of builders and may have hold-outs in reach.
pub fn is_verifier(node: &Node) -> bool {
    node.role == Some(Role::Verifier)
}

/// Attributes that contain a command.
const COMMANDS: [Key<'static>; 2] = [key::TOOL_COMMAND, key::COMMAND];

/// True for a node with a command that names one of the folders.
pub fn runs_scenarios(node: &Node, folders: &[String]) -> bool {
    let commands = COMMANDS.into_iter().filter_map(|key| node.attributes.get(key));
    let names = |command: &str| folders.iter().any(|folder| command.contains(folder.trim_end_matches('/')));
    commands.into_iter().any(|command| names(&command.value))
}

/// True if one of the paths is the folder or a parent of it.
pub fn covers(paths: &[Entry], folder: &Entry) -> bool {
    paths.iter().any(|entry| folder.path().starts_with(entry.path()))
}

impl Pipeline {
    /// The hold-out folders that the file names, or the default folder.
    pub fn scenario_entries(&self) -> Vec<Entry> {
        self.scenarios.clone().unwrap_or_else(|| Entry::parse(FOLDER_DEFAULT).into_iter().collect())
    }

    /// The same as text, each with a final slash.
    pub fn scenario_folders(&self) -> Vec<String> {
        self.scenario_entries().iter().map(ToString::to_string).collect()
    }

    /// True if a run has hold-outs: the file or one of its commands names a folder, or the caller found one. Linear in the file.
    pub fn has_scenarios(&self) -> bool {
        let folders = self.scenario_folders();
        let named = |node: &Node| node.holdouts.named.as_ref().is_some_and(|named| !named.is_none());
        let names = |node: &Node| named(node) || runs_scenarios(node, &folders);
        self.scenarios_found || self.scenarios.is_some() || self.stages().any(names)
    }
}
