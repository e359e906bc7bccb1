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

/// What a node says about hold-outs. The default keeps them from builders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeHoldouts {
    /// `codex.allow_read_scenarios`: a builder may read them (seed 2).
    pub allow_read: bool,
    /// `codex.block_read_paths`: what the node does not see, in place of the hold-outs (seed 2). None means the hold-outs.
    pub block_read: Option<Vec<String>>,
    /// `scenario_feedback` of the node, else of the graph: what builders are told of this node's output.
    pub feedback: Feedback,
}

/// True for a stage whose work is judged by others, so that it must not learn by what: everything but tool and verify stages.
pub fn is_builder(node: &Node) -> bool {
    matches!(&node.handler, Handler::Component(name) if !matches!(name.as_str(), "tool" | "verify"))
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
}
