//! The summary of a run. The fields are grouped by who determines them. In JSON, all groups are flattened into one
//! object.

use super::branches::BranchFold;
use super::failed_stage::FailedStage;
use super::running::{BranchNow, BranchesNow};
use super::startup::StartupFiles;
use super::{
    BesideHoldouts, CanceledBy, CommandEvidence, DroppedChecks, ExitClass, FailedBranch, JournalHead, NodeTraffic,
    QuarantinedFile, RecoveryDecision, RefusedRequest, UnmatchedEntry, UnreadStatus, UnverifiedStage, Visit, rows,
    verdict,
};
use glovebox_journal::event::{
    BranchId, FailureMeta, FileChange, ForkedFrom, IgnoredFiles, QuestionAsked, RunId, Verdict, time_format,
};
use glovebox_record::path::ScopePath;
use glovebox_record::spend::Money;
use glovebox_record::{Failure, MissingFiles, Network, NodeId, Tokens, Traffic};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A process drives the run. The journal cannot show this: see [`RunSummary::is_running`].
    Running,
    /// The run has not ended, and no process drives it.
    #[default]
    Unfinished,
    /// The run waits for an answer or was paused, and no process drives it.
    Paused,
    /// The run reached an exit with every goal gate satisfied.
    Success,
    /// The run ended in any other way.
    Fail,
}

impl RunStatus {
    /// Returns the name in JSON and in output for people.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Unfinished => "unfinished",
            RunStatus::Paused => "paused",
            RunStatus::Success => "success",
            RunStatus::Fail => "fail",
        }
    }
}

impl From<Verdict> for RunStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Success => RunStatus::Success,
            Verdict::Fail => RunStatus::Fail,
        }
    }
}

/// The result of a run so far.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunSummary {
    /// The id of the run.
    pub run_id: String,
    /// The run whose first records this run copied; absent if the run is not a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// The name of the graph.
    pub pipeline: String,
    /// The status of the run.
    pub status: RunStatus,
    /// The end of the run, and the node at which a resume begins.
    #[serde(flatten)]
    pub end: RunEnd,
    /// All finished visits, in order.
    pub visited: Vec<Visit>,
    /// Questions without an answer; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<QuestionAsked>,
    /// What proves the result, and which proofs are missing.
    #[serde(flatten)]
    pub proof: RunProof,
    /// The files that stages wrote.
    #[serde(flatten)]
    pub files: RunFiles,
    /// The use of models in the run.
    #[serde(flatten)]
    pub model: ModelUse,
    /// The network requests and refusals of stages.
    #[serde(flatten)]
    pub access: RunAccess,
    /// The branches of a run that a process drives, with what each executes and waits for; absent otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches_now: Vec<BranchNow>,
    /// Time from the first record to the last, milliseconds.
    pub duration_ms: u64,
    /// Time at which the first record was appended.
    #[serde(skip)]
    pub started_at: Option<Timestamp>,
    /// The head of the journal.
    #[serde(skip)]
    pub head: JournalHead,
    /// The generation and number of the last visit of each node.
    #[serde(skip)]
    pub(super) last_visits: BTreeMap<(Option<BranchId>, NodeId), (u32, u32)>,
    /// The branches of parallel nodes.
    #[serde(skip)]
    pub(super) branches: BranchFold,
    /// What the branches execute.
    #[serde(skip)]
    pub(super) now: BranchesNow,
}

/// The end of a run. The last record determines these fields, and a resume clears them.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunEnd {
    /// How the process that drove the run ends.
    #[serde(skip)]
    pub exit: ExitClass,
    /// The class, code and reason of the failure; null if the run has not failed.
    pub failure: Option<Failure>,
    /// The stage with that failure; null if no stage caused it.
    pub failed_node: Option<NodeId>,
    /// The stage at which a resume begins: the first of the stages whose failures led to the end. Absent if a resume
    /// continues where the run stopped, or if the run has not failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<NodeId>,
    /// Facts about the last verification, if it failed and the run has not succeeded (decision failure-codes); absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// The first time at which a stage of a paused run would have been executed again, because the quota at its provider
    /// resumes then; absent if no provider named a time.
    #[serde(with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resume_at: Option<Timestamp>,
    /// How often the stage of `failed_node` has waited for its quota, after which the run paused; absent if it has not.
    #[serde(skip)]
    pub quota_waits: u32,
    /// Time at which the run ended.
    #[serde(skip)]
    pub finished_at: Option<Timestamp>,
    #[serde(skip)]
    pub(super) canceled_by: Option<CanceledBy>,
    #[serde(skip)]
    pub(super) last_failure: Option<(NodeId, Failure)>,
}

