//! `glovebox holdout`: the hold-outs of a run. `status` shows what the journal recorded, `verify` checks the
//! commitment.
//!
//! Both print the names of hold-outs for the owner of the run, and never their content.

use crate::arguments::HoldoutArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::journal;
use crate::terminal::rows::Rows;
use crate::terminal::{self, counted, visible};
use glovebox_engine::run::HOLDOUTS_DIR;
use glovebox_journal::event::{AttemptId, HoldoutsSealed, NodeId, Record, RunStarted};
use glovebox_record::{Digest, FailureCode};
use glovebox_workspace::holdout::verify::{Deviation, SealDifference};
use glovebox_workspace::holdout::{Seal, SealError};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// The document that `holdout status --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "holdout-status.json")]
pub struct Status<'a> {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: &'a str,
    /// The sealed hold-outs.
    #[serde(flatten)]
    sealed: &'a HoldoutsSealed,
    /// Attempts in which a copy of a hold-out was found.
    leaks: Vec<Leak<'a>>,
}

/// An attempt in which a copy of a hold-out was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Leak<'a> {
    /// Id of the node.
    node: &'a NodeId,
    /// Id of the attempt.
    attempt_id: &'a AttemptId,
    /// Description of the copy.
    reason: &'a str,
    /// Paths and other places of the copy.
    places: Vec<&'a str>,
}

/// The document that `holdout verify --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "holdout-verify.json")]
pub struct Verified<'a> {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: &'a str,
    /// The commitment to the hold-outs in the journal.
    root: Digest,
    /// Whether the sealed copy matches the commitment in the journal.
    matches: bool,
    /// Files of the sealed copy that differ from the commitment.
    #[schemars(with = "Vec<DeviationShape>")]
    sealed_copy: Vec<Deviation>,
    /// Files of the current project that differ from the commitment; null if the project cannot be read.
    #[schemars(with = "Option<Vec<DeviationShape>>")]
    project: Option<Vec<Deviation>>,
}

/// The JSON form of a deviation.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the type only describes the JSON form of `Deviation`")]
struct DeviationShape {
    /// Path of the file.
    path: String,
    /// Kind of the difference.
    difference: String,
}

/// Prints what the journal recorded about a run's hold-outs.
pub fn status(arguments: &HoldoutArguments) -> CommandResult {
    let (run, records) = read(arguments)?;
    if arguments.json {
        terminal::print(status_document(&run, &records)? + "\n");
        return Ok(Exit::Ok);
    }
    let started = journal::beginning(&run, &records)?;
    let sealed = sealed(&run, started)?;
    let leaks = leaks(&records);
    let mut rows = Rows::new(12);
    sealed.folders.iter().for_each(|folder| rows.row("folder", folder));
    rows.row("files", format_args!("{} ({} bytes)", sealed.files, sealed.bytes));
    rows.row("root", sealed.root);
    let reach = sealed.reach.join(", ");
    rows.row("in reach of", if reach.is_empty() { "no stage" } else { &reach });
    sealed.opt_outs.iter().for_each(|opt_out| rows.row("opt-out", opt_out));
    for leak in &leaks {
        rows.row("leak", format_args!("{}: {} ({})", leak.node, leak.reason, leak.places.join(", ")));
    }
    if leaks.is_empty() {
        rows.row("leaks", "none found");
    }
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// Returns the document that `holdout status --json` prints, as text.
pub fn status_document(run: &RunFolder, records: &[Record]) -> Result<String, Stop> {
    let started = journal::beginning(run, records)?;
    let (sealed, leaks) = (sealed(run, started)?, leaks(records));
    terminal::json(&Status { schema_version: 1, run_id: started.run_id.as_str(), sealed, leaks })
}

/// Compares the sealed copy and the current project with the commitment of the run. Only the sealed copy decides, because the user may
/// change the project.
pub fn verify(arguments: &HoldoutArguments) -> CommandResult {
    let (run, records) = read(arguments)?;
    let started = journal::beginning(&run, &records)?;
    let sealed = sealed(&run, started)?;
    let failed = |error: SealError| Stop::new(Exit::Mismatch, format!("hold-outs of run `{}`: {error}", run.id));
    let seal = Seal::open(&run.path.join(HOLDOUTS_DIR)).map_err(failed)?;
    let sealed_copy = seal.verify(&sealed.root, &seal.files()).map_err(failed)?;
    let project = seal.verify(&sealed.root, Path::new(&started.workspace.source_dir)).ok().map(|found| {
        found.into_iter().filter(|deviation| deviation.difference != SealDifference::Root).collect::<Vec<_>>()
    });
    let matches = sealed_copy.is_empty();
    if arguments.json {
        let (run_id, root) = (started.run_id.as_str(), sealed.root);
        terminal::print_json(&Verified { schema_version: 1, run_id, root, matches, sealed_copy, project })?;
    } else {
        let mut text = match matches {
            true => format!("sealed copy matches the journal: {}\n", counted(seal.leaves().len(), "file")),
            false => "sealed copy differs from the journal:\n".to_owned(),
        };
        text.push_str(&lines(&sealed_copy));
        match &project {
            None => text.push_str("the project can no longer be read\n"),
            Some(found) if found.is_empty() => text.push_str("the project has the same hold-outs now\n"),
            Some(found) => text.push_str(&format!("the project has other hold-outs now:\n{}", lines(found))),
        }
        terminal::print(text);
    }
    Ok(if matches { Exit::Ok } else { Exit::Mismatch })
}

fn read(arguments: &HoldoutArguments) -> Result<(RunFolder, Vec<Record>), Stop> {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let records = journal::read_to_show(&run)?;
    Ok((run, records))
}

fn sealed<'a>(run: &RunFolder, started: &'a RunStarted) -> Result<&'a HoldoutsSealed, Stop> {
    started.workspace.holdouts.as_ref().ok_or_else(|| {
        Stop::new(Exit::Usage, format!("run `{}` has no hold-outs: nothing was sealed when it began", run.id))
            .with_help("hold-outs are the folders in the graph attribute `scenarios`, by default `scripts/scenarios/`")
    })
}

fn leaks(records: &[Record]) -> Vec<Leak<'_>> {
    let finished = records.iter().filter_map(|record| record.event.stage_finished());
    finished
        .filter_map(|stage| {
            let failure = stage.outcome.failure.as_ref().filter(|failure| failure.code == FailureCode::HOLDOUT_LEAK)?;
            let about = stage.refusals.listed.iter().filter(|refusal| refusal.reason == failure.reason);
            let places = about.map(|refusal| refusal.path.as_str()).collect();
            Some(Leak {
                node: &stage.attempt.task.node,
                attempt_id: &stage.attempt.id,
                reason: &failure.reason,
                places,
            })
        })
        .collect()
}

fn lines(found: &[Deviation]) -> String {
    let line = |deviation: &Deviation| {
        let what = match deviation.difference {
            SealDifference::Root => "does not match the seal in the journal",
            SealDifference::Missing => "is missing",
            SealDifference::Added => "was added",
            SealDifference::Content => "has other content",
            SealDifference::Mode => "has another mode",
            SealDifference::Unsupported => "is not a regular file",
        };
        format!("  {} {what}\n", visible::line(&deviation.path))
    };
    found.iter().map(line).collect()
}
