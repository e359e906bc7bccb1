//! Reports of a run for other programs: JUnit for test viewers, SARIF for code scanning, Markdown for the summary of a CI job.
//!
//! All reports are computed from the run's record after the run has ended, so `show` writes the same as `run`. They
//! contain texts of stages and programs; each format escapes the characters that are special in it.

mod job_summary;
mod junit;
mod sarif;

use crate::arguments::ReportArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::runs::RunFolder;
use crate::runs::journal;
use crate::runs::recorded;
use crate::terminal;
use crate::terminal::{counted, visible};
use glovebox_journal::event::{Attempt, BranchId, Record, StageFinished, Task, Work};
use glovebox_journal::reading::ReadRecords;
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_record::{AttemptId, Failure, NoProof, NodeId, Status};
use glovebox_state::evidence::{CommandEvidence, Proof, RunSummary};
use std::path::Path;

/// The facts of a run from which all reports are written.
struct Report {
    /// Summary of the run.
    summary: RunSummary,
    /// The last visit of each stage, in the order in which the visits ended.
    stages: Vec<StageReport>,
    /// The pipeline of the run.
    pipeline: CheckedPipeline,
}

/// The last visit of a stage.
struct StageReport {
    node: NodeId,
    branch: BranchId,
    generation: u32,
    visit: u32,
    status: Status,
    /// False if the handler of the node ended with `partial_success`. Always true for a verification, because it judges
    /// the work as a whole.
    is_whole: bool,
    failure: Option<Failure>,
    /// Commands of the verify contract that the stage skipped.
    dropped_checks: Vec<String>,
    /// Attempts of the visit. They identify its receipts, even after a parallel node has ended.
    attempts: Vec<AttemptId>,
    /// Total duration of the attempts in milliseconds.
    duration_ms: u64,
}

/// Checks the folders of all reports before a run begins, so that no report fails after hours.
pub fn require_places(arguments: &ReportArguments) -> Result<(), Stop> {
    arguments.files().try_for_each(require_place)
}

/// Checks the folder of one report.
pub fn require_place(file: &Path) -> Result<(), Stop> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let problem = match (folder.is_dir(), file.is_dir()) {
        (false, _) => "there is no such folder",
        (_, true) => "it is a folder",
        _ => return Ok(()),
    };
    let message = format!("the report `{}` cannot be written: {problem}", file.display());
    Err(Stop::new(Exit::Usage, message).with_help("name a file in a folder that exists"))
}

/// Writes the reports of a run that has just ended with `exit`. If a report cannot be written and the run did not
/// succeed, the exit code is still that of the run.
pub fn after(arguments: &ReportArguments, run: &RunFolder, exit: Exit) -> CommandResult {
    match write(arguments, run) {
        Err(stop) if exit == Exit::Ok => Err(stop),
        Err(stop) => {
            terminal::report_stop(&stop);
            Ok(exit)
        }
        Ok(()) => Ok(exit),
    }
}

/// Writes the requested reports.
pub fn write(arguments: &ReportArguments, run: &RunFolder) -> Result<(), Stop> {
    if arguments.files().next().is_none() {
        return Ok(());
    }
    let report = Report::read(run)?;
    // A stage of the run could have made a link at the path of a report.
    if let Some(file) = &arguments.junit {
        replaced_file::put(file, junit::render(&report)?)?;
    }
    if let Some(file) = &arguments.sarif {
        replaced_file::put(file, sarif::render(&report)?)?;
    }
    if let Some(file) = &arguments.job_summary {
        replaced_file::append(file, job_summary::render(&report).as_bytes())?;
    }
    Ok(())
}

impl Report {
    fn read(run: &RunFolder) -> Result<Self, Stop> {
        let journal = journal::open_to_show(run)?;
        let pipeline = recorded::read(run, journal::beginning(run, &journal.verified.records)?)?;
        let in_force = journal.in_force();
        let mut stages: Vec<StageReport> = Vec::new();
        let is_in_force = |record: &&Record| in_force.iter().any(|range| range.contains(&record.seq));
        let summary = RunSummary::read(&journal, |record| {
            let finished = Some(record).filter(is_in_force).and_then(|record| record.event.stage_finished());
            finished.into_iter().for_each(|finished| note(&mut stages, finished));
        });
        let summary = summary.map_err(|error| journal::unreadable(run, &error))?;
        Ok(Self { summary, stages, pipeline })
    }

    /// Returns the commands of a stage's last visit.
    fn commands<'r>(&'r self, stage: &'r StageReport) -> impl Iterator<Item = &'r CommandEvidence> {
        let is_of = |receipt: &str| {
            let attempt = receipt.rsplit_once('/').map(|(attempt, _)| attempt);
            stage.attempts.iter().any(|known| attempt == Some(known.as_str()))
        };
        self.summary.proof.receipts.iter().filter(move |command| is_of(&command.receipt.id))
    }

