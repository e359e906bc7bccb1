//! The input of a stage in types of the host.
//!
//! The types mirror `wit/types.wit`. The engine fills them from the pipeline and the journal.

use crate::command_grant::CommandGrant;
use glovebox_record::scope::Entry;
use glovebox_record::{Attempt, Failure, RunId};
use serde_json::Value;
use std::collections::BTreeMap;

/// One outgoing edge of the stage's node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingEdge {
    /// Id of the target node.
    pub to: String,
    /// Label of the edge.
    pub label: String,
    /// Condition as written; empty if the edge has none.
    pub condition: String,
    /// Weight of the edge.
    pub weight: i32,
}

/// Everything that a handler learns about its stage (`stage-input`). The host adds the mounts from the view of the files.
#[derive(Debug, Clone, PartialEq)]
pub struct StageInput {
    /// Id of the run.
    pub run: RunId,
    /// Identity of this call (decision attempt-identity).
    pub attempt: Attempt,
    /// Type of the handler.
    pub handler_type: String,
    /// The node's label.
    pub label: String,
    /// The prompt of the node, with variables expanded.
    pub prompt: Option<String>,
    /// The pipeline's goal.
    pub goal: String,
    /// The node's attributes.
    pub attributes: Vec<(String, String)>,
    /// The context values that the node may see.
    pub context: BTreeMap<String, Value>,
    /// Outgoing edges of the node.
    pub outgoing: Vec<OutgoingEdge>,
    /// Paths that the stage may write, by the scope of its binding.
    pub write_paths: Vec<Entry>,
    /// Commands that the stage may run, by the grant of its binding.
    pub commands: CommandGrant,
    /// The failure because of which the run came to this node.
    pub last_failure: Option<Failure>,
    /// Further key/value pairs for the handler.
    pub extra: Vec<(String, String)>,
}
