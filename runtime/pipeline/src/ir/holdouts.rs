//! The folders of hold-outs, and a node's settings for them.
//!
//! Paths are as written in the file. This crate does not know whether a folder exists, or what a stage sees of it.

use glovebox_record::scope::Entry;

/// The default folder with hold-outs (decision hold-out-folder).
pub const FOLDER_DEFAULT: &str = "scripts/scenarios/";

/// The part of a hold-out stage's output that reaches builders (decision verdict-and-hints-only).
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

/// The treatment of files that a stage with hold-outs in reach writes.
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

/// The policy for exact copies of hold-outs in the workspace, which every stage can read.
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

/// The hold-out folders that the attribute `holdouts` selects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HoldoutSelection {
    /// `true`: every hold-out folder.
    All,
    /// These folders; `false` and an empty value name none.
    Folders(Vec<Entry>),
}

impl HoldoutSelection {
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
    /// `holdouts`: the folders that a verifier gets; none without the attribute.
    pub named: Option<HoldoutSelection>,
    /// `codex.allow_read_scenarios`: a builder may read them (decision hold-out-opt-outs).
    pub allow_read: bool,
    /// `codex.block_read_paths`: the paths that the node does not see, instead of the hold-outs (decision hold-out-opt-outs). None means the
    /// hold-outs.
    pub block_read: Option<Vec<Entry>>,
    /// `scenario_feedback` of the node, else of the graph: the part of its output that reaches builders.
    pub feedback: Feedback,
    /// `scenario_writes`: the treatment of the files that it writes.
    pub writes: Writes,
}

/// True if one of the paths is the folder or a parent of it.
pub fn covers(paths: &[Entry], folder: &Entry) -> bool {
    paths.iter().any(|entry| folder.path().starts_with(entry.path()))
}
