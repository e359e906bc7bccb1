//! What a person approves with the answer to a question: changes, checks, what the run has spent, and what each choice
//! allows.
//!
//! A review is built only from the run's journal and blobs. Stages produce much of its content, so a printer must
//! escape it.

use crate::exit::{Exit, Stop};
use crate::patch::{self, Counts, Delta, Mode};
use crate::runs::RunFolder;
use crate::runs::changes::{AskedAbout, Changes};
use crate::runs::journal;
use crate::runs::recorded;
use crate::terminal::summary;
use glovebox_journal::event::{BranchId, Event, NodeId, QuestionAsked, QuestionId, Record, RunStarted};
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_names::shell;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::plan::{CapabilityLists, PlanCapabilities};
use glovebox_record::path::ScopePath;
use glovebox_record::spend::{Money, SpendBounds};
use glovebox_record::{Choice, Tokens};
use glovebox_state::evidence::{CommandEvidence, Proof, RunSummary, UnverifiedStage};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of files whose changed lines are counted.
const COUNTED_FILES_MAX: usize = 200;

/// The effect of an answer to a question.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Review {
    /// The last earlier question that a person answered. Later changes are listed. Null if there is none, so that all
    /// changes are listed.
    pub since: Option<QuestionId>,
    /// Files and links that changed, by path.
    pub changed: Vec<ReviewedFile>,
    /// Directories that changed and contain no file.
    #[schemars(with = "Vec<String>")]
    pub directories: Vec<ScopePath>,
    /// The command that shows every changed line.
    pub diff: String,
    /// The commands of verifiers, in the last attempt of each stage.
    pub checks: Vec<Check>,
    /// Stages that passed without a command that proves it.
    pub unverified: Vec<UnverifiedStage>,
    /// The provider of model calls.
    #[serde(skip)]
    pub model: String,
    /// The usage of the run.
    pub spent: RunSpending,
    /// What may follow each choice.
    pub choices: Vec<ChoiceReview>,
}

/// A path that changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewedFile {
    /// Path relative to the project.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// Path before the change, if the file was moved; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub moved_from: Option<ScopePath>,
    /// Mode of the old version in git; null for a new file.
    pub before: Option<Mode>,
    /// Mode of the new version in git; null for a file that was removed.
    pub after: Option<Mode>,
    /// Number of lines added; null if the lines were not counted, as in a binary file.
    pub added: Option<usize>,
    /// Number of lines removed; null if the lines were not counted.
    pub removed: Option<usize>,
}

/// A command that judged the work.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Id of the node.
    pub node: NodeId,
    /// What the command proves.
    pub proof: Proof,
    /// True if files changed after the command, so that it did not judge them.
    pub is_before_changes: bool,
    /// The command as one line.
    pub command: String,
    /// Exit code; null unless the command exited.
    pub code: Option<i32>,
    /// How the command ended, in words.
    #[serde(skip)]
    pub end: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Tier of the sandbox.
    pub tier: String,
}

/// The usage and the bounds of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunSpending {
    /// Tokens of all attempts.
    pub tokens: Tokens,
    /// Cost of the tokens, in millionths of a dollar.
    pub cost: Money,
    /// Milliseconds in which a process drove the run. Time without a process is not counted.
    pub driven_ms: u64,
    /// Bounds on tokens and money.
    pub spend_max: SpendBounds,
    /// Bound on `driven_ms`; null if there is none.
    pub wall_max_ms: Option<u64>,
}

/// The stages that may run after a choice, until a person is asked again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChoiceReview {
    /// Key of the choice; null for what follows without a choice: an answer in free text, a failure of the gate, a
    /// timeout.
    pub key: Option<String>,
    /// Stages that may run, in file order.
    pub stages: Vec<NodeId>,
    /// Gates at which a person is asked again.
    pub gates: Vec<NodeId>,
    /// True if the run may end without another question.
    pub may_end: bool,
    /// All capabilities of these stages together; null if the run did not record them.
    pub could: Option<CapabilityLists>,
}

