//! The result of a run: its verdict, its exit class, and the evidence for both.
//!
//! A fold of the journal's records and nothing else, so `run`, `resume`, `show` and `ls` report the same journal in the same way.
//! A command is *verified* when a verifier ran it, it exited 0 and its stage passed. Verifiers are tool and verify stages, and plugins
//! that the operator bound as verifiers. Any other command only *ran*. A stage without a verified command passed on its own word.

mod beside;
mod branches;
mod class;
pub mod configuration;
mod list;
mod notes;
mod readers;
mod receipt;
mod recovery;
mod replay;
mod rows;
mod startup;
#[cfg(test)]
mod tests;
mod verdict;

pub use beside::BesideHoldouts;
pub use class::{CanceledBy, ExitClass};
pub use list::{Claim, Command, Evidence};
pub use receipt::{CommandEvidence, Proof};
pub use recovery::{GrantedFile, PolicyDecision};
pub use replay::Replay;
pub use rows::is_first;
pub use rows::{DroppedChecks, FailedBranch, QuarantinedFile, RefusedRequest, UnverifiedStage, Visit};
pub use startup::StartupFile;
pub use verdict::{ExitShape, JournalHead, NodeTraffic, VerdictFile};

use branches::ParallelOrigin;
use glovebox_pipeline::ir::{HandlerKind, Role};
use receipt::EndedStage;
use startup::StartupFiles;

use glovebox_journal::event::{
    Attempt, BranchId, Event, FailureMeta, FanInFinished, FileChange, ForkedFrom, IgnoredFiles, QuestionAnswered,
    QuestionAsked, Record, Replanned, RunFinished, RunResumed, RunStarted, StageCommands, StageFiles, StageFinished,
    Task, Verdict, Work,
};
use glovebox_journal::ports::PortError;
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::rewind::{self, Fold};
use glovebox_record::path::ScopePath;
use glovebox_record::spend::Money;
use glovebox_record::{Failure, FailureCode, Network, NodeId, Tokens, Traffic};
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
    /// How the process that drove it ends.
    #[serde(skip)]
    pub exit: ExitClass,
    /// The provider of model calls: `scripted`, `live` or `simulated`.
    pub model: String,
    /// Stages that got a simulated answer: no model was asked.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
    /// The most network that a command may have; absent when no stage runs commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Questions that nobody has answered; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_questions: Vec<QuestionAsked>,
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
    /// Every finished visit in order.
    pub visited: Vec<Visit>,
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
    /// The refusals by node, each once.
    pub refused: Vec<RefusedRequest>,
    /// The net changes, one entry for each path.
    #[serde(serialize_with = "rows::values")]
    #[schemars(with = "Vec<FileChange>")]
    pub changed: BTreeMap<ScopePath, FileChange>,
    /// The decisions of people about disallowed writes, in order; absent when there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<PolicyDecision>,
    /// Changes that were set aside, by node.
    pub quarantined: Vec<QuarantinedFile>,
    /// The writes of stages to paths that git ignores; absent when there are none. A file counts for each stage that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
    /// Verifying stages whose last attempt failed without the hold-outs of the run, which `holdouts=true` would give them; absent when
    /// there are none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub misses_holdouts: BTreeSet<NodeId>,
    /// From the first record to the last, milliseconds.
    pub duration_ms: u64,
    /// When the first record was appended.
    #[serde(skip)]
    pub started_at: Option<Timestamp>,
    /// When the run ended.
    #[serde(skip)]
    pub finished_at: Option<Timestamp>,
    /// Tokens of all attempts, as far as a script counts them.
    #[serde(skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Their cost, in millionths of a dollar; absent where no price is known.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some tokens and their cost are estimated; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
    /// The requests of each node's commands to the proxy, all attempts together.
    #[serde(serialize_with = "verdict::by_node", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Vec<NodeTraffic<'_>>")]
    pub traffic: BTreeMap<NodeId, Traffic>,
    /// Files that stages wrote and that stages with hold-outs could run code of.
    #[serde(skip)]
    pub beside_holdouts: BesideHoldouts,
    /// Files of stages that programs load by themselves.
    #[serde(skip)]
    startup: StartupFiles,
    /// The head of the journal.
    #[serde(skip)]
    pub head: JournalHead,
    /// Stages that get one if they are visited.
    #[serde(skip)]
    to_simulate: BTreeSet<NodeId>,
    #[serde(skip)]
    verifiers: BTreeSet<String>,
    #[serde(skip)]
    canceled_by: Option<CanceledBy>,
    #[serde(skip)]
    last_failure: Option<(NodeId, Failure)>,
    /// The last visit of each node.
    #[serde(skip)]
    last_visits: BTreeMap<(Option<BranchId>, NodeId), (u32, u32)>,
    /// The first node of each branch of a parallel node.
    #[serde(skip)]
    began_at: BTreeMap<BranchId, ParallelOrigin>,
    /// Branches of parallel nodes that have not ended, by the branch that split.
    #[serde(skip)]
    split: BTreeMap<BranchId, BTreeSet<BranchId>>,
    /// Branches of parallel nodes that changed files.
    #[serde(skip)]
    changed_branches: BTreeSet<BranchId>,
    /// The last builder that changed files, and the record of it.
    #[serde(skip)]
    changed_last: Option<(u64, NodeId)>,
    /// The fan-in that the run stands before.
    #[serde(skip)]
    joined_at: Option<NodeId>,
}

