//! `checkpoint.json`: where the run stands (spec §5.3), in the words of design §9 #29.
//!
//! For people and other tools. A resume reads the journal and never this file, so a change of it has no effect.

use crate::context::Context;
use crate::event::moment;
use crate::event::{NodeId, Record, RunId};
use crate::state::RunState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `checkpoint.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "checkpoint.json")]
pub struct CheckpointFile {
    /// Always 1.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: String,
    /// When the last node completed, RFC 3339.
    pub timestamp: String,
    /// The node that completed last; the exit when the run has ended there.
    pub current_node: String,
    /// Every finished visit in order, failed ones included, exits not.
    pub completed_nodes: Vec<NodeId>,
    /// Retries since the node last succeeded.
    pub node_retries: BTreeMap<NodeId, u32>,
    /// The pipeline's context.
    pub context: Context,
    /// One line per finished attempt.
    pub logs: Vec<String>,
}

impl CheckpointFile {
    /// Says where the run stands after a record.
    pub fn of(record: &Record, state: &RunState, logs: &[String]) -> Self {
        let (branch, exit) = (state.main(), state.verdict.as_ref().and_then(|verdict| verdict.exit_node.as_ref()));
        let retried = branch.nodes.iter().filter(|(_, history)| history.retries > 0);
        Self {
            schema_version: 1,
            run_id: state.run_id().map(RunId::to_string).unwrap_or_default(),
            timestamp: moment::text(&record.at),
            current_node: exit.or(branch.completed.last()).map(NodeId::to_string).unwrap_or_default(),
            completed_nodes: branch.completed.iter().cloned().collect(),
            node_retries: retried.map(|(node, history)| (node.clone(), history.retries)).collect(),
            context: branch.context.clone(),
            logs: logs.to_vec(),
        }
    }
}