/// Builds the reviews of one run.
pub struct Reviewer<'a> {
    run: &'a RunFolder,
    named: String,
    verified: &'a VerifiedJournal,
    terms: RunStarted,
    pipeline: Arc<Pipeline>,
    capabilities: Option<PlanCapabilities>,
    summary: RunSummary,
    driven_ms: u64,
}

impl<'a> Reviewer<'a> {
    /// Reads what all reviews of a run have in common.
    pub fn new(run: &'a RunFolder, runs_dir: &Path, verified: &'a VerifiedJournal) -> Result<Self, Stop> {
        let records = &verified.records;
        let terms = journal::current_start(run, records)?;
        let state = journal::state(records)?;
        Ok(Self {
            run,
            named: crate::runs::spelled(&run.id, runs_dir),
            verified,
            pipeline: recorded::read(run, &terms)?.pipeline,
            capabilities: recorded::allowed(run, &terms).ok(),
            terms,
            summary: RunSummary::from_records(records),
            driven_ms: state.driven_ms,
        })
    }

    /// Returns the effect of an answer to a question; `None` if the run never asked it.
    pub fn review(&self, question: &QuestionId) -> Result<Option<Review>, Stop> {
        let Some((about, asked)) = AskedAbout::find(&self.verified.records, question) else { return Ok(None) };
        let changes = Changes::read_for(self.run, self.verified, &about)?;
        let read = |delta: &Delta| changes.bytes(delta).ok().flatten().and_then(|bytes| bytes.old.or(bytes.new));
        let deltas = patch::pair(patch::deltas(&changes.base, &changes.changes), &read);
        let counted = deltas.into_iter().enumerate().map(|(at, delta)| {
            let bytes = if at < COUNTED_FILES_MAX { changes.bytes(&delta).ok().flatten() } else { None };
            ReviewedFile::from_delta(delta, bytes.map(|bytes| Counts::count(&bytes)))
        });
        let model = &self.summary.model;
        Ok(Some(Review {
            since: about.since.cloned(),
            changed: counted.collect(),
            directories: patch::lost_directories(&changes.base, &changes.changes),
            diff: format!("glovebox diff {} --question {}", self.named, shell::word(question.as_str())),
            checks: self.checks(&about),
            unverified: self.summary.proof.unverified.clone(),
            model: model.provider.clone(),
            spent: RunSpending {
                tokens: model.tokens,
                cost: model.cost,
                driven_ms: self.driven_ms,
                spend_max: self.terms.bounds.spend_max,
                wall_max_ms: self.terms.bounds.wall_max_ms,
            },
            choices: self.choices(asked),
        }))
    }

    fn checks(&self, about: &AskedAbout<'_>) -> Vec<Check> {
        let last_change = about.records.iter().rev().find_map(|record| {
            let branch = changed_branch(record)?;
            about.is_before(branch, record.seq).then_some(record.seq)
        });
        let ended = |node: &NodeId| {
            let is_end =
                |record: &&&Record| record.event.stage_finished().is_some_and(|stage| stage.attempt.task.node == *node);
            about.records.iter().rev().find(is_end).map(|record| record.seq)
        };
        let is_check = |evidence: &&CommandEvidence| evidence.is_of_verifier && evidence.proof() != Proof::Subject;
        let check = |evidence: &CommandEvidence| {
            let CommandEvidence { node, receipt, .. } = evidence;
            Check {
                node: node.clone(),
                proof: evidence.proof(),
                is_before_changes: ended(node) < last_change,
                command: shell::line(&receipt.argv),
                code: receipt.code,
                end: summary::ending(receipt),
                duration_ms: receipt.duration_ms,
                tier: receipt.tier.to_string(),
            }
        };
        self.summary.proof.receipts.iter().filter(is_check).map(check).collect()
    }

