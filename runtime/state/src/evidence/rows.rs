//! The rows of a summary: finished visits, and refused or quarantined changes.

use glovebox_journal::event::{BranchId, FileChange, Refusal};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, NodeId, Unmatched};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// One finished visit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Visit {
    /// The node.
    pub node: NodeId,
    /// The branch; absent for the main branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// The generation; absent for generation 0.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// Number of the visit within the generation.
    pub visit: u32,
    /// Number of attempts of the visit.
    pub attempts: u32,
    /// The status of the visit.
    pub status: &'static str,
}

/// A stage that passed without a verified command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnverifiedStage {
    /// The node.
    pub node: NodeId,
    /// The handler of the node.
    pub handler: String,
}

/// Commands of the verify contract that the last visit of a stage skipped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DroppedChecks {
    /// The node.
    pub node: NodeId,
    /// The branch of a parallel node; absent outside of parallel nodes, and after the parallel node has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// The skipped commands.
    pub commands: Vec<String>,
}

/// An entry of an attribute that matched no file when the last attempt of the stage began.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnmatchedEntry {
    /// The node.
    pub node: NodeId,
    /// The attribute and its entry.
    #[serde(flatten)]
    pub unmatched: Unmatched,
}

/// A status file that a stage left in the workspace and that decided nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnreadStatus {
    /// The node.
    pub node: NodeId,
    /// The path of the file.
    pub path: String,
    /// Why the file decided nothing.
    pub reason: UnreadReason,
}

/// Why a status file decided nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnreadReason {
    /// The node has no `status_file=true`.
    NotAsked,
    /// The file is no status.
    Unusable,
    /// The file belongs to another attempt.
    Foreign,
}

/// A branch of a parallel node that failed, even if the parallel node or the run succeeded.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailedBranch {
    /// The branch.
    pub branch: BranchId,
    /// The parallel node.
    pub parallel: NodeId,
    /// The last node of the branch; absent if the branch visited none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The class, code and reason of the failure.
    pub failure: Option<Failure>,
}

/// A refused request and the node that made it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedRequest {
    /// The node.
    pub node: NodeId,
    /// Number of times the request was refused.
    pub times: usize,
    /// The refusal.
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// A change in the quarantine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuarantinedFile {
    /// Number of the change among all that the run has set aside, from 1. It never changes.
    pub number: u64,
    /// The node.
    pub node: NodeId,
    /// The path in the workspace.
    pub path: String,
    /// The reason why the change was not committed.
    pub reason: String,
}

pub fn is_first(generation: &u32) -> bool {
    *generation == 0
}

/// Serializes the changes as a list, because each change contains its path.
pub(super) fn values<S: Serializer>(
    changed: &BTreeMap<ScopePath, FileChange>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changed.values())
}
