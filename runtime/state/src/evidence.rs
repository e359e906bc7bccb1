//! The result of a run: its verdict, its exit class, and the evidence for both.
//!
//! The result is computed only from the journal's records, so `run`, `resume`, `show` and `ls` report the same journal
//! in the same way. A command is *verified* if a verifier ran it, it exited with 0 and its stage passed. Verifiers are
//! tool and verify stages, and plugins that the operator bound as verifiers. Any other command only *ran*. If a stage
//! without a verified command passed, only the stage itself claims the success.

mod beside;
mod branches;
mod cause;
mod class;
pub mod configuration;
mod counts;
mod failed_stage;
mod list;
mod notes;
mod readers;
mod receipt;
mod recovery;
mod replay;
mod rows;
mod running;
mod startup;
mod summary;
#[cfg(test)]
mod tests;
mod verdict;

pub use beside::BesideHoldouts;
pub use cause::Cause;
pub use class::{CanceledBy, ExitClass};
pub use counts::ProofCounts;
pub use failed_stage::FailedStage;
pub use list::{Claim, Command, Evidence};
pub use receipt::{CommandEvidence, Proof};
pub use recovery::{GrantedFile, RecoveryDecision};
pub use replay::Replay;
pub use rows::is_first;
pub use rows::{
    DroppedChecks, FailedBranch, QuarantinedFile, RefusedRequest, UnmatchedEntry, UnreadReason, UnreadStatus,
    UnverifiedStage, Visit,
};
pub use running::{BranchNow, BranchPhase, BranchWait, BranchesNow};
pub use startup::StartupFile;
pub use summary::{ModelUse, RunAccess, RunEnd, RunFiles, RunProof, RunStatus, RunSummary};
pub use verdict::{ExitShape, JournalHead, NodeTraffic, VerdictFile};

use glovebox_pipeline::ir::{HandlerKind, Role};
use receipt::EndedStage;

use glovebox_journal::event::{
    Attempt, BranchId, Event, FailureMeta, FanInFinished, QuestionAnswered, Record, Replanned, RunFinished, RunResumed,
    RunStarted, StageCommands, StageFiles, StageFinished, Task, Work,
};
use glovebox_journal::ports::PortError;
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::rewind::{self, Fold};
use glovebox_record::FailureCode;
use glovebox_record::spend::Money;
use jiff::Timestamp;

/// The effect of resuming a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// The run continues where it stopped.
    Continues,
    /// The run continues only with a higher limit on steps.
    NeedsSteps,
    /// The run continues only with a higher limit on time.
    NeedsTime,
    /// The run continues only with a higher limit on tokens.
    NeedsTokens,
    /// The run continues only with a higher limit on money.
    NeedsMoney,
    /// The run restarts at the node that failed.
    Repeats,
    /// The run is only shown, because it has succeeded or was canceled for good.
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