/// The effect of resuming a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// It continues where the run stopped.
    Continues,
    /// It needs more steps to continue.
    NeedsSteps,
    /// It needs more time to continue.
    NeedsTime,
    /// It needs more tokens to continue.
    NeedsTokens,
    /// It needs more money to continue.
    NeedsMoney,
    /// It begins again at the node that failed.
    Repeats,
    /// It only shows the run, which has succeeded or was canceled for good.
    Shows,
}

impl Fold for RunSummary {
    type Past = Self;

    fn apply(&mut self, record: &Record) {
        Self::apply(self, record);
    }

    fn go_back(&mut self, past: Self) {
        Self::go_back(self, past);
    }
}

/// A summary whose records somebody else sees as well.
struct Watched<L> {
    summary: RunSummary,
    look: L,
}

impl<L: FnMut(&Record)> Fold for Watched<L> {
    type Past = RunSummary;

    fn apply(&mut self, record: &Record) {
        self.summary.apply(record);
        (self.look)(record);
    }

    fn go_back(&mut self, past: RunSummary) {
        self.summary.go_back(past);
    }
}

impl RunSummary {
    /// Folds the records of a journal.
    pub fn from_records(records: &[Record]) -> Self {
        let mut summary = Self::default();
        rewind::fold(records, &mut summary);
        summary
    }

    /// Folds a verified journal, a few records at a time, and shows each to `look`.
    ///
    /// # Errors
    /// When the journal cannot be read, or changed after it was verified.
    pub fn read(journal: &impl ReadRecords, look: impl FnMut(&Record)) -> Result<Self, PortError> {
        let mut fold = Watched { summary: Self::default(), look };
        reading::fold(journal, &mut fold)?;
        Ok(fold.summary)
    }

    /// Begins again with what was before. What was spent, refused and set aside since stays.
    pub fn go_back(&mut self, past: Self) {
        let now = std::mem::replace(self, past);
        (self.duration_ms, self.tokens, self.cost) = (now.duration_ms, now.tokens, now.cost);
        self.is_estimated |= now.is_estimated;
        (self.refused, self.quarantined, self.traffic) = (now.refused, now.quarantined, now.traffic);
    }

    /// Folds one record in.
    pub fn apply(&mut self, record: &Record) {
        let started_at = *self.started_at.get_or_insert(record.at);
        self.duration_ms = record.at.duration_since(started_at).as_millis().try_into().unwrap_or(0);
        self.head = JournalHead { records: record.seq, hash: record.hash };
        match &record.event {
            Event::RunStarted(run) => self.start(run),
            Event::StageFinished(stage) => self.finish_stage((**stage).clone()),
            Event::ParallelStarted(parallel) => self.begin_parallel(parallel),
            Event::BranchStarted(started) => self.begin_branch(started),
            Event::ParallelJoined(joined) => self.join(joined),
            Event::LoopRestarted(_) => self.forget_proofs(),
            Event::FanInFinished(finished) => self.merge(finished),
            Event::RunCanceled(cancel) => self.canceled_by = Some(CanceledBy::from_cancel(cancel)),
            Event::RunResumed(resumed) => self.resume(resumed),
            Event::QuestionAsked(asked) => self.open_questions.push((**asked).clone()),
            Event::QuestionAnswered(answered) => self.answer(answered),
            Event::PolicyDecided(decided) => self.decide(decided),
            Event::BranchFinished(finished) => self.end_branch(finished),
            Event::RunPaused(paused) => self.pause(paused),
            Event::RunFinished(run) => {
                self.finish(run);
                self.finished_at = Some(record.at);
            }
            _ => {}
        }
    }

