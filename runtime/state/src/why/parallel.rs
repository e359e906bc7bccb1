//! The steps of parallel nodes and fan-ins: the end of each branch, the policies that joined the branches, and the
//! choice of the fan-in.

use glovebox_journal::event::{BranchFinished, BranchId, FanInFinished, ParallelJoined};
use glovebox_pipeline::ir::ParallelSettings;
use glovebox_record::Failure;
use schemars::JsonSchema;
use serde::Serialize;

/// A branch that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BranchWhy {
    /// The branch.
    pub ended: BranchId,
    /// `success`, `partial_success`, `fail` or `canceled`.
    pub outcome: &'static str,
    /// The score by which a fan-in compares branches with the same outcome.
    pub score: f64,
    /// The failure, or the reason for the cancellation; absent if the branch succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A parallel node whose branches were joined.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JoinWhy {
    /// `join_policy` of the parallel node.
    pub join_policy: &'static str,
    /// `error_policy` of the parallel node.
    pub error_policy: &'static str,
    /// The status of the parallel node according to these policies.
    pub status: &'static str,
    /// Number of branches that succeeded.
    pub succeeded: u32,
    /// Number of branches that failed.
    pub failed: u32,
    /// Number of branches that were canceled.
    pub canceled: u32,
    /// Number of branches that never began.
    pub never_started: u32,
}

/// The choice of a fan-in.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChoiceWhy {
    /// `heuristic`, or the name of the component that chose.
    pub judge: String,
    /// The branch that was chosen; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<BranchId>,
    /// The branches whose changes were merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<BranchId>,
    /// The paths on which these branches differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// The failure of the fan-in; absent if it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl BranchWhy {
    pub(super) fn new(ended: &BranchFinished) -> Self {
        let BranchFinished { branch, outcome, score, failure, .. } = ended.to_owned();
        Self { ended: branch, outcome: outcome.as_str(), score, failure }
    }
}

impl JoinWhy {
    pub(super) fn new(setting: ParallelSettings, joined: &ParallelJoined) -> Self {
        Self {
            join_policy: setting.join.as_str(),
            error_policy: setting.error.as_str(),
            status: joined.status.as_str(),
            succeeded: joined.succeeded,
            failed: joined.failed,
            canceled: joined.canceled,
            never_started: joined.never_started,
        }
    }
}

impl ChoiceWhy {
    pub(super) fn new(chosen: &FanInFinished) -> Self {
        let conflicts = chosen.conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
        let FanInFinished { judge, best, merged, failure, .. } = chosen.to_owned();
        Self { judge, best, merged, conflicts, failure }
    }
}