/// What proves the result of a run. The commands of verifiers and of the verify contract determine these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunProof {
    /// The commands of each node's last attempt.
    pub receipts: Vec<CommandEvidence>,
    /// Stages whose last visit passed without a receipt, with their handlers.
    pub unverified: Vec<UnverifiedStage>,
    /// Commands of the verify contract that a stage skipped in its last visit, because of which the run cannot succeed.
    /// Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<DroppedChecks>,
    /// Branches that failed in the last visit of their parallel node, even if the run continued without them; absent if
    /// there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_branches: Vec<FailedBranch>,
    /// Verifying stages whose last attempt failed without access to the hold-outs of the run, which `holdouts=true`
    /// would give them; absent if there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub misses_holdouts: BTreeSet<NodeId>,
    /// The earlier run whose build caches the verifiers without hold-outs in reach began with; absent if they began with empty ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches_from: Option<RunId>,
    /// Files of the project whose content was missing when the run copied it. No verdict covers them. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingFiles>,
    /// Entries of `read_paths` and of `paths` that matched no file in the last attempt of their stage; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<UnmatchedEntry>,
    /// Status files that stages left in the workspace and that decided nothing in the last attempt of their stage; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread_status: Vec<UnreadStatus>,
    /// The stages whose last attempt failed.
    #[serde(skip)]
    pub failed: BTreeMap<NodeId, FailedStage>,
    /// Files that stages wrote and whose code could run in stages with access to hold-outs.
    #[serde(skip)]
    pub beside_holdouts: BesideHoldouts,
    /// Files that stages wrote and that programs load automatically.
    #[serde(skip)]
    pub(super) startup: StartupFiles,
    /// Handlers that the operator bound as verifiers.
    #[serde(skip)]
    pub(super) verifiers: BTreeSet<String>,
}

/// The files that stages wrote. Commits, the quarantine and people's decisions determine these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunFiles {
    /// The net changes, one entry for each path.
    #[serde(serialize_with = "rows::values")]
    #[schemars(with = "Vec<FileChange>")]
    pub changed: BTreeMap<ScopePath, FileChange>,
    /// The decisions of people about disallowed writes, in order; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<RecoveryDecision>,
    /// Changes in the quarantine, by node.
    pub quarantined: Vec<QuarantinedFile>,
    /// The writes of stages to paths that git ignores; absent if there are none. A file is counted once for each stage
    /// that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
    /// Number of changes that were set aside, with those that a person allowed later.
    #[serde(skip)]
    pub(super) quarantined_total: u64,
    /// The last builder that changed files, and the sequence number of the record.
    #[serde(skip)]
    pub(super) changed_last: Option<(u64, NodeId)>,
}

/// The use of models. The provider reports these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ModelUse {
    /// The provider of model calls: `scripted`, `live` or `simulated`.
    #[serde(rename = "model")]
    pub provider: String,
    /// Stages that got a simulated answer, for which no model was called.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
    /// Tokens of all attempts. For scripted answers, the tokens that the script states.
    #[serde(skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// The cost of the tokens in millionths of a dollar; absent if no price is known.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if a part of the tokens and of the cost is estimated; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
    /// Stages that get a simulated answer if they are visited.
    #[serde(skip)]
    pub(super) to_simulate: BTreeSet<NodeId>,
}

/// The network and file requests of stages. The sandbox and the proxy determine these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunAccess {
    /// The widest network access of any command; absent if no stage runs commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The refusals by node. Equal refusals are counted in one entry.
    pub refused: Vec<RefusedRequest>,
    /// The requests of each node's commands to the proxy, summed over all attempts.
    #[serde(serialize_with = "verdict::by_node", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Vec<NodeTraffic<'_>>")]
    pub traffic: BTreeMap<NodeId, Traffic>,
}
