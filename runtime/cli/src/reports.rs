//! Reports of a run for other programs: JUnit for test viewers, SARIF for code scanning, Markdown for the summary of a CI job.
//!
//! All are made from the run's record after it has ended, so `show` gives the same as `run`. Texts in them are those of stages and
//! programs: each format escapes what it would read as its own.

mod job_summary;
mod junit;
mod sarif;

use crate::arguments::ReportArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::runs::RunFolder;
use crate::source::CheckedPipeline;
use crate::{journal, source, terminal};
use glovebox_engine::event::{Attempt, BranchId, Event, StageFinished, Task};
use glovebox_engine::evidence::{CommandEvidence, RunSummary};
use glovebox_engine::rewind;
use glovebox_record::{Failure, NodeId, Status};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A run, as the reports tell it.
struct Report {
    /// What it came to.
    summary: RunSummary,
    /// The last visit of each stage, in the order of their ends.
    stages: Vec<StageReport>,
    /// What ran.
    pipeline: CheckedPipeline,
}

/// The last visit of a stage.
struct StageReport {
    node: NodeId,
    branch: BranchId,
    generation: u32,
    visit: u32,
    status: Status,
    failure: Option<Failure>,
    /// Time of all its attempts, milliseconds.
    duration_ms: u64,
}

/// Requires the folders of all reports before a run begins, so that none is missing after hours.
pub fn require_places(arguments: &ReportArguments) -> Result<(), Stop> {
    for file in arguments.files() {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let problem = match (folder.is_dir(), file.is_dir()) {
            (false, _) => "there is no such folder",
            (_, true) => "it is a folder",
            _ => continue,
        };
        let message = format!("the report `{}` cannot be written: {problem}", file.display());
        return Err(Stop::new(Exit::Usage, message).with_help("name a file in a folder that is there"));
    }
    Ok(())
}

/// Writes the reports of a run that has just ended so. A report that cannot be written hides no other exit code.
pub fn after(arguments: &ReportArguments, run: &RunFolder, exit: Exit) -> Ended {
    match write(arguments, run) {
        Err(stop) if exit == Exit::Ok => Err(stop),
        Err(stop) => {
            terminal::report_stop(&stop);
            Ok(exit)
        }
        Ok(()) => Ok(exit),
    }
}

/// Writes the reports that were asked for.
pub fn write(arguments: &ReportArguments, run: &RunFolder) -> Result<(), Stop> {
    if arguments.files().next().is_none() {
        return Ok(());
    }
    let report = Report::read(run)?;
    let failed =
        |file: &Path, error: std::io::Error| Stop::io(format!("write the report `{}`", file.display()), &error);
    if let Some(file) = &arguments.junit {
        fs::write(file, junit::render(&report)?).map_err(|error| failed(file, error))?;
    }
    if let Some(file) = &arguments.sarif {
        fs::write(file, sarif::render(&report)?).map_err(|error| failed(file, error))?;
    }
    if let Some(file) = &arguments.job_summary {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut file| file.write_all(job_summary::render(&report).as_bytes()));
        written.map_err(|error| failed(file, error))?;
    }
    Ok(())
}

impl Report {
    fn read(run: &RunFolder) -> Result<Self, Stop> {
        let (reader, verified) = journal::open_to_show(run)?;
        let pipeline = source::of_run(run, journal::beginning(run, &verified.records)?)?;
        let counting = rewind::ranges(&verified.records, u64::MAX);
        let mut stages: Vec<StageReport> = Vec::new();
        let summary = RunSummary::read((&reader, &verified), |record| match &record.event {
            Event::StageFinished(finished) if counting.iter().any(|range| range.contains(&record.seq)) => {
                note(&mut stages, finished);
            }
            _ => {}
        });
        let summary = summary.map_err(|error| journal::unreadable(run, &error))?;
        Ok(Self { summary, stages, pipeline })
    }

    /// The commands of a stage's last attempt.
    fn commands<'r>(&'r self, stage: &'r StageReport) -> impl Iterator<Item = &'r CommandEvidence> {
        let branch = Some(&stage.branch).filter(|branch| **branch != BranchId::main());
        let is_of = move |command: &&CommandEvidence| command.node == stage.node && command.branch.as_ref() == branch;
        self.summary.receipts.iter().filter(is_of)
    }

    /// True if a stage passed on its own word.
    fn is_unverified(&self, stage: &StageReport) -> bool {
        stage.status.satisfies_gate() && self.summary.unverified.iter().any(|unverified| unverified.node == stage.node)
    }

    /// True if a stage got a simulated answer.
    fn is_simulated(&self, stage: &StageReport) -> bool {
        self.summary.simulated.contains(&stage.node)
    }
}

/// Takes an attempt in: the last attempt of the last visit stands for its stage.
fn note(stages: &mut Vec<StageReport>, finished: &StageFinished) {
    let StageFinished { attempt: Attempt { task, .. }, outcome, duration_ms, .. } = finished;
    let Task { generation, branch, node, visit, .. } = task;
    let known = stages.iter().position(|stage| stage.node == *node && stage.branch == *branch);
    let before = known.map(|at| stages.remove(at));
    let is_same = |stage: &StageReport| (stage.generation, stage.visit) == (*generation, *visit);
    let earlier = before.filter(is_same).map_or(0, |stage| stage.duration_ms);
    stages.push(StageReport {
        node: node.clone(),
        branch: branch.clone(),
        generation: *generation,
        visit: *visit,
        status: outcome.status,
        failure: outcome.failure.clone(),
        duration_ms: duration_ms.saturating_add(earlier),
    });
}

impl StageReport {
    /// Its node, and its branch if it is one of a fork.
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
