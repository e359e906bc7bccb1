//! Events of parallel nodes: branches start, end and are merged.
//!
//! The start and the end of a branch belong to the stream of its parent branch. If two processes end the last two
//! branches at the same time, one append conflicts, and its process then sees that its branch is the last.

use super::{BranchId, Digest, FileChange, NodeId, RefusedChange, Task, time_format};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A branch reached a parallel node and waits for the branches that begin there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelStarted {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that was split.
    pub branch: BranchId,
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The fan-in where the branches meet.
    pub join: NodeId,
    /// The branches, in the order of their edges.
    pub children: Vec<ParallelChild>,
    /// The deadline of the node; absent without a `timeout`.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    /// The time of a supervisor's first observation of its child pipeline; absent for any other parallel node.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub observe_at: Option<Timestamp>,
}

/// A supervisor observed its child pipeline, which is still running (spec §4.11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildObserved {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that was split.
    pub branch: BranchId,
    /// The supervisor.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The number of the observation, from 1.
    pub cycle: u32,
    /// Context updates of the supervisor.
    pub context: BTreeMap<String, Value>,
    /// The new value of `stack.steering` in the child's context; absent if it did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<String>,
    /// Why the supervisor ends the child pipeline; absent if the child continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<SupervisionEnd>,
    /// The time of the next observation; absent if there is none.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub observe_at: Option<Timestamp>,
}

/// Why a supervisor ends its child pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SupervisionEnd {
    /// The condition `manager.stop_condition` is true: the supervisor succeeded.
    StopCondition,
    /// The supervisor made `manager.max_cycles` observations: it failed.
    MaxCycles,
}

/// The timeout of a parallel node has expired. Its branches are canceled, and the node fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelExpired {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that was split.
    pub branch: BranchId,
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
}

/// One branch of a parallel node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelChild {
    /// The branch.
    pub id: BranchId,
    /// The first node of the branch.
    pub to: NodeId,
    /// Index of the edge to the first node, in file order.
    pub edge: usize,
}

/// A branch of a parallel node was started, with a copy of the context and the files of its parent branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchStarted {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that was split.
    pub parent: BranchId,
    /// The first node of the branch.
    pub to: NodeId,
    /// Index of the edge to the first node, in file order.
    pub edge: usize,
    /// The initial context of a child pipeline, without outcomes of an earlier run of the child; absent for a copy of
    /// the parent branch's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<BTreeMap<String, Value>>,
}

/// A branch was canceled because its result is not needed any more. A running attempt of the branch is asked to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchCanceled {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that was split.
    pub parent: BranchId,
    /// Why the branch was canceled.
    pub reason: String,
}

/// How a branch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchEnd {
    /// The branch reached the fan-in after a success.
    Success,
    /// The branch reached the fan-in after a partial success.
    PartialSuccess,
    /// The branch failed, or reached the fan-in after a failure.
    Fail,
    /// The branch was canceled because the parallel node did not need its result any more.
    Canceled,
}

impl BranchEnd {
    /// Returns the name used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            BranchEnd::Success => "success",
            BranchEnd::PartialSuccess => "partial_success",
            BranchEnd::Fail => "fail",
            BranchEnd::Canceled => "canceled",
        }
    }

    /// Returns true for a success and a partial success.
    pub fn has_succeeded(self) -> bool {
        matches!(self, BranchEnd::Success | BranchEnd::PartialSuccess)
    }
}

/// A branch of a parallel node ended. None of its attempts is running any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchFinished {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that was split.
    pub parent: BranchId,
    /// How the branch ended.
    pub outcome: BranchEnd,
    /// The last node that the branch visited; absent if it visited none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The `score` in the branch's context; 0 if the branch set none.
    #[serde(default)]
    pub score: f64,
    /// The notes of the branch's last stage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Why the branch failed or was canceled; absent after a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Where a branch stood when it exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitPoint {
    /// A stage was ready, and no attempt had begun.
    BeforeStage,
    /// The attempt was asked to stop, or a limit of the run ended it.
    InStage,
    /// A further attempt of the stage was due.
    BeforeRetry,
    /// A person had not answered yet.
    AtQuestion,
    /// The branch waited for the branches of a parallel node.
    AtJoin,
    /// The stage had ended, and no edge was chosen.
    BeforeEdge,
}

/// A branch will take no further step, because the run was canceled, is stalled, or used up a limit. Unless a person
/// canceled the run, a resume continues here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchExited {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The last node that the branch visited; absent if it visited none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Why the branch exited.
    pub reason: String,
    /// Where the branch stood.
    pub point: ExitPoint,
}

/// All branches of a parallel node that were started have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelJoined {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that was split.
    pub branch: BranchId,
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The fan-in, where the branch that was split continues.
    pub join: NodeId,
    /// The status of the parallel node, computed from its policies.
    pub status: Status,
    /// Number of branches that succeeded.
    pub succeeded: u32,
    /// Number of branches that failed.
    pub failed: u32,
    /// Number of branches that were canceled.
    pub canceled: u32,
    /// Number of branches that were never started.
    pub never_started: u32,
    /// Why the parallel node failed; absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A fan-in chose a branch and merged changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FanInFinished {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that was split, into which the changes are merged.
    pub branch: BranchId,
    /// The fan-in.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The method of the choice: `heuristic`, or the handler of the fan-in.
    pub judge: String,
    /// `success` or `fail`.
    pub status: Status,
    /// The best branch; absent if no branch could be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BranchId>,
    /// How the best branch ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_outcome: Option<BranchEnd>,
    /// Branches whose changes were merged.
    #[serde(default)]
    pub merged: Vec<BranchId>,
    /// The merged changes, by path.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Paths that branches changed in different ways. No change of such a path was merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<MergeConflict>,
    /// Why the fan-in failed; absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The failure signature, which is equal for equal failures. Absent if there is no failure, and for a transient
    /// failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
    /// The context updates from a child pipeline.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, Value>,
    /// True if a verification of this visit follows, whose result decides whether the outcome is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
}

impl FanInFinished {
    /// Returns the visit as a task.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// Returns the conflicting changes as refused changes, for the quarantine.
    pub fn quarantined(&self) -> impl Iterator<Item = RefusedChange> {
        self.conflicts.iter().flat_map(|conflict| {
            let reason = conflict.reason();
            let one = move |_: &ConflictSide| RefusedChange { path: conflict.path.to_string(), reason: reason.clone() };
            conflict.sides.iter().map(one)
        })
    }
}

/// A path that branches changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeConflict {
    /// The path, relative to the workspace.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// The version of each branch.
    pub sides: Vec<ConflictSide>,
}

impl MergeConflict {
    /// Returns the reason why no change of the path was merged.
    pub fn reason(&self) -> String {
        let names: Vec<&str> = self.sides.iter().map(|side| side.branch.as_str()).collect();
        format!("conflict: branches {} changed it in different ways", names.join(", "))
    }
}

/// One branch's version of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictSide {
    /// The branch.
    pub branch: BranchId,
    /// The change of the branch. The bytes are stored as a blob.
    pub change: FileChange,
}