/// A summary, and a function that also gets its records.
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

    /// Folds a verified journal, a few records at a time, and calls `look` with each record.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or if it changed after it was verified.
    pub fn read(journal: &impl ReadRecords, look: impl FnMut(&Record)) -> Result<Self, PortError> {
        let mut fold = Watched { summary: Self::default(), look };
        reading::fold(journal, &mut fold)?;
        Ok(fold.summary)
    }

    /// Restores the summary `past`. The time, tokens, cost, refusals, traffic and quarantined changes of the undone
    /// part are kept.
    pub fn go_back(&mut self, past: Self) {
        let now = std::mem::replace(self, past);
        (self.duration_ms, self.model.tokens, self.model.cost) = (now.duration_ms, now.model.tokens, now.model.cost);
        self.model.is_estimated |= now.model.is_estimated;
        (self.access.refused, self.access.traffic) = (now.access.refused, now.access.traffic);
        (self.files.quarantined, self.files.quarantined_total) = (now.files.quarantined, now.files.quarantined_total);
    }

    /// Adds one record to the summary.
    pub fn apply(&mut self, record: &Record) {
        let started_at = *self.started_at.get_or_insert(record.at);
        self.duration_ms = record.at.duration_since(started_at).as_millis().try_into().unwrap_or(0);
        self.head = JournalHead { records: record.seq, hash: record.hash };
        self.now.apply(record);
        match &record.event {
            Event::RunStarted(run) => self.start(run),
            Event::StatusIngested(ingested) => self.note_status(ingested),
            Event::StageFinished(stage) => self.finish_stage((**stage).clone()),
            Event::ParallelStarted(parallel) => self.begin_parallel(parallel),
            Event::BranchStarted(started) => self.begin_branch(started),
            Event::ParallelJoined(joined) => self.join(joined),
            Event::LoopRestarted(_) => self.forget_proofs(),
            Event::FanInFinished(finished) => self.merge(finished),
            Event::RunCanceled(cancel) => self.end.canceled_by = Some(CanceledBy::from_cancel(cancel)),
            Event::RunResumed(resumed) => self.resume(resumed),
            Event::QuestionAsked(asked) => self.open_questions.push((**asked).clone()),
            Event::QuestionAnswered(answered) => self.answer(answered),
            Event::RecoveryDecided(decided) => self.decide(decided),
            Event::BranchFinished(finished) => self.end_branch(finished),
            Event::RunPaused(paused) => self.pause(paused),
            Event::RunFinished(run) => {
                self.finish(run);
                self.end.finished_at = Some(record.at);
            }
            _ => {}
        }
    }

    /// Records that a process drives the run at this moment, unless the run has ended.
    pub fn is_running(&mut self, now: Timestamp) {
        if matches!(self.status, RunStatus::Unfinished | RunStatus::Paused) {
            self.status = RunStatus::Running;
            self.branches_now = self.now.branches().cloned().collect();
            let began = self.started_at.unwrap_or(now);
            self.duration_ms = now.duration_since(began).as_millis().try_into().unwrap_or(0);
        }
    }

    /// Returns the effect of resuming the run.
    pub fn resumption(&self) -> Resumption {
        let code = self.end.failure.as_ref().map(|failure| &failure.code);
        match (self.status, self.end.exit) {
            (RunStatus::Success | RunStatus::Running, _) => Resumption::Shows,
            (RunStatus::Fail, _) if self.is_canceled() => Resumption::Shows,
            (RunStatus::Unfinished | RunStatus::Paused, _) | (_, ExitClass::Interrupted | ExitClass::Terminated) => {
                Resumption::Continues
            }
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_DISK) => Resumption::Continues,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_STALLED) => Resumption::Continues,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_DISK_FULL) => Resumption::Continues,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_STEPS) => Resumption::NeedsSteps,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_WALL_TIME) => Resumption::NeedsTime,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_TOKENS) => Resumption::NeedsTokens,
            (RunStatus::Fail, _) if code == Some(&FailureCode::RUN_COST) => Resumption::NeedsMoney,
            (RunStatus::Fail, _) => Resumption::Repeats,
        }
    }

    /// Returns true if a person canceled the run for good.
    pub fn is_canceled(&self) -> bool {
        self.end.canceled_by == Some(CanceledBy::Person)
    }

    /// Returns true if a signal stopped the run. `resume` continues such a run.
    pub fn is_stopped(&self) -> bool {
        matches!(self.end.canceled_by, Some(CanceledBy::Interrupt | CanceledBy::Termination))
    }

    fn start(&mut self, run: &RunStarted) {
        self.run_id = run.run_id.to_string();
        self.forked_from.clone_from(&run.forked_from);
        self.proof.caches_from.clone_from(&run.workspace.caches_from);
        self.proof.missing.clone_from(&run.workspace.missing);
        self.model.provider.clone_from(&run.model.provider);
        self.model.to_simulate.clone_from(&run.model.simulated);
        self.proof.verifiers.clone_from(&run.plan.verifiers);
        self.pipeline.clone_from(&run.pipeline.name);
        self.access.network = run.commands.sandbox.as_ref().map(|sandbox| sandbox.network.clone());
    }

    /// Returns the role of a stage in this run.
    fn role(&self, StageFinished { handler, .. }: &StageFinished) -> Role {
        match self.proof.verifiers.contains(handler) {
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
            self.model.provider.clone_from(model);
            self.model.to_simulate.clone_from(simulated);
        }
        self.end.canceled_by = None;
        self.end.failure = None;
        (self.end.failed_node, self.end.resumes_at) = (None, None);
        (self.end.resume_at, self.end.quota_waits) = (None, 0);
        self.status = RunStatus::Unfinished;
        self.end.exit = ExitClass::default();
        self.end.finished_at = None;
    }

    fn finish(&mut self, run: &RunFinished) {
        // A run that a signal or the stall watchdog stopped asks its open questions again when it is resumed.
        let is_stalled = run.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::RUN_STALLED);
        if matches!(self.end.canceled_by, None | Some(CanceledBy::Person)) && !is_stalled {
            self.open_questions.clear();
        }
        self.status = run.status.into();
        self.end.exit = ExitClass::for_run(run, self.end.canceled_by);
        self.end.failure.clone_from(&run.failure);
        self.end.resumes_at.clone_from(&run.resumes_at);
        self.end.error_meta = self.end.error_meta.take().filter(|_| run.failure.is_some());
        let last = self.end.last_failure.as_ref().filter(|(_, failure)| Some(failure) == run.failure.as_ref());
        let is_dropped = run.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::CHECK_DROPPED);
        let dropped = self.proof.dropped_checks.first().filter(|_| is_dropped).map(|dropped| dropped.node.clone());
        self.end.failed_node = last.map(|(node, _)| node.clone()).or(dropped);
    }

    /// Adds the visit of a human gate, which ends with the answer.
    fn answer(&mut self, answered: &QuestionAnswered) {
        self.open_questions.retain(|open| open.question != answered.question);
        if answered.recovery {
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
            self.end.error_meta = FailureMeta::for_stage(&stage);
        }
        let role = self.role(&stage);
        self.proof.beside_holdouts.note(&stage);
        self.note_misses(&stage);
        self.note_unread_status(&stage);
        self.note_failure(&stage);
        self.model.tokens.add(stage.model.tokens);
        self.model.is_estimated |= stage.model.is_estimated;
        self.model.cost = Money(self.model.cost.0.saturating_add(stage.model.cost.0));
        if let Some(traffic) = &stage.commands.network {
            self.access.traffic.entry(stage.attempt.task.node.clone()).or_default().add(traffic);
        }
        let is_final = stage.is_final();
        let startup = self.proof.startup.of_stage(&stage, role);
        let StageFinished { attempt, handler, outcome, refusals, commands, files, .. } = stage;
        let (StageCommands { isolation, receipts, .. }, StageFiles { changes, quarantined, ignored, .. }) =
            (commands, files);
        let Attempt { task: Task { generation, branch, node, visit, work }, mut ordinal, .. } = attempt;
        let is_verification = work == Work::Verify;
        let is_main = branch == BranchId::main();
        let branch = Some(branch).filter(|_| !is_main);
        match self.model.to_simulate.contains(&node) {
            true => _ = self.model.simulated.insert(node.clone()),
            false => _ = self.model.simulated.remove(&node),
        }
        // The last attempt of a visit replaces the earlier ones. A new visit has no earlier attempts, so the search,
        // which takes long in a long run, is skipped.
        let here = (generation, visit);
        let before = self.last_visits.insert((branch.clone(), node.clone()), here);
        if before == Some(here) {
            let is_here = |one: &Visit| one.node == node && (one.generation, one.visit) == here && one.branch == branch;
            let attempts = self.visited.iter().rev().find(|one| is_here(one)).map(|one| one.attempts);
            ordinal = attempts.filter(|_| is_verification).unwrap_or(ordinal);
            self.visited.retain(|one| !is_here(one));
        }
        // The receipts of the node's own work are kept together with those of its verification.
        if before.is_some() && !(is_verification && before == Some(here)) {
            self.proof.receipts.retain(|evidence| evidence.node != node || evidence.branch != branch);
            self.proof.unverified.retain(|unverified| unverified.node != node);
        }
        let status = outcome.status.as_str();
        let has_passed = outcome.status.satisfies_gate();
        let at = self.head.records;
        let ended =
            EndedStage { node: &node, branch: branch.as_ref(), handler: &handler, role, has_passed, isolation, at };
        let of_others = self.proof.receipts.len();
        let commands = receipts.into_iter().zip(startup);
        self.proof.receipts.extend(commands.map(|(receipt, files)| CommandEvidence::new(ended, receipt, files)));
        let is_verified = self.proof.receipts[of_others..].iter().any(|evidence| evidence.verified);
        self.note_end(&node, outcome.failure, quarantined);
        refusals.listed.into_iter().for_each(|refusal| self.add_refusal(&node, refusal));
        self.branches.with_changes.extend(branch.iter().filter(|_| !changes.is_empty()).cloned());
        // Changes of a branch are added when a fan-in merges them.
        if is_main && role == Role::Builder && !changes.is_empty() {
            self.files.changed_last = Some((at, node.clone()));
        }
        self.note_changes(changes.into_iter().filter(|_| is_main));
        self.visited.push(Visit { node: node.clone(), branch, generation, visit, attempts: ordinal, status });
        ignored.into_iter().for_each(|ignored| self.add_ignored(ignored));
        if has_passed && !is_verified && is_final {
            self.proof.unverified.push(UnverifiedStage { node, handler });
        }
    }

    fn merge(&mut self, finished: &FanInFinished) {
        self.proof.startup.merge(finished);
        self.take(finished);
        // If the fan-in has the failure of a stage, the failure still belongs to that stage.
        let is_known =
            self.end.last_failure.as_ref().is_some_and(|(_, failure)| Some(failure) == finished.failure.as_ref());
        let failure = finished.failure.as_ref().filter(|_| !is_known);
        self.note_end(&finished.node, failure.cloned(), finished.quarantined());
        let is_main = finished.branch == BranchId::main();
        // If only the changes of one branch were merged, the verifications of the branch are still valid.
        if is_main && finished.merged.len() > 1 && !finished.changes.is_empty() {
            self.files.changed_last = Some((self.head.records, finished.node.clone()));
        }
        self.note_changes(finished.changes.iter().filter(|_| is_main).cloned());
    }
}
