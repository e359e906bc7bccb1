//! Events of parallel nodes: what begins, ends and merges branches.
//!
//! The beginning and the end of a branch stand under the head of the branch that split, so that two processes that end two of its
//! branches at once cannot both miss that they were the last.

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
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that splits.
    pub branch: BranchId,
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The fan-in where its branches meet.
    pub join: NodeId,
    /// Its branches in the order of their edges.
    pub children: Vec<ParallelChild>,
    /// When its time is over; absent without a `timeout`.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    /// When a supervisor looks at its child pipeline for the first time; absent for any other parallel node.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub observe_at: Option<Timestamp>,
}

/// A supervisor looked at its child pipeline, which still runs (spec §4.11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildObserved {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that split.
    pub branch: BranchId,
    /// The supervisor.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The number of the observation, from 1.
    pub cycle: u32,
    /// The updates of its context.
    pub context: BTreeMap<String, Value>,
    /// The new value of `stack.steering` in the child's context; absent when there is nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<String>,
    /// Why the child is not needed any more; absent while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<SupervisionEnd>,
    /// When it looks again; absent when it does not.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub observe_at: Option<Timestamp>,
}

/// Why a supervisor ends its child pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SupervisionEnd {
    /// `manager.stop_condition` holds: the supervisor has succeeded.
    StopCondition,
    /// It looked `manager.max_cycles` times: the supervisor has failed.
    MaxCycles,
}

/// The time of a parallel node is over. Its branches are not needed any more, and it fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelExpired {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that split.
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
    /// Its first node.
    pub to: NodeId,
    /// Index of its edge in file order.
    pub edge: usize,
}

/// A branch of a parallel node began, with a copy of the context and the files of the branch that split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchStarted {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that split.
    pub parent: BranchId,
    /// Its first node.
    pub to: NodeId,
    /// Index of its edge in file order.
    pub edge: usize,
    /// The context that a child pipeline begins with, with no outcome of an earlier run of the child; absent for a copy of all that the
    /// branch that split knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<BTreeMap<String, Value>>,
}

/// A branch is not needed any more. An attempt of it that is under way is asked to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchCanceled {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that split.
    pub parent: BranchId,
    /// Why.
    pub reason: String,
}

/// How a branch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchEnd {
    /// It reached the fan-in after a success.
    Success,
    /// It reached the fan-in after a partial success.
    PartialSuccess,
    /// It failed, also when it reached the fan-in after a failure.
    Fail,
    /// Its parallel node did not need it any more.
    Canceled,
}

impl BranchEnd {
    /// The word in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            BranchEnd::Success => "success",
            BranchEnd::PartialSuccess => "partial_success",
            BranchEnd::Fail => "fail",
            BranchEnd::Canceled => "canceled",
        }
    }

    /// True when the branch did what it was for.
    pub fn has_succeeded(self) -> bool {
        matches!(self, BranchEnd::Success | BranchEnd::PartialSuccess)
    }
}

/// A branch of a parallel node ended. Nothing of it is under way any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchFinished {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The branch that split.
    pub parent: BranchId,
    /// How.
    pub outcome: BranchEnd,
    /// The node that it was at last; absent when it visited none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The `score` in the branch's context; 0 when it set none.
    #[serde(default)]
    pub score: f64,
    /// The notes of its last stage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Why it failed or was canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Every branch of a parallel node that began has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelJoined {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that split.
    pub branch: BranchId,
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The fan-in, where the branch that split goes on.
    pub join: NodeId,
    /// How the parallel node ended by its policies.
    pub status: Status,
    /// Branches that succeeded.
    pub succeeded: u32,
    /// Branches that failed.
    pub failed: u32,
    /// Branches that were canceled.
    pub canceled: u32,
    /// Branches that never began.
    pub never_started: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A fan-in chose a branch and took changes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FanInFinished {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that split, which has the changes from here on.
    pub branch: BranchId,
    /// The fan-in.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The method of the choice: `heuristic`, or the handler of the fan-in.
    pub judge: String,
    /// `success` or `fail`.
    pub status: Status,
    /// The best branch; absent when there was none to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BranchId>,
    /// How it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_outcome: Option<BranchEnd>,
    /// Branches whose changes were taken.
    #[serde(default)]
    pub merged: Vec<BranchId>,
    /// The changes that were taken, by path.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Paths that branches changed in different ways. None of their changes was taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<MergeConflict>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Its signature; absent for a failure that can pass by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
    /// The context updates from a child pipeline.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, Value>,
    /// True when a verification of this visit follows, which decides what the outcome counts for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
}

impl FanInFinished {
    /// The visit.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }

    /// The changes of conflicts, as what was set aside.
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
    /// Relative to the workspace.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// The version of each branch.
    pub sides: Vec<ConflictSide>,
}

impl MergeConflict {
    /// Why nothing was taken.
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
    /// Its change; its bytes are kept.
    pub change: FileChange,
}
