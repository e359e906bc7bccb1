//! The result of a run: its verdict, its exit class, and the evidence for both.
//!
//! A fold of the journal's records and nothing else, so `run`, `resume`, `show` and `ls` report the same journal in the same way.
//! A command is *verified* when a verifier ran it, it exited 0 and its stage passed. Verifiers are tool and verify stages, and plugins
//! that the operator bound as verifiers. Any other command only *ran*. A stage without a verified command passed on its own word.

mod class;
mod receipt;
mod verdict;

pub use class::{CanceledBy, ExitClass};
pub use receipt::{CommandEvidence, Proof};
pub use verdict::{JournalHead, NodeTraffic, VerdictFile};

use receipt::EndedStage;

use crate::event::{
    Attempt, Event, FileChange, IgnoredFiles, Quarantined, Record, Refusal, RunFinished, RunStarted, StageFinished,
    Task, Verdict,
};
use glovebox_pipeline::lower::handler::{HandlerKind, Role};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, FailureCode, Network, NodeId, Tokens, Traffic};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Most names of ignored files and folders in a summary.
const IGNORED_NAMES_MAX: usize = 4;

/// How a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A process drives it. The journal does not know: see [`RunSummary::is_running`].
    Running,
    /// It has not ended, and no process drives it.
    #[default]
    Unfinished,
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
    /// The graph's name.
    pub pipeline: String,
    /// How the run stands.
    pub status: RunStatus,
    /// How the process that drove it ends.
    #[serde(skip)]
    pub exit: ExitClass,
    /// Who answered model calls: `scripted` or `simulated`.
    pub model: String,
    /// Stages that got a simulated answer: no model was asked.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
    /// The most network that a command may have; absent when no stage runs commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The failure's class, code and reason.
    pub failure: Option<Failure>,
    /// The stage with that failure, if a stage had it.
    pub failed_node: Option<NodeId>,
    /// Every finished visit in order.
    pub visited: Vec<Visit>,
    /// The commands of each node's last attempt.
    pub receipts: Vec<CommandEvidence>,
    /// Stages whose last visit passed on their own word, with their handlers.
    pub unverified: Vec<UnverifiedStage>,
    /// What was refused, by node; each once.
    pub refused: Vec<RefusedRequest>,
    /// What is changed at the end, one entry per path.
    #[serde(serialize_with = "values")]
    #[schemars(with = "Vec<FileChange>")]
    pub changed: BTreeMap<ScopePath, FileChange>,
    /// Changes that were set aside, by node.
    pub quarantined: Vec<QuarantinedFile>,
    /// What stages wrote at paths that git ignores; absent when that is nothing. A file counts for each stage that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
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
    /// What the commands of each node asked of the network through the proxy, all attempts together.
    #[serde(serialize_with = "verdict::by_node", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Vec<NodeTraffic<'_>>")]
    pub traffic: BTreeMap<NodeId, Traffic>,
    /// Where the journal ends.
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
}

/// What a resume of a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// It continues where the run stopped.
    Continues,
    /// It needs more steps to continue.
    NeedsSteps,
    /// It needs more time to continue.
    NeedsTime,
    /// It begins again at the node that failed.
    Repeats,
    /// It only shows the run, which has succeeded or was canceled for good.
    Shows,
}

/// One finished visit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Visit {
    /// The node.
    pub node: NodeId,
    /// Which visit.
    pub visit: u32,
    /// Attempts it took.
    pub attempts: u32,
    /// How it ended.
    pub status: &'static str,
}

/// A stage that passed without a verified command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnverifiedStage {
    /// The node.
    pub node: NodeId,
    /// Its handler.
    pub handler: String,
}

