//! The input of a stage, in the host's own types.
//!
//! These mirror `wit/types.wit`. They are data: the engine fills them from the pipeline and the journal.

use glovebox_record::scope::Entry;
use glovebox_record::{Attempt, Failure, RunId};
use serde_json::Value;
use std::collections::BTreeMap;

/// One outgoing edge, as the stage sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingEdge {
    /// Target node.
    pub to: String,
    /// Caption.
    pub label: String,
    /// Guard as written; empty when unconditional.
    pub condition: String,
    /// Priority.
    pub weight: i32,
}

/// Everything a handler receives about its stage (`stage-input`). Mounts are added by the host from the file view.
#[derive(Debug, Clone, PartialEq)]
pub struct StageInput {
    /// The run.
    pub run: RunId,
    /// Identity of this call (decision attempt-identity).
    pub attempt: Attempt,
    /// Handler type as bound.
    pub handler_type: String,
    /// The node's label.
    pub label: String,
    /// The node's prompt, expanded.
    pub prompt: Option<String>,
    /// The pipeline's goal.
    pub goal: String,
    /// The node's attributes.
    pub attributes: Vec<(String, String)>,
    /// The context the node may see.
    pub context: BTreeMap<String, Value>,
    /// Outgoing edges.
    pub outgoing: Vec<OutgoingEdge>,
    /// The paths that the stage may write, by its bound scope.
    pub write_paths: Vec<Entry>,
    /// The failure that led here.
    pub last_failure: Option<Failure>,
    /// Extra pairs.
    pub extra: Vec<(String, String)>,
}
