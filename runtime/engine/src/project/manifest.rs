//! `manifest.json` and `final.json`: how a run began and how it ended.
//!
//! Both say what one record of the journal says, in the words other tools read (spec §5.6, seed 3). `final.json` exists once the
//! run has ended, whichever way; its status is binary and a canceled run is a failed one (design §9 #15).

use crate::event::{Digest, NodeId, Record, RunFinished, RunId, RunStarted, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `manifest.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "manifest.json")]
pub struct ManifestFile {
    /// Always 1.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: RunId,
    /// The graph's name.
    pub name: String,
    /// The goal, inputs expanded.
    pub goal: String,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// Where the pipeline was read from.
    pub pipeline_path: String,
    /// The folder the workspace was copied from.
    pub original_workdir: String,
    /// The run's own copy of it, relative to the run directory.
    pub workspace_path: String,
    /// Blob with the pipeline's source.
    pub pipeline_digest: Digest,
    /// Digest of the plan.
    pub plan_digest: Digest,
    /// Blob with the list of files the workspace began with.
    pub base_digest: Digest,
    /// `scripted` or `simulated`.
    pub model: String,
    /// Blob with the script; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
    /// `--set` values.
    pub inputs: BTreeMap<String, String>,
    /// Confinement of subprocesses.
    pub sandbox_tier: String,
    /// Most steps of the run.
    pub steps_max: u64,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Version of the program.
    pub engine_version: String,
}

impl ManifestFile {
    /// Says in the file's words what `run.started` says.
    pub fn of(record: &Record, started: &RunStarted) -> Self {
        Self {
            schema_version: 1,
            run_id: started.run_id.clone(),
            name: started.pipeline_name.clone(),
            goal: started.goal.clone(),
            started_at: record.at.to_string(),
            pipeline_path: started.pipeline_path.clone(),
            original_workdir: started.source_dir.clone(),
            workspace_path: "workspace".to_owned(),
            pipeline_digest: started.pipeline_digest,
            plan_digest: started.plan_digest,
            base_digest: started.base_digest,
            model: started.model.clone(),
            script_digest: started.script_digest,
            inputs: started.inputs.clone(),
            sandbox_tier: started.sandbox_tier.clone(),
            steps_max: started.steps_max,
            labels: started.labels.clone(),
            engine_version: started.engine_version.clone(),
        }
    }
}

/// What `final.json` holds (seed 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "final.json")]
pub struct FinalFile {
    /// When the run ended, RFC 3339.
    pub timestamp: String,
    /// `success` or `fail`.
    pub status: Verdict,
    /// The run's id.
    pub run_id: RunId,
    /// Empty: a run's workspace is a copy and never commits to anybody's repository.
    pub final_git_commit_sha: String,
    /// The stage's reason, unchanged; absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Class the host decided; absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<String>,
    /// Stable code; absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<String>,
    /// The exit that was reached; absent after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<NodeId>,
    /// Stage executions and passed nodes.
    pub steps: u64,
    /// Everything any stage was refused.
    pub refusals_total: u64,
    /// Changes that were set aside because nothing allowed them.
    pub quarantined: u64,
    /// Empty: kept for tools that expect the field.
    pub cxdb_context_id: String,
    /// Empty: kept for tools that expect the field.
    pub cxdb_head_turn_id: String,
}

/// What `final.json` counts over a whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Stage executions and passed nodes.
    pub steps: u64,
    /// Refusals, also those beyond the cap.
    pub refusals: u64,
    /// Changes set aside.
    pub quarantined: u64,
}

impl FinalFile {
    /// Says in the file's words what `run.finished` says.
    pub fn of(record: &Record, run_id: RunId, finished: &RunFinished, totals: Totals) -> Self {
        let failure = finished.failure.as_ref();
        Self {
            timestamp: record.at.to_string(),
            status: finished.status,
            run_id,
            final_git_commit_sha: String::new(),
            failure_reason: failure.map(|failure| failure.reason.clone()),
            failure_class: failure.map(|failure| failure.class.as_str().to_owned()),
            failure_code: failure.map(|failure| failure.code.to_string()),
            exit_node: finished.exit_node.clone(),
            steps: totals.steps,
            refusals_total: totals.refusals,
            quarantined: totals.quarantined,
            cxdb_context_id: String::new(),
            cxdb_head_turn_id: String::new(),
        }
    }
}
