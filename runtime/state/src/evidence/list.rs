//! All commands of a run with their receipts and what each proves, and all stages that passed without a receipt.
//!
//! The list is folded from the journal separately from the summary, which keeps only the last attempts. The tree at the
//! start of a command is not recorded. It is computed from the list of files at the start of the run and the later
//! changes of the branch.

use super::{CommandEvidence, EndedStage, JournalHead, Proof, RunSummary, StartupFile, UnverifiedStage, is_first};
use crate::evidence::Replay;
use crate::run_state::RunState;
use glovebox_journal::event::{Attempt, BranchId, Digest, Event, FileChange, Receipt, Record, StageFinished};
use glovebox_journal::ports::PortError;
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::rewind::Fold;
use glovebox_record::NodeId;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// All commands of a run, in order.
#[derive(Debug)]
pub struct Evidence {
    /// The result of the run.
    pub summary: RunSummary,
    /// The commands of the run.
    pub commands: Vec<Command>,
}

/// One command of an attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Command {
    /// Sequence number of the journal record that contains the receipt.
    pub record: u64,
    /// The attempt that ran the command.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// What the command proves.
    pub proof: Proof,
    /// True if a resume went back to before the command, so that the command proves nothing any more; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// Digest of the list of files at the start of the attempt. The same list has the same digest as in `base_digest`.
    pub tree: Digest,
    /// The layers of the sandbox that the command ran in.
    pub layers: &'static [&'static str],
    /// The receipt, and the stage that it belongs to.
    pub evidence: CommandEvidence,
}

/// A stage that passed without a receipt, so only the stage itself claims the success.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Claim {
    /// The node and its handler.
    #[serde(flatten)]
    pub stage: UnverifiedStage,
    /// The generation of the last visit; absent for generation 0.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// Number of the last visit of the node.
    pub visit: u32,
    /// The status that the stage claims.
    pub status: &'static str,
}

impl Evidence {
    /// Reads a verified journal. `digest_after` returns the digest of the list of files at the start of the run after
    /// the given changes.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or if it changed after it was verified.
    pub fn read(
        journal: &impl ReadRecords,
        digest_after: impl Fn(&mut dyn Iterator<Item = &FileChange>) -> Digest,
    ) -> Result<Self, PortError> {
        let mut fold = EvidenceFold {
            replay: Replay::default(),
            commands: Vec::new(),
            in_force: journal.in_force(),
            not_taken: BTreeSet::new(),
            trees: Trees { digest_after, last: None },
        };
        reading::fold(journal, &mut fold)?;
        let mut evidence = Self { summary: fold.replay.summary, commands: fold.commands };
        evidence.note_not_taken(&fold.not_taken);
        Ok(evidence)
    }

    /// Marks commands as not merged: all commands of the branches that these receipts belong to. Such commands prove
    /// nothing about the result.
    fn note_not_taken(&mut self, receipts: &BTreeSet<String>) {
        let of_them = self.commands.iter().filter(|command| receipts.contains(&command.evidence.receipt.id));
        let branches: BTreeSet<BranchId> = of_them.map(|command| command.attempt.task.branch.clone()).collect();
        for command in self.commands.iter_mut().filter(|command| branches.contains(&command.attempt.task.branch)) {
            command.evidence.not_taken = true;
            command.proof = command.evidence.proof();
        }
    }

    /// Returns the stages whose last visit passed without a receipt.
    pub fn claims(&self) -> Vec<Claim> {
        let last = |node: &NodeId| self.summary.visited.iter().rev().find(|visit| visit.node == *node);
        let claim = |stage: &UnverifiedStage| {
            let visit = last(&stage.node)?;
            let (generation, visit, status) = (visit.generation, visit.visit, visit.status);
            Some(Claim { stage: stage.clone(), generation, visit, status })
        };
        self.summary.proof.unverified.iter().filter_map(claim).collect()
    }

    /// Returns the head of the journal.
    pub fn head(&self) -> JournalHead {
        self.summary.head
    }
}

impl RunSummary {
    /// Returns the commands of an attempt with what each proves.
    fn commands_of(&self, finished: &StageFinished, record: u64, is_undone: bool, tree: Digest) -> Vec<Command> {
        let task = &finished.attempt.task;
        let ended = EndedStage {
            node: &task.node,
            branch: None,
            handler: &finished.handler,
            role: self.role(finished),
            has_passed: finished.outcome.status.satisfies_gate(),
            isolation: finished.commands.isolation,
            at: record,
        };
        let startup = self.proof.startup.of_commands(finished, ended.role);
        let command = |(receipt, files): (&Receipt, Vec<StartupFile>)| {
            let evidence = CommandEvidence::new(ended, receipt.clone(), files);
            let (proof, layers) = (evidence.proof(), receipt.tier.layers());
            Command { record, attempt: finished.attempt.clone(), proof, is_undone, tree, layers, evidence }
        };
        finished.commands.receipts.iter().zip(startup).map(command).collect()
    }
}

struct EvidenceFold<D> {
    replay: Replay,
    commands: Vec<Command>,
    in_force: Vec<RangeInclusive<u64>>,
    /// Ids of receipts of branches whose changes were not merged. The summary removes these receipts when their nodes
    /// are visited again.
    not_taken: BTreeSet<String>,
    trees: Trees<D>,
}

impl<D: Fn(&mut dyn Iterator<Item = &FileChange>) -> Digest> Fold for EvidenceFold<D> {
    type Past = Replay;

    fn apply(&mut self, record: &Record) {
        let Self { replay, commands, in_force, not_taken, trees } = self;
        if let Some(finished) = record.event.stage_finished() {
            let is_undone = !in_force.iter().any(|range| range.contains(&record.seq));
            if !finished.commands.receipts.is_empty() {
                let tree = trees.of(&replay.state, &finished.attempt.task.branch);
                commands.extend(replay.summary.commands_of(finished, record.seq, is_undone, tree));
            }
        }
        trees.note(&record.event);
        replay.apply(record);
        if matches!(record.event, Event::ParallelJoined(_) | Event::FanInFinished(_)) {
            let ended = replay.summary.proof.receipts.iter().filter(|command| command.not_taken);
            not_taken.extend(ended.map(|command| command.receipt.id.clone()));
        }
    }

    fn go_back(&mut self, past: Replay) {
        self.replay.go_back(past);
    }
}

/// Computes the digests of trees. All attempts of a branch between two records that change files have the same tree.
struct Trees<D> {
    digest_after: D,
    /// The last branch and its digest, until a record changes files.
    last: Option<(BranchId, Digest)>,
}

impl<D: Fn(&mut dyn Iterator<Item = &FileChange>) -> Digest> Trees<D> {
    fn of(&mut self, state: &RunState, branch: &BranchId) -> Digest {
        if let Some((_, tree)) = self.last.as_ref().filter(|(last, _)| last == branch) {
            return *tree;
        }
        let tree = (self.digest_after)(&mut state.branch(branch).changes.values());
        self.last = Some((branch.clone(), tree));
        tree
    }

    /// Notes an applied record.
    fn note(&mut self, event: &Event) {
        let changes_files = match event {
            Event::StageFinished(finished) => !finished.files.changes.is_empty(),
            Event::RecoveryDecided(decided) => !decided.changes.is_empty(),
            Event::FanInFinished(_) | Event::BranchStarted(_) | Event::RunResumed(_) => true,
            _ => false,
        };
        self.last = self.last.take().filter(|_| !changes_files);
    }
}
