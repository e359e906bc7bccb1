//! `checkpoint.json`: where the run stands (spec §5.3, decision completed-nodes).
//!
//! For people and other tools. A resume reads the journal and never this file, so a change of it has no effect. Its lists are bounded:
//! it does not grow with the run. What came before is in `trace.jsonl` and in the journal, whose place it names.

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

/// Lines of the log at most.
pub(super) const LOGS_MAX: usize = 100;

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
    /// The record of the journal with which it completed.
    pub journal_seq: u64,
    /// Its hash, which covers all records before it.
    pub journal_hash: Digest,
    /// The node that completed last; the exit when the run has ended there.
    pub current_node: String,
    /// Counts loop restarts; absent before the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub run_generation: u32,
    /// The last 256 finished visits of the generation in order, failed ones included, exits not.
    pub completed_nodes: Vec<NodeId>,
    /// All finished visits.
    pub completed_total: u64,
    /// Retries since the node last succeeded.
    pub node_retries: BTreeMap<NodeId, u32>,
    /// The pipeline's context.
    pub context: Context,
    /// One line for each of the last 100 finished attempts.
    pub logs: Vec<String>,
    /// Branches of forks that have not ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub branches: BTreeMap<BranchId, BranchCheckpoint>,
}

/// The current node of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchCheckpoint {
    /// The branch that forked.
    pub parent: BranchId,
    /// The node that it is at; empty before its first.
    pub current_node: String,
    /// Its context.
    pub context: Context,
}

impl BranchCheckpoint {
    /// The branches of a run that have not ended.
    fn from_state(state: &RunState) -> BTreeMap<BranchId, Self> {
        let one = |(id, branch): (&BranchId, &Arc<Branch>)| {
            let parent = branch.origin.as_ref()?.parent.clone();
            let current_node = branch.node.as_ref().map(NodeId::to_string).unwrap_or_default();
            Some((id.clone(), Self { parent, current_node, context: branch.context.clone() }))
        };
        state.branches.iter().filter_map(one).collect()
    }
}

/// The run when a node completed. It shares what it can with the run as it goes on.
pub struct Completed {
    at: Timestamp,
    seq: u64,
    hash: Digest,
    state: RunState,
}

impl Completed {
    /// The state after a record.
    pub fn after(record: &Record, state: &RunState) -> Self {
        let Record { seq, at, hash, .. } = *record;
        Self { at, seq, hash, state: state.clone() }
    }
}

impl CheckpointFile {
    /// Says where the run stood after the record at this place.
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
