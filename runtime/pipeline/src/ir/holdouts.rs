//! The folders of hold-outs, and the settings of a node about hold-outs.
//!
//! Paths are as written in the file. This crate does not know whether a folder exists, or which hold-outs a stage can see.

use glovebox_record::scope::Entry;

/// The default folder of hold-outs (decision hold-out-folder).
pub const FOLDER_DEFAULT: &str = "scripts/scenarios/";

/// The part of the output of a stage with hold-outs that builders get (decision verdict-and-hints-only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Feedback {
    /// The verdict and the `hint:` lines.
    #[default]
    Summary,
    /// All output, which may contain text of hold-outs.
    Full,
}

/// The values of `scenario_feedback`.
pub const FEEDBACKS: &[(&str, Feedback)] = &[("summary", Feedback::Summary), ("full", Feedback::Full)];

/// What happens to the files that a stage with hold-outs in reach writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Writes {
    /// They are deleted after the stage, so no builder sees them.
    #[default]
    Scratch,
    /// They are committed if they are in the write scope, whatever they contain.
    Commit,
}

/// The values of `scenario_writes`.
pub const WRITES: &[(&str, Writes)] = &[("scratch", Writes::Scratch), ("commit", Writes::Commit)];

/// What happens if the workspace, which every stage can read, contains exact copies of hold-outs.
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
    /// `true`: all hold-out folders.
    All,
    /// The listed folders. For `false` and an empty value the list is empty.
    Folders(Vec<Entry>),
}

impl HoldoutSelection {
    /// Returns true if no folder is selected.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Folders(folders) if folders.is_empty())
    }

    /// Returns true if the folder is selected.
    pub fn covers(&self, folder: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Folders(folders) => covers(folders, folder),
        }
    }

    /// Returns the folders that the attribute lists. Empty for [`HoldoutSelection::All`].
    pub fn listed(&self) -> &[Entry] {
        match self {
            Self::All => &[],
            Self::Folders(folders) => folders,
        }
    }
}

/// The settings of a node for hold-outs. By default builders cannot see hold-outs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeHoldouts {
    /// `holdouts`: the folders that a verifier gets. `None` without the attribute.
    pub named: Option<HoldoutSelection>,
    /// `codex.allow_read_scenarios`: true if a builder may read hold-outs (decision hold-out-opt-outs).
    pub allow_read: bool,
    /// `codex.block_read_paths`: the paths that are hidden from the node instead of the hold-outs (decision hold-out-opt-outs).
    /// `None` if the hold-outs are hidden.
    pub block_read: Option<Vec<Entry>>,
    /// `scenario_feedback` of the node, or of the graph: the part of the stage's output that builders get.
    pub feedback: Feedback,
    /// `scenario_writes`: what happens to the files that the stage writes.
    pub writes: Writes,
}

/// Returns true if one of the paths is the folder or contains it.
pub fn covers(paths: &[Entry], folder: &Entry) -> bool {
    paths.iter().any(|entry| folder.path().starts_with(entry.path()))
}