    fn choices(&self, asked: &QuestionAsked) -> Vec<ChoiceReview> {
        let edges = self.pipeline.outgoing(&asked.node).map(|(_, edge)| &edge.to);
        let node = self.pipeline.node(&asked.node);
        let jumps = node
            .into_iter()
            .flat_map(|node| [&node.routing.retry_target, &node.routing.fallback_retry_target])
            .flatten();
        let onward: Vec<&NodeId> = edges.chain(jumps).collect();
        if asked.recovery.is_some() {
            // The choices of a recovery question name no nodes. Each one ends the stage, and then one of the stage's
            // edges is taken.
            let of_choice = |choice: &Choice| self.after(Some(choice.key.clone()), onward.iter().copied());
            return asked.choices.iter().map(of_choice).collect();
        }
        let of_choice = |choice: &Choice| self.after(Some(choice.key.clone()), [&choice.to]);
        let mut reviews: Vec<ChoiceReview> = asked.choices.iter().map(of_choice).collect();
        let is_chosen = |to: &&NodeId| asked.choices.iter().any(|choice| choice.to == **to);
        let others: Vec<&NodeId> = onward.into_iter().filter(|to| !is_chosen(to)).collect();
        reviews.extend((!others.is_empty()).then(|| self.after(None, others)));
        reviews
    }

    fn after<'n>(&'n self, key: Option<String>, from: impl IntoIterator<Item = &'n NodeId>) -> ChoiceReview {
        let next_stages = self.pipeline.next_stages(from);
        let works = |id: &NodeId| {
            let own = |known: &PlanCapabilities| known.nodes.get(id).is_some_and(|own| own.iter().next().is_some());
            self.capabilities.as_ref().is_none_or(own)
        };
        let could = self.capabilities.as_ref().map(|known| {
            let mut could = CapabilityLists::default();
            let own = next_stages.nodes.iter().filter_map(|node| known.nodes.get(&node.id));
            own.for_each(|own| could.extend(&CapabilityLists::from_set(own)));
            could
        });
        ChoiceReview {
            key,
            stages: next_stages.nodes.iter().map(|node| &node.id).filter(|id| works(id)).cloned().collect(),
            gates: next_stages.gates.into_iter().cloned().collect(),
            may_end: next_stages.may_end,
            could,
        }
    }
}

impl ReviewedFile {
    fn from_delta(delta: Delta, counts: Option<Counts>) -> Self {
        let (added, removed) = match counts {
            Some(Counts::Lines { added, removed }) => (Some(added), Some(removed)),
            Some(Counts::Binary { .. }) | None => (None, None),
        };
        Self {
            before: delta.old.as_ref().map(patch::Version::mode),
            after: delta.new.as_ref().map(patch::Version::mode),
            moved_from: delta.renamed.map(|(path, _)| path),
            path: delta.path,
            added,
            removed,
        }
    }
}

/// Returns the branch whose files a record changed. `None` for a fan-in that merged a single branch, because the files
/// are then the files of that branch.
fn changed_branch(record: &Record) -> Option<&BranchId> {
    match &record.event {
        Event::StageFinished(stage) if !stage.files.changes.is_empty() => Some(&stage.attempt.task.branch),
        Event::FanInFinished(taken) if !taken.changes.is_empty() && taken.merged.len() > 1 => Some(&taken.branch),
        Event::RecoveryDecided(decided) if !decided.changes.is_empty() => Some(decided.branch()),
        _ => None,
    }
}

/// Returns the changes that a question is about, for `diff`.
pub fn changes_for(run: &RunFolder, question: &QuestionId) -> Result<Changes, Stop> {
    let verified = journal::read(run)?;
    let Some((about, _)) = AskedAbout::find(&verified.records, question) else {
        let message = format!("run `{}` never asked a question `{question}`", run.id);
        return Err(Stop::new(Exit::Usage, message));
    };
    Changes::read_for(run, &verified, &about)
}
