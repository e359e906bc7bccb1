//! Every command of a run with its receipt and what it proves, and every stage that passed without one.
//!
//! A fold of the journal beside the summary, which keeps the last attempts only. The tree that a command began with is not recorded: it
//! follows from the list of files that the run began with and the changes of its branch since.

use super::{CommandEvidence, EndedStage, JournalHead, Proof, RunSummary, StartupFile, UnverifiedStage, is_first};
use crate::event::{Attempt, BranchId, Digest, Event, Receipt, StageFinished};
use crate::ports::PortError;
use crate::reading;
use crate::rewind;
use crate::sqlite::{SqliteReader, VerifiedJournal};
use crate::state::RunState;
use glovebox_record::NodeId;
use glovebox_sandbox::project::Base;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Every command of a run, in order.
#[derive(Debug)]
pub struct Evidence {
    /// What the run came to.
    pub summary: RunSummary,
    /// Its commands.
    pub commands: Vec<Command>,
}

/// One command of an attempt.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Command {
    /// The record of the journal that has the receipt.
    pub record: u64,
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// What it proves.
    pub proof: Proof,
    /// True if a resume went back to before it, so that it counts no more; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
    /// Digest of the list of files that its attempt began with; the same list has the same digest as `base_digest`.
    pub tree: Digest,
    /// What confined it.
    pub layers: &'static [&'static str],
    /// The receipt, and whose it is.
    pub evidence: CommandEvidence,
}

/// A stage that passed without a receipt: nothing but its own word says so.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Claim {
    /// The node and its handler.
    #[serde(flatten)]
    pub stage: UnverifiedStage,
    /// The generation of its last visit; absent for the first.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// Its last visit.
    pub visit: u32,
    /// What it claims.
    pub status: &'static str,
}

impl Evidence {
    /// Reads a verified journal. `base` is the list of files that the run began with.
    ///
    /// # Errors
    /// When the journal cannot be read, or is not the one that was verified any more.
    pub fn read((reader, journal): (&SqliteReader, &VerifiedJournal), base: &Base) -> Result<Self, PortError> {
        let counting = rewind::ranges(&journal.records, u64::MAX);
        let mut trees = Trees { base, last: None };
        let mut not_taken = BTreeSet::new();
        let (mut state, mut summary, mut commands) = (RunState::default(), RunSummary::default(), Vec::new());
        reading::each((reader, journal), |record, past| {
            if let Some(past) = past {
                let (mut before, mut told) = (RunState::default(), RunSummary::default());
                past.each(|record| {
                    before.apply(record);
                    told.apply(record);
                })?;
                state.go_back(&before);
                summary.go_back(told);
            }
            if let Event::StageFinished(finished) = &record.event {
                let is_left = !counting.iter().any(|range| range.contains(&record.seq));
                if !finished.receipts.is_empty() {
                    let tree = trees.of(&state, &finished.attempt.task.branch)?;
                    commands.extend(summary.commands_of(finished, (record.seq, is_left), tree));
                }
            }
            trees.note(&record.event);
            state.apply(&record);
            summary.apply(&record);
            // The summary forgets such commands when their nodes are visited again.
            if matches!(record.event, Event::ForkJoined(_) | Event::FanInFinished(_)) {
                let ended = summary.receipts.iter().filter(|command| command.not_taken);
                not_taken.extend(ended.map(|command| command.receipt.id.clone()));
            }
            Ok(())
        })?;
        let mut evidence = Self { summary, commands };
        evidence.note_not_taken(&not_taken);
        Ok(evidence)
    }

    /// Takes from all commands of a branch what they prove, if one of them has such a receipt: changes of the branch were not taken.
    fn note_not_taken(&mut self, receipts: &BTreeSet<String>) {
        let of_them = self.commands.iter().filter(|command| receipts.contains(&command.evidence.receipt.id));
        let branches: BTreeSet<BranchId> = of_them.map(|command| command.attempt.task.branch.clone()).collect();
        for command in self.commands.iter_mut().filter(|command| branches.contains(&command.attempt.task.branch)) {
            command.evidence.not_taken = true;
            command.proof = command.evidence.proof();
        }
    }

    /// The stages whose last visit passed on their own word.
    pub fn claims(&self) -> Vec<Claim> {
        let last = |node: &NodeId| self.summary.visited.iter().rev().find(|visit| visit.node == *node);
        let claim = |stage: &UnverifiedStage| {
            let visit = last(&stage.node)?;
            let (generation, visit, status) = (visit.generation, visit.visit, visit.status);
            Some(Claim { stage: stage.clone(), generation, visit, status })
        };
        self.summary.unverified.iter().filter_map(claim).collect()
    }

    /// Where the journal ends.
    pub fn head(&self) -> JournalHead {
        self.summary.head
    }
}

impl RunSummary {
    /// The commands of an attempt with what each proves.
    fn commands_of(&self, finished: &StageFinished, (record, is_left): (u64, bool), tree: Digest) -> Vec<Command> {
        let task = &finished.attempt.task;
        let ended = EndedStage {
            node: &task.node,
            branch: None,
            handler: &finished.handler,
            role: self.role(finished),
            has_passed: finished.outcome.status.satisfies_gate(),
            isolation: finished.isolation,
            at: record,
        };
        let startup = self.startup.of_commands(finished, ended.role);
        let command = |(receipt, files): (&Receipt, Vec<StartupFile>)| {
            let evidence = CommandEvidence::of(ended, receipt.clone(), files);
            let (proof, layers) = (evidence.proof(), receipt.tier.layers());
            Command { record, attempt: finished.attempt.clone(), proof, is_left, tree, layers, evidence }
        };
        finished.receipts.iter().zip(startup).map(command).collect()
    }
}

/// The trees of attempts. Those of a branch between two records that change files are one.
struct Trees<'a> {
    base: &'a Base,
    /// The last one, until a record changes files.
    last: Option<(BranchId, Digest)>,
}

impl Trees<'_> {
    fn of(&mut self, state: &RunState, branch: &BranchId) -> Result<Digest, PortError> {
        if let Some((_, tree)) = self.last.as_ref().filter(|(last, _)| last == branch) {
            return Ok(*tree);
        }
        let tree = self.base.clone().after(state.branch(branch).changes.values());
        let bytes = serde_json::to_vec(&tree).map_err(|error| PortError::Unavailable(error.to_string()))?;
        let tree = Digest::of(&bytes);
        self.last = Some((branch.clone(), tree));
        Ok(tree)
    }

    /// Takes note of a record that was applied.
    fn note(&mut self, event: &Event) {
        let changes_files = match event {
            Event::StageFinished(finished) => !finished.changes.is_empty(),
            Event::PolicyDecided(decided) => !decided.changes.is_empty(),
            Event::FanInFinished(_) | Event::BranchStarted(_) | Event::RunResumed(_) => true,
            _ => false,
        };
        self.last = self.last.take().filter(|_| !changes_files);
    }
}
