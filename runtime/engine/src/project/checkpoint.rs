//! `checkpoint.json`: the current state of the run (spec §5.3, decision completed-nodes).
//!
//! The file is for people and other tools. A resume reads the journal and never this file, so changing it has no
//! effect. Its lists have a maximum length, so that it does not grow with the run. Earlier entries are in `trace.jsonl`
//! and in the journal. `journal_seq` is the sequence number of the record to which the file belongs.

use glovebox_journal::event::time_format;
use glovebox_journal::event::{BranchId, Digest, NodeId, Record, RunId};
use glovebox_state::context::Context;
use glovebox_state::evidence::is_first;
use glovebox_state::run_state::{Branch, RunState};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of lines of the log.
pub(super) const LOGS_MAX: usize = 100;

/// The contents of `checkpoint.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "checkpoint.json")]
pub struct CheckpointFile {
    /// Always 1.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: String,
    /// When the last node completed, RFC 3339.
    pub timestamp: String,
    /// The sequence number of the record with which the node completed.
    pub journal_seq: u64,
    /// The hash of that record, which covers all records before it.
    pub journal_hash: Digest,
    /// The node that completed last, or the exit if the run has ended there.
    pub current_node: String,
    /// Number of loop restarts. Absent before the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub run_generation: u32,
    /// The last 256 finished visits of the generation in order, including failed ones, without exits.
    pub completed_nodes: Vec<NodeId>,
    /// Number of all finished visits.
    pub completed_total: u64,
    /// Number of retries since the node last succeeded.
    pub node_retries: BTreeMap<NodeId, u32>,
    /// The pipeline's context.
    pub context: Context,
    /// One line for each of the last 100 finished attempts.
    pub logs: Vec<String>,
    /// The branches of parallel nodes that have not ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub branches: BTreeMap<BranchId, BranchCheckpoint>,
}

/// The state of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchCheckpoint {
    /// The branch from which this branch split.
    pub parent: BranchId,
    /// The current node. Empty before the first node.
    pub current_node: String,
    /// The context of the branch.
    pub context: Context,
}

impl BranchCheckpoint {
    /// Returns the branches of a run that have not ended.
    fn from_state(state: &RunState) -> BTreeMap<BranchId, Self> {
        let one = |(id, branch): (&BranchId, &Arc<Branch>)| {
            let parent = branch.origin.as_ref()?.parent.clone();
            let current_node = branch.node.as_ref().map(NodeId::to_string).unwrap_or_default();
            Some((id.clone(), Self { parent, current_node, context: branch.context.clone() }))
        };
        state.branches.iter().filter_map(one).collect()
    }
}

/// The state of the run when a node completed. Unchanged parts are shared with the current state.
pub struct Completed {
    at: Timestamp,
    seq: u64,
    hash: Digest,
    state: RunState,
}

impl Completed {
    /// Creates the state after a record.
    pub fn after(record: &Record, state: &RunState) -> Self {
        let Record { seq, at, hash, .. } = *record;
        Self { at, seq, hash, state: state.clone() }
    }
}

impl CheckpointFile {
    /// Creates the contents of the file for this state of the run.
    pub fn new(completed: &Completed, logs: &VecDeque<String>) -> Self {
        let Completed { at, seq, hash, state } = completed;
        let (branch, exit) = (state.main(), state.verdict.as_ref().and_then(|verdict| verdict.exit_node.as_ref()));
        let retried = branch.nodes.iter().filter(|(_, history)| history.retries > 0);
        Self {
            schema_version: 1,
            run_id: state.run_id().map(RunId::to_string).unwrap_or_default(),
            timestamp: time_format::text(at),
            journal_seq: *seq,
            journal_hash: *hash,
            current_node: exit.or(branch.completed.last()).map(NodeId::to_string).unwrap_or_default(),
            run_generation: state.generation(),
            completed_nodes: branch.completed.kept().cloned().collect(),
            completed_total: branch.completed.total(),
            node_retries: retried.map(|(node, history)| (node.clone(), history.retries)).collect(),
            context: branch.context.clone(),
            logs: logs.iter().cloned().collect(),
            branches: BranchCheckpoint::from_state(state),
        }
    }
}
