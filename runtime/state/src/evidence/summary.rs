//! What the result of a run says, grouped by who determines the fields. As JSON the groups are flat.

use super::branches::BranchFold;
use super::startup::StartupFiles;
use super::{
    BesideHoldouts, CanceledBy, CommandEvidence, DroppedChecks, ExitClass, FailedBranch, JournalHead, NodeTraffic,
    QuarantinedFile, RecoveryDecision, RefusedRequest, UnverifiedStage, Visit, rows, verdict,
};
use glovebox_journal::event::{BranchId, FailureMeta, FileChange, ForkedFrom, IgnoredFiles, QuestionAsked, Verdict};
use glovebox_record::path::ScopePath;
use glovebox_record::spend::Money;
use glovebox_record::{Failure, Network, NodeId, Tokens, Traffic};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A process drives it. The journal does not know: see [`RunSummary::is_running`].
    Running,
    /// It has not ended, and no process drives it.
    #[default]
    Unfinished,
    /// It waits for an answer, or somebody asked it to pause; no process drives it.
    Paused,
    /// It reached an exit with every goal gate satisfied.
    Success,
    /// It ended in any other way.
    Fail,
}

impl RunStatus {
    /// Returns the word for people and files.
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
    /// The run.
    pub run_id: String,
    /// The run whose records it begins with; absent for a run of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Box<ForkedFrom>>,
    /// The graph's name.
    pub pipeline: String,
    /// How the run stands.
    pub status: RunStatus,
    /// How it ended, and where a resume begins.
    #[serde(flatten)]
    pub end: RunEnd,
    /// Every finished visit in order.
    pub visited: Vec<Visit>,
    /// Questions that nobody has answered; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<QuestionAsked>,
    /// What proves the result, and what is missing.
    #[serde(flatten)]
    pub proof: RunProof,
    /// The files that stages wrote.
    #[serde(flatten)]
    pub files: RunFiles,
    /// The use of models.
    #[serde(flatten)]
    pub model: ModelUse,
    /// What stages asked for: network and files.
    #[serde(flatten)]
    pub access: RunAccess,
    /// From the first record to the last, milliseconds.
    pub duration_ms: u64,
    /// When the first record was appended.
    #[serde(skip)]
    pub started_at: Option<Timestamp>,
    /// The head of the journal.
    #[serde(skip)]
    pub head: JournalHead,
    /// The last visit of each node.
    #[serde(skip)]
    pub(super) last_visits: BTreeMap<(Option<BranchId>, NodeId), (u32, u32)>,
    /// Branches of parallel nodes.
    #[serde(skip)]
    pub(super) branches: BranchFold,
}

/// How a run ended. The end determines these fields, and a resume clears them.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunEnd {
    /// How the process that drove it ends.
    #[serde(skip)]
    pub exit: ExitClass,
    /// The failure's class, code and reason.
    pub failure: Option<Failure>,
    /// The stage with that failure, if a stage had it.
    pub failed_node: Option<NodeId>,
    /// The stage that a resume begins again at: the first of those whose failures led to the end. Absent where a resume continues, and if the
    /// run has not failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<NodeId>,
    /// Facts about the last verification, if it failed and the run has not succeeded (decision failure-codes); absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// When the run ended.
    #[serde(skip)]
    pub finished_at: Option<Timestamp>,
    #[serde(skip)]
    pub(super) canceled_by: Option<CanceledBy>,
    #[serde(skip)]
    pub(super) last_failure: Option<(NodeId, Failure)>,
}

/// What proves the result of a run. Commands of verifiers and the checks of the operator's contract determine these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunProof {
    /// The commands of each node's last attempt.
    pub receipts: Vec<CommandEvidence>,
    /// Stages whose last visit passed on their own word, with their handlers.
    pub unverified: Vec<UnverifiedStage>,
    /// Checks of the operator's contract that a stage dropped in its last visit: the run does not succeed without them. Absent when there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<DroppedChecks>,
    /// Branches that failed in the last visit of their parallel node, also where the run went on without them; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_branches: Vec<FailedBranch>,
    /// Verifying stages whose last attempt failed without the hold-outs of the run, which `holdouts=true` would give them; absent when
    /// there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub misses_holdouts: BTreeSet<NodeId>,
    /// Files that stages wrote and that stages with hold-outs could run code of.
    #[serde(skip)]
    pub beside_holdouts: BesideHoldouts,
    /// Files of stages that programs load by themselves.
    #[serde(skip)]
    pub(super) startup: StartupFiles,
    /// Handlers that the operator bound as verifiers.
    #[serde(skip)]
    pub(super) verifiers: BTreeSet<String>,
}

/// The files that stages wrote. What was committed, set aside and decided determines these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunFiles {
    /// The net changes, one entry for each path.
    #[serde(serialize_with = "rows::values")]
    #[schemars(with = "Vec<FileChange>")]
    pub changed: BTreeMap<ScopePath, FileChange>,
    /// The decisions of people about disallowed writes, in order; absent when there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<RecoveryDecision>,
    /// Changes that were set aside, by node.
    pub quarantined: Vec<QuarantinedFile>,
    /// The writes of stages to paths that git ignores; absent when there are none. A file counts for each stage that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
    /// The last builder that changed files, and the record of it.
    #[serde(skip)]
    pub(super) changed_last: Option<(u64, NodeId)>,
}

/// The use of models. The provider reports these fields.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ModelUse {
    /// The provider of model calls: `scripted`, `live` or `simulated`.
    #[serde(rename = "model")]
    pub provider: String,
    /// Stages that got a simulated answer: no model was asked.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
    /// Tokens of all attempts, as far as a script counts them.
    #[serde(skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Their cost, in millionths of a dollar; absent where no price is known.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some tokens and their cost are estimated; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
    /// Stages that get a simulated answer if they are visited.
    #[serde(skip)]
    pub(super) to_simulate: BTreeSet<NodeId>,
}

/// What stages asked for. The sandbox and the proxy enforce it.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RunAccess {
    /// The most network that a command may have; absent when no stage runs commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The refusals by node, each once.
    pub refused: Vec<RefusedRequest>,
    /// The requests of each node's commands to the proxy, all attempts together.
    #[serde(serialize_with = "verdict::by_node", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Vec<NodeTraffic<'_>>")]
    pub traffic: BTreeMap<NodeId, Traffic>,
}
