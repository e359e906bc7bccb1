//! What a pipeline says about its hold-outs: which folders they are, and where it opts out of keeping them from builders.
//!
//! Paths here are as written; whether a folder exists, and what a stage sees of it, is not known in this crate.

use crate::ir::{Handler, Node, Pipeline};

/// The folder that holds hold-outs when the file names none (seed 2).
pub const FOLDER_DEFAULT: &str = "scripts/scenarios/";

/// How much of what a stage with hold-outs printed a builder is told (design §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Feedback {
    /// Verdict, counts and `hint:` lines.
    #[default]
    Summary,
    /// Everything, hold-outs included.
    Full,
}

/// The words of `scenario_feedback`.
pub const FEEDBACKS: &[(&str, Feedback)] = &[("summary", Feedback::Summary), ("full", Feedback::Full)];

/// What becomes of the files that a stage with hold-outs in reach writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writes {
    /// They are dropped after the stage: no builder sees them.
    #[default]
    Scratch,
    /// Those in its write scope are committed, whatever they contain.
    Commit,
}

/// The words of `scenario_writes`.
pub const WRITES: &[(&str, Writes)] = &[("scratch", Writes::Scratch), ("commit", Writes::Commit)];

/// Whether the workspace may hold a file that is byte for byte a hold-out, where every stage can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Copies {
    /// Such a run does not begin.
    #[default]
    Refuse,
    /// It begins, after a warning.
    Allow,
}

/// The words of `scenario_copies`.
pub const COPIES: &[(&str, Copies)] = &[("refuse", Copies::Refuse), ("allow", Copies::Allow)];

/// What a node says about hold-outs. The default keeps them from builders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeHoldouts {
    /// `codex.allow_read_scenarios`: a builder may read them (seed 2).
    pub allow_read: bool,
    /// `codex.block_read_paths`: what the node does not see, in place of the hold-outs (seed 2). None means the hold-outs.
    pub block_read: Option<Vec<String>>,
    /// `scenario_feedback` of the node, else of the graph: what builders are told of this node's output.
    pub feedback: Feedback,
    /// `scenario_writes`: what becomes of what it writes.
    pub writes: Writes,
}

/// True for a stage whose work is judged by others, so that it must not learn by what: everything but tool and verify stages.
pub fn is_builder(node: &Node) -> bool {
    matches!(&node.handler, Handler::Component(_)) && !is_verifier(node)
}

/// True for a stage that judges the work of others and may have hold-outs in reach.
pub fn is_verifier(node: &Node) -> bool {
    matches!(&node.handler, Handler::Component(name) if matches!(name.as_str(), "tool" | "verify"))
}

/// Attributes that hold a command.
const COMMANDS: [&str; 3] = ["tool_command", "command", "verify_command"];

/// True for a node with a command that names one of the folders.
pub fn runs_scenarios(node: &Node, folders: &[&str]) -> bool {
    let commands = COMMANDS.iter().filter_map(|key| node.attributes.get(key));
    let names = |command: &str| folders.iter().any(|folder| command.contains(folder.trim_end_matches('/')));
    commands.into_iter().any(|command| names(&command.value))
}

/// True when one of the paths is the folder or above it.
pub fn covers(paths: &[String], folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    paths
        .iter()
        .map(|path| path.trim_end_matches('/'))
        .any(|path| folder == path || folder.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

impl Pipeline {
    /// The hold-out folders that the file names, or the one by default.
    pub fn scenario_folders(&self) -> Vec<&str> {
        match &self.scenarios {
            Some(named) => named.0.iter().map(String::as_str).collect(),
            None => vec![FOLDER_DEFAULT],
        }
    }

    /// True when a run has hold-outs as far as the file and its reader know: it names folders, a command names one, or the reader
    /// found one. Linear in the file.
    pub fn has_scenarios(&self) -> bool {
        let folders = self.scenario_folders();
        self.scenarios_found || self.scenarios.is_some() || self.nodes.iter().any(|node| runs_scenarios(node, &folders))
    }
}
