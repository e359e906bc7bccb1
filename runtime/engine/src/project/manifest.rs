//! `manifest.json` and `final.json`: how a run began and how it ended.
//!
//! Each contains the values of one record of the journal, with the field names that other tools read (spec §5.6,
//! decision final-json-at-every-end). `final.json` exists once the run has ended in any way. The status is `success` or
//! `fail`, and a canceled run has failed (decision run-status-is-binary).

use crate::run_dir::WORKSPACE_DIR;
use glovebox_journal::event::time_format;
use glovebox_journal::event::{
    Digest, ForkedFrom, NodeId, Record, RunFinished, RunId, RunStarted, StageFinished, Verdict,
};
use glovebox_record::Tokens;
use glovebox_record::spend::Money;
use glovebox_state::evidence::is_first;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The contents of `manifest.json`.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "manifest.json")]
pub struct ManifestFile<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: &'a RunId,
    /// The run from which this run was forked. Absent if it was not forked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<&'a ForkedFrom>,
    /// The graph's name.
    pub name: &'a str,
    /// The goal of the pipeline, with inputs expanded.
    pub goal: &'a str,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The path of the pipeline file.
    pub pipeline_path: &'a str,
    /// The folder from which the workspace was copied.
    pub original_workdir: &'a str,
    /// The run's copy of the project, relative to the run directory.
    pub workspace_path: &'a str,
    /// Digest of the blob with the pipeline's source.
    pub pipeline_digest: Digest,
    /// Digest of the plan.
    pub plan_digest: Digest,
    /// Digest of the blob with the list of files with which the workspace began.
    pub base_digest: Digest,
    /// The source of model answers: `scripted`, `live` or `simulated`.
    pub model: &'a str,
    /// Digest of the blob with the script. Absent without a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
    /// The values of `--set`.
    pub inputs: &'a BTreeMap<String, String>,
    /// The sandbox tier of commands.
    pub sandbox_tier: &'a str,
    /// Maximum number of steps of the run.
    pub steps_max: u64,
    /// Labels that the user chose.
    pub labels: &'a BTreeMap<String, String>,
    /// Version of the program.
    pub engine_version: &'a str,
}

impl<'a> ManifestFile<'a> {
    /// Converts a `run.started` event to the file.
    pub fn new(record: &Record, started: &'a RunStarted) -> Self {
        Self {
            schema_version: 1,
            run_id: &started.run_id,
            name: &started.pipeline.name,
            goal: &started.pipeline.goal,
            started_at: time_format::text(&record.at),
            pipeline_path: &started.pipeline.path,
            original_workdir: &started.workspace.source_dir,
            workspace_path: WORKSPACE_DIR,
            pipeline_digest: started.pipeline.digest,
            plan_digest: started.plan.digest,
            base_digest: started.workspace.base_digest,
            model: &started.model.provider,
            script_digest: started.model.script_digest,
            inputs: &started.pipeline.inputs,
            sandbox_tier: &started.commands.tier,
            forked_from: started.forked_from.as_deref(),
            steps_max: started.bounds.steps_max,
            labels: &started.labels,
            engine_version: &started.engine_version,
        }
    }
}

/// The contents of `final.json` (decision final-json-at-every-end).
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "final.json")]
pub struct FinalFile<'a> {
    /// When the run ended, RFC 3339.
    pub timestamp: String,
    /// How the run ended: `success` or `fail`.
    pub status: Verdict,
    /// The run's id.
    pub run_id: RunId,
    /// The commit of the git checkout from which the run began, because a run never commits. Empty without a commit.
    pub final_git_commit_sha: &'a str,
    /// The stage's reason, unchanged. Absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<&'a str>,
    /// The failure class, which the host decides. Absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<&'a str>,
    /// The stable code of the failure. Absent after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<&'a str>,
    /// The exit that was reached. Absent after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<&'a NodeId>,
    /// Number of loop restarts. Absent if there were none.
    #[serde(default, skip_serializing_if = "is_first")]
    pub run_generation: u32,
    /// Number of stage executions and passed nodes.
    pub steps: u64,
    /// Number of all refusals of all stages.
    pub refusals_total: u64,
    /// Number of changes in the quarantine, because nothing allowed them.
    pub quarantined: u64,
    /// Tokens of all model calls. Absent if no tokens were counted.
    #[serde(default, skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// The cost of the tokens in US dollars, with `~` in front if a part is estimated. Absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Always empty. Kept for tools that expect the field.
    pub cxdb_context_id: String,
    /// Always empty. Kept for tools that expect the field.
    pub cxdb_head_turn_id: String,
}

/// The totals of a whole run in `final.json`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of loop restarts.
    pub generation: u32,
    /// Number of stage executions and passed nodes.
    pub steps: u64,
    /// Number of refusals, including those that are not listed.
    pub refusals: u64,
    /// Number of changes in the quarantine.
    pub quarantined: u64,
    /// Tokens of model calls.
    pub tokens: Tokens,
    /// Cost of the tokens.
    pub cost: Money,
    /// True if a part of tokens or cost is estimated.
    pub is_estimated: bool,
}

impl Totals {
    /// Adds an attempt to the totals.
    pub fn add(&mut self, finished: &StageFinished) {
        self.refusals = self.refusals.saturating_add(finished.refusals.total);
        self.quarantined += finished.files.quarantined.len() as u64;
        self.tokens.add(finished.model.tokens);
        self.cost = Money(self.cost.0.saturating_add(finished.model.cost.0));
        self.is_estimated |= finished.model.is_estimated;
    }

    fn cost(&self) -> Option<String> {
        let about = if self.is_estimated { "~" } else { "" };
        (!self.cost.is_zero()).then(|| format!("{about}{}", self.cost))
    }
}

impl<'a> FinalFile<'a> {
    /// Converts the end of a run to the file.
    pub fn new(at: &Timestamp, started: &'a RunStarted, finished: &'a RunFinished, totals: Totals) -> Self {
        let failure = finished.failure.as_ref();
        Self {
            timestamp: time_format::text(at),
            status: finished.status,
            run_id: started.run_id.clone(),
            final_git_commit_sha: started.workspace.git.commit.as_deref().unwrap_or_default(),
            failure_reason: failure.map(|failure| failure.reason.as_str()),
            failure_class: failure.map(|failure| failure.class.as_str()),
            failure_code: failure.map(|failure| failure.code.as_str()),
            exit_node: finished.exit_node.as_ref(),
            run_generation: totals.generation,
            steps: totals.steps,
            refusals_total: totals.refusals,
            quarantined: totals.quarantined,
            tokens: totals.tokens,
            cost: totals.cost(),
            cxdb_context_id: String::new(),
            cxdb_head_turn_id: String::new(),
        }
    }
}