    /// Returns the verdict of a stage from its status and its receipts.
    fn verdict(&self, stage: &StageReport) -> Verdict {
        let count = |is: fn(&CommandEvidence) -> bool| self.commands(stage).filter(|command| is(command)).count();
        let open = count(|command| command.proof() == Proof::NotVerified);
        match stage.status {
            Status::Skipped => Verdict::Skipped,
            status if !status.satisfies_gate() => Verdict::Failed,
            _ if self.summary.model.simulated.contains(&stage.node) => Verdict::Simulated,
            _ if !stage.dropped_checks.is_empty() => Verdict::Dropped,
            _ if !stage.is_whole && count(|command| command.is_of_verifier) > 0 => Verdict::Partial(open),
            _ if count(|command| command.verified) > 0 => Verdict::Verified,
            _ if count(|command| command.not_taken) > 0 => Verdict::NotTaken,
            _ => self
                .commands(stage)
                .find_map(|command| command.receipt.no_proof)
                .map_or(Verdict::NoReceipt, Verdict::Unproven),
        }
    }
}

/// The verdict of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Failed,
    Skipped,
    /// The model's answer was simulated.
    Simulated,
    /// The stage passed, but commands of the verify contract were skipped.
    Dropped,
    /// The stage passed, although this number of its commands did not pass. With 0, commands were left out.
    Partial(usize),
    /// A command of a verifier proves that the stage passed.
    Verified,
    /// The stage judged files of a branch, and the run did not take these files.
    NotTaken,
    /// A command of the stage passed, but it proves nothing for this reason.
    Unproven(NoProof),
    /// Only the stage itself says that it passed.
    NoReceipt,
}

impl Verdict {
    /// Returns why a stage is reported neither as passed nor as failed; `None` for other stages.
    fn reservation(self, stage: &StageReport) -> Option<String> {
        Some(match self {
            Self::Failed | Self::Verified => return None,
            Self::Skipped => "it was skipped".to_owned(),
            Self::Simulated => "simulated: no model was asked".to_owned(),
            Self::Dropped => {
                format!("passed in part: commands were skipped: {}", visible::line(&stage.dropped_checks.join(", ")))
            }
            Self::Unproven(why) => format!("not verified: its command {why}"),
            Self::Partial(0) => "passed in part: commands were left out".to_owned(),
            Self::Partial(open) => format!("passed in part: {} did not pass", counted(open, "command")),
            Self::NotTaken => "not taken: it judged files of a branch, and the run did not take these files".to_owned(),
            Self::NoReceipt => "passed on its own word: no command verified it".to_owned(),
        })
    }
}

/// Adds a finished attempt. Attempts of one visit are combined, and a later visit replaces an earlier one.
fn note(stages: &mut Vec<StageReport>, finished: &StageFinished) {
    let StageFinished { attempt: Attempt { task, id, .. }, outcome, duration_ms, .. } = finished;
    let Task { generation, branch, node, visit, work } = task;
    let known = stages.iter().position(|stage| stage.node == *node && stage.branch == *branch);
    let before = known.map(|at| stages.remove(at));
    let is_same = |stage: &StageReport| (stage.generation, stage.visit) == (*generation, *visit);
    let (mut attempts, earlier) =
        before.filter(is_same).map(|stage| (stage.attempts, stage.duration_ms)).unwrap_or_default();
    attempts.push(id.clone());
    stages.push(StageReport {
        node: node.clone(),
        branch: branch.clone(),
        generation: *generation,
        visit: *visit,
        status: outcome.status,
        is_whole: *work != Work::Handler || outcome.status != Status::PartialSuccess,
        failure: outcome.failure.clone(),
        dropped_checks: finished.commands.dropped_checks.clone(),
        attempts,
        duration_ms: duration_ms.saturating_add(earlier),
    });
}

impl StageReport {
    /// Returns the name of the node, with its branch unless it is the main branch.
    fn name(&self) -> String {
        match self.branch == BranchId::main() {
            true => self.node.to_string(),
            false => format!("{} in branch {}", self.node, self.branch),
        }
    }

    fn has_failed(&self) -> bool {
        !self.status.satisfies_gate() && self.status != Status::Skipped
    }

    fn reason(&self) -> String {
        self.failure.as_ref().map_or_else(
            || format!("it ended with `{}`", self.status.as_str()),
            |failure| format!("{} ({}): {}", failure.class.as_str(), failure.code.as_str(), failure.reason),
        )
    }
}