    /// Notes that a process drives the run at this moment, if it has not ended.
    pub fn is_running(&mut self, now: Timestamp) {
        if matches!(self.status, RunStatus::Unfinished | RunStatus::Paused) {
            self.status = RunStatus::Running;
            let began = self.started_at.unwrap_or(now);
            self.duration_ms = now.duration_since(began).as_millis().try_into().unwrap_or(0);
        }
    }

    /// The effect of resuming the run.
    pub fn resumption(&self) -> Resumption {
        let code = self.failure.as_ref().map(|failure| &failure.code);
        match (self.status, self.exit) {
            (RunStatus::Success | RunStatus::Running, _) => Resumption::Shows,
            (RunStatus::Fail, _) if self.is_canceled() => Resumption::Shows,
            (RunStatus::Unfinished | RunStatus::Paused, _) | (_, ExitClass::Interrupted | ExitClass::Terminated) => {
                Resumption::Continues
            }
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_DISK) => Resumption::Continues,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_STEPS) => Resumption::NeedsSteps,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_WALL_TIME) => Resumption::NeedsTime,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_TOKENS) => Resumption::NeedsTokens,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_COST) => Resumption::NeedsMoney,
            (RunStatus::Fail, _) => Resumption::Repeats,
        }
    }

    /// True when a person canceled the run for good.
    pub fn is_canceled(&self) -> bool {
        self.canceled_by == Some(CanceledBy::Person)
    }

    /// True when a signal stopped the run, which can go on.
    pub fn is_stopped(&self) -> bool {
        matches!(self.canceled_by, Some(CanceledBy::Interrupt | CanceledBy::Termination))
    }

    fn start(&mut self, run: &RunStarted) {
        self.run_id = run.run_id.to_string();
        self.forked_from.clone_from(&run.forked_from);
        self.model.clone_from(&run.model.provider);
        self.to_simulate.clone_from(&run.model.simulated);
        self.verifiers.clone_from(&run.plan.verifiers);
        self.pipeline.clone_from(&run.pipeline.name);
        self.network = run.commands.sandbox.as_ref().map(|sandbox| sandbox.network.clone());
    }

    /// The role of a stage in this run.
    fn role(&self, StageFinished { handler, .. }: &StageFinished) -> Role {
        match self.verifiers.contains(handler) {
            true => Role::Verifier,
            false => HandlerKind::from_name(handler).role().unwrap_or_default(),
        }
    }

    fn resume(&mut self, resumed: &RunResumed) {
        if let Some(from) = &resumed.from {
            self.open_questions.clear();
            self.forget_branches(from);
        }
        if let Some(Replanned { model: Some(model), simulated, .. }) = &resumed.replanned {
            self.model.clone_from(model);
            self.to_simulate.clone_from(simulated);
        }
        self.canceled_by = None;
        self.failure = None;
        (self.failed_node, self.resumes_at) = (None, None);
        self.status = RunStatus::Unfinished;
        self.exit = ExitClass::default();
        self.finished_at = None;
    }

    fn finish(&mut self, run: &RunFinished) {
        // A run that a signal stopped asks again when it is resumed.
        if matches!(self.canceled_by, None | Some(CanceledBy::Person)) {
            self.open_questions.clear();
        }
        self.status = run.status.into();
        self.exit = ExitClass::for_run(run, self.canceled_by);
        self.failure.clone_from(&run.failure);
        self.resumes_at.clone_from(&run.resumes_at);
        self.error_meta = self.error_meta.take().filter(|_| run.failure.is_some());
        let last = self.last_failure.as_ref().filter(|(_, failure)| Some(failure) == run.failure.as_ref());
        let is_dropped = run.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::CHECK_DROPPED);
        let dropped = self.dropped_checks.first().filter(|_| is_dropped).map(|dropped| dropped.node.clone());
        self.failed_node = last.map(|(node, _)| node.clone()).or(dropped);
    }

    /// A gate that was answered is a finished visit.
    fn answer(&mut self, answered: &QuestionAnswered) {
        self.open_questions.retain(|open| open.question != answered.question);
        if answered.policy {
            return;
        }
        let outcome = answered.outcome();
        let (node, visit, status) = (answered.node.clone(), answered.visit, outcome.status.as_str());
        let branch = Some(&answered.branch).filter(|branch| **branch != BranchId::main()).cloned();
        self.note_end(&node, outcome.failure, []);
        let generation = answered.generation;
        self.visited.push(Visit { node, branch, generation, visit, attempts: 1, status });
    }

    fn finish_stage(&mut self, stage: StageFinished) {
        if stage.is_verification() {
            self.error_meta = FailureMeta::for_stage(&stage);
        }
        let role = self.role(&stage);
        self.beside_holdouts.note(&stage);
        self.note_misses(&stage);
        self.tokens.add(stage.model.tokens);
        self.is_estimated |= stage.model.is_estimated;
        self.cost = Money(self.cost.0.saturating_add(stage.model.cost.0));
        if let Some(traffic) = &stage.commands.network {
            self.traffic.entry(stage.attempt.task.node.clone()).or_default().add(traffic);
        }
        let is_final = stage.is_final();
        let startup = self.startup.of_stage(&stage, role);
        let StageFinished { attempt, handler, outcome, refusals, commands, files, .. } = stage;
        let (StageCommands { isolation, receipts, .. }, StageFiles { changes, quarantined, ignored, .. }) =
            (commands, files);
        let Attempt { task: Task { generation, branch, node, visit, work }, mut ordinal, .. } = attempt;
        let is_verification = work == Work::Verify;
        let is_main = branch == BranchId::main();
        let branch = Some(branch).filter(|_| !is_main);
        match self.to_simulate.contains(&node) {
            true => _ = self.simulated.insert(node.clone()),
            false => _ = self.simulated.remove(&node),
        }
        // The last attempt of a visit stands for the visit. Only what is known is looked for: a run may have many nodes.
        let here = (generation, visit);
        let before = self.last_visits.insert((branch.clone(), node.clone()), here);
        if before == Some(here) {
            let is_here = |one: &Visit| one.node == node && (one.generation, one.visit) == here && one.branch == branch;
            let attempts = self.visited.iter().rev().find(|one| is_here(one)).map(|one| one.attempts);
            ordinal = attempts.filter(|_| is_verification).unwrap_or(ordinal);
            self.visited.retain(|one| !is_here(one));
        }
        // What the node itself ran stays beside what verified it.
        if before.is_some() && !(is_verification && before == Some(here)) {
            self.receipts.retain(|evidence| evidence.node != node || evidence.branch != branch);
            self.unverified.retain(|unverified| unverified.node != node);
        }
        let status = outcome.status.as_str();
        let has_passed = outcome.status.satisfies_gate();
        let at = self.head.records;
        let ended =
            EndedStage { node: &node, branch: branch.as_ref(), handler: &handler, role, has_passed, isolation, at };
        let of_others = self.receipts.len();
        let commands = receipts.into_iter().zip(startup);
        self.receipts.extend(commands.map(|(receipt, files)| CommandEvidence::new(ended, receipt, files)));
        let is_verified = self.receipts[of_others..].iter().any(|evidence| evidence.verified);
        self.note_end(&node, outcome.failure, quarantined);
        refusals.listed.into_iter().for_each(|refusal| self.add_refusal(&node, refusal));
        self.changed_branches.extend(branch.iter().filter(|_| !changes.is_empty()).cloned());
        // Those of a branch count when a fan-in takes them.
        if is_main && role == Role::Builder && !changes.is_empty() {
            self.changed_last = Some((at, node.clone()));
        }
        self.note_changes(changes.into_iter().filter(|_| is_main));
        self.visited.push(Visit { node: node.clone(), branch, generation, visit, attempts: ordinal, status });
        ignored.into_iter().for_each(|ignored| self.add_ignored(ignored));
        if has_passed && !is_verified && is_final {
            self.unverified.push(UnverifiedStage { node, handler });
        }
    }

    fn merge(&mut self, finished: &FanInFinished) {
        self.startup.merge(finished);
        self.take(finished);
        // The failure of a branch stays that of the stage that had it.
        let is_known =
            self.last_failure.as_ref().is_some_and(|(_, failure)| Some(failure) == finished.failure.as_ref());
        let failure = finished.failure.as_ref().filter(|_| !is_known);
        self.note_end(&finished.node, failure.cloned(), finished.quarantined());
        let is_main = finished.branch == BranchId::main();
        // What was verified in a branch still holds if its changes alone were taken.
        if is_main && finished.merged.len() > 1 && !finished.changes.is_empty() {
            self.changed_last = Some((self.head.records, finished.node.clone()));
        }
        self.note_changes(finished.changes.iter().filter(|_| is_main).cloned());
    }
}