/// A refused request and the node that made it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedRequest {
    /// The node.
    pub node: NodeId,
    /// How many times.
    pub times: usize,
    /// What was refused.
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// A change that was set aside.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuarantinedFile {
    /// The node.
    pub node: NodeId,
    /// The path in the workspace.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl RunSummary {
    /// Folds the records of a journal.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut summary = Self::default();
        records.into_iter().for_each(|record| summary.apply(record));
        summary
    }

    /// Folds one record in.
    pub fn apply(&mut self, record: &Record) {
        let started_at = *self.started_at.get_or_insert(record.at);
        self.duration_ms = record.at.duration_since(started_at).as_millis().try_into().unwrap_or(0);
        self.head = JournalHead { records: record.seq, hash: record.hash };
        match &record.event {
            Event::RunStarted(run) => self.start(run),
            Event::StageFinished(stage) => self.finish_stage((**stage).clone()),
            Event::RunCanceled(cancel) => self.canceled_by = Some(CanceledBy::of(cancel)),
            Event::RunResumed(_) => self.resume(),
            Event::RunFinished(run) => {
                self.finish(run);
                self.finished_at = Some(record.at);
            }
            _ => {}
        }
    }

    /// Notes that a process drives the run at this moment, if it has not ended.
    pub fn is_running(&mut self, now: Timestamp) {
        if self.status == RunStatus::Unfinished {
            self.status = RunStatus::Running;
            let began = self.started_at.unwrap_or(now);
            self.duration_ms = now.duration_since(began).as_millis().try_into().unwrap_or(0);
        }
    }

    /// What a resume of the run does.
    pub fn resumption(&self) -> Resumption {
        let code = self.failure.as_ref().map(|failure| &failure.code);
        match (self.status, self.exit) {
            (RunStatus::Success | RunStatus::Running, _) => Resumption::Shows,
            (RunStatus::Unfinished, _) | (_, ExitClass::Interrupted | ExitClass::Terminated) => Resumption::Continues,
            (RunStatus::Fail, _) if self.canceled_by.is_some() => Resumption::Shows,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_DISK) => Resumption::Continues,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_STEPS) => Resumption::NeedsSteps,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_WALL_TIME) => Resumption::NeedsTime,
            (RunStatus::Fail, _) => Resumption::Repeats,
        }
    }

    /// True when a verifier ran a command.
    pub fn has_pipeline_command(&self) -> bool {
        self.receipts.iter().any(|command| command.is_of_verifier)
    }

    /// True when the commands could reach every host.
    pub fn has_full_network(&self) -> bool {
        self.network == Some(Network::Full)
    }

    fn start(&mut self, run: &RunStarted) {
        self.run_id = run.run_id.to_string();
        self.model.clone_from(&run.model);
        self.to_simulate.clone_from(&run.simulated);
        self.verifiers.clone_from(&run.verifiers);
        self.pipeline.clone_from(&run.pipeline_name);
        self.network = run.sandbox.as_ref().map(|sandbox| sandbox.network.clone());
    }

    /// The role of a stage in this run.
    fn role(&self, StageFinished { handler, .. }: &StageFinished) -> Role {
        match self.verifiers.contains(handler) {
            true => Role::Verifier,
            false => HandlerKind::of(handler).role().unwrap_or_default(),
        }
    }

    fn resume(&mut self) {
        self.canceled_by = None;
        self.failure = None;
        self.failed_node = None;
        self.status = RunStatus::Unfinished;
        self.exit = ExitClass::default();
        self.finished_at = None;
    }

    fn finish(&mut self, run: &RunFinished) {
        self.status = run.status.into();
        self.exit = ExitClass::of(run, self.canceled_by);
        self.failure.clone_from(&run.failure);
        let last = self.last_failure.as_ref().filter(|(_, failure)| Some(failure) == run.failure.as_ref());
        self.failed_node = last.map(|(node, _)| node.clone());
    }

    fn finish_stage(&mut self, stage: StageFinished) {
        let role = self.role(&stage);
        self.tokens.add(stage.tokens);
        if let Some(traffic) = &stage.network {
            self.traffic.entry(stage.attempt.task.node.clone()).or_default().add(traffic);
        }
        let StageFinished { attempt, handler, outcome, isolation, receipts, refusals, quarantined, .. } = stage;
        let (changes, ignored) = (stage.changes, stage.ignored);
        let Attempt { task: Task { node, visit, .. }, ordinal, .. } = attempt;
        if self.to_simulate.contains(&node) {
            self.simulated.insert(node.clone());
        }
        // The last attempt of a visit stands for the visit.
        self.visited.retain(|known| known.node != node || known.visit != visit);
        let status = outcome.status.as_str();
        self.visited.push(Visit { node: node.clone(), visit, attempts: ordinal, status });
        let has_passed = outcome.status.satisfies_gate();
        let ended = EndedStage { node: &node, handler: &handler, role, has_passed, isolation };
        self.receipts.retain(|evidence| evidence.node != node);
        self.receipts.extend(receipts.into_iter().map(|receipt| CommandEvidence::of(ended, receipt)));
        if let Some(failure) = outcome.failure {
            self.last_failure = Some((node.clone(), failure));
        }
        refusals.into_iter().for_each(|refusal| self.add_refusal(&node, refusal));
        let quarantined = quarantined.into_iter();
        self.quarantined.extend(quarantined.map(|Quarantined { path, reason }| QuarantinedFile {
            node: node.clone(),
            path,
            reason,
        }));
        self.changed.extend(changes.into_iter().map(|change| (change.path.clone(), change)));
        ignored.into_iter().for_each(|ignored| self.add_ignored(ignored));
        self.unverified.retain(|unverified| unverified.node != node);
        let is_verified = self.receipts.iter().any(|evidence| evidence.node == node && evidence.verified);
        if has_passed && !is_verified {
            self.unverified.push(UnverifiedStage { node, handler });
        }
    }

    fn add_ignored(&mut self, more: IgnoredFiles) {
        let IgnoredFiles { files, bytes, names } = more;
        let all = self.ignored.get_or_insert_with(|| IgnoredFiles { files: 0, bytes: 0, names: Vec::new() });
        (all.files, all.bytes) = (all.files.saturating_add(files), all.bytes.saturating_add(bytes));
        for name in names {
            if all.names.len() < IGNORED_NAMES_MAX && !all.names.contains(&name) {
                all.names.push(name);
            }
        }
    }

    fn add_refusal(&mut self, node: &NodeId, refusal: Refusal) {
        let is_same = |known: &&mut RefusedRequest| {
            known.node == *node && known.refusal.operation == refusal.operation && known.refusal.path == refusal.path
        };
        match self.refused.iter_mut().find(is_same) {
            Some(known) => known.times += 1,
            None => self.refused.push(RefusedRequest { node: node.clone(), times: 1, refusal }),
        }
    }
}

fn values<S: Serializer>(changed: &BTreeMap<ScopePath, FileChange>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changed.values())
}
