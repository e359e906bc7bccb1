//! `glovebox transcript`: prints the conversation of an agent stage with its model, turn by turn.
//!
//! It reads the transcript that each attempt kept, and the answers so far of an attempt that has not ended. It asks no
//! model and changes nothing.

use crate::arguments::TranscriptArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::changes;
use crate::runs::conversations;
use crate::runs::journal;
use crate::terminal::conversation::{Head, Length, Page};
use crate::terminal::{self, pager, visible};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::exchanges;
use glovebox_journal::event::{Attempt, Record, StageFinished, StageStarted, Work};
use glovebox_journal::rewind;
use glovebox_names::shell;
use glovebox_record::transcript::Turn;
use glovebox_record::{NodeId, Status};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// One line of `transcript --json`: one turn of one attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "transcript.json")]
pub struct TurnLine<'a> {
    /// Version of this document.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: &'a str,
    /// The attempt.
    #[serde(flatten)]
    pub attempt: &'a Attempt,
    /// How the attempt ended; null if it has not ended.
    pub status: Option<Status>,
    /// True if a resume went back to before this visit and undid it.
    pub is_undone: bool,
    /// Number of the turn in its attempt, from 1.
    pub turn: usize,
    /// The model call and its result.
    #[serde(flatten)]
    pub said: &'a Turn,
}

/// One attempt of the node, with its conversation.
struct AttemptTranscript<'a> {
    attempt: &'a Attempt,
    /// `None` if the attempt has not ended.
    finished: Option<&'a StageFinished>,
    is_undone: bool,
    turns: Vec<Turn>,
}

/// Prints the conversations of a node's attempts, including those that failed and those in branches and child
/// pipelines.
pub fn transcript(arguments: &TranscriptArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let records = journal::read_to_show(&run)?;
    journal::beginning(&run, &records)?;
    let (node, visit) = &arguments.at;
    let found = attempts(&run, node, *visit, &records)?;
    if found.is_empty() {
        return without_attempt(arguments, &run, &records);
    }
    if arguments.json {
        lines_of(&run, &found)?.iter().for_each(|line| terminal::print(format_args!("{line}\n")));
        return Ok(Exit::Ok);
    }
    let at = visit.map_or_else(|| node.to_string(), |visit| format!("{node}@{visit}"));
    let whole = format!("glovebox transcript {} {} --full", runs::short(&run.id), shell::word(&at));
    let length = if arguments.full { Length::Full } else { Length::Cut };
    let mut page = Page::new(length);
    for told in &found {
        let head = Head { attempt: told.attempt, finished: told.finished, is_undone: told.is_undone };
        page.attempt(head, &told.turns);
    }
    pager::show(&page.finish(&visible::line(&whole)));
    Ok(Exit::Ok)
}

/// Returns the lines that `transcript --json` prints about a node, or about one visit of it.
pub fn lines(run: &RunFolder, node: &NodeId, visit: Option<u32>) -> Result<Vec<String>, Stop> {
    let records = journal::read_to_show(run)?;
    journal::beginning(run, &records)?;
    lines_of(run, &attempts(run, node, visit, &records)?)
}

fn lines_of(run: &RunFolder, found: &[AttemptTranscript<'_>]) -> Result<Vec<String>, Stop> {
    let mut lines = Vec::new();
    for told in found {
        for (said, turn) in told.turns.iter().zip(1..) {
            let (attempt, is_undone) = (told.attempt, told.is_undone);
            let status = told.finished.map(|stage| stage.outcome.status);
            let run_id = &run.id;
            let line = TurnLine { schema_version: 1, run_id, attempt, status, is_undone, turn, said };
            lines.push(terminal::json_line(&line)?);
        }
    }
    Ok(lines)
}

fn attempts<'a>(
    run: &RunFolder,
    node: &NodeId,
    visit: Option<u32>,
    records: &'a [Record],
) -> Result<Vec<AttemptTranscript<'a>>, Stop> {
    let is_wanted = |attempt: &Attempt| {
        let task = &attempt.task;
        // A verification has no conversation. `glovebox logs` prints its output.
        task.node == *node && task.work == Work::Handler && visit.is_none_or(|visit| visit == task.visit)
    };
    let in_force: BTreeSet<u64> = rewind::in_force(records).iter().map(|record| record.seq).collect();
    let blobs = changes::open_blobs(run)?;
    let mut found: Vec<AttemptTranscript<'a>> = Vec::new();
    for record in records {
        let is_undone = !in_force.contains(&record.seq);
        let started = record.event.stage_started().filter(|started| is_wanted(&started.attempt));
        let finished = record.event.stage_finished().filter(|finished| is_wanted(&finished.attempt));
        let told = if let Some(StageStarted { attempt, .. }) = started {
            // An attempt that was cut off is executed again with the same number. Only its last execution is printed.
            let is_same = |told: &AttemptTranscript<'_>| {
                let before = told.attempt;
                told.finished.is_none() && (&before.task, before.ordinal) == (&attempt.task, attempt.ordinal)
            };
            found.retain(|told| !is_same(told));
            AttemptTranscript { attempt, finished: None, is_undone, turns: Vec::new() }
        } else if let Some(stage) = finished {
            found.retain(|told| told.attempt.id != stage.attempt.id);
            let turns = conversations::kept(run, stage, &blobs)?;
            AttemptTranscript { attempt: &stage.attempt, finished: Some(stage), is_undone, turns }
        } else {
            continue;
        };
        found.push(told);
    }
    for told in found.iter_mut().filter(|told| told.finished.is_none()) {
        told.turns = under_way(run, told.attempt)?;
    }
    Ok(found)
}

/// Returns the turns so far of an attempt that has not ended.
fn under_way(run: &RunFolder, attempt: &Attempt) -> Result<Vec<Turn>, Stop> {
    let said = Dir::open_ambient_dir(&run.path, ambient_authority())
        .and_then(|folder| exchanges::transcript(&folder, attempt))
        .map_err(|error| Stop::io(format!("read the conversations of run `{}`", run.id), &error))?;
    conversations::turns(run, said.as_bytes())
}

/// Reports why there is no attempt to print.
fn without_attempt(arguments: &TranscriptArguments, run: &RunFolder, records: &[Record]) -> CommandResult {
    let (node, visit) = &arguments.at;
    let (shown, run_id) = (visible::line(node.as_str()), visible::line(&run.id));
    let mut visits = 0;
    for record in records.iter().filter(|record| record.event.node() == Some(node)) {
        let event = &record.event;
        if event.stage_passed().is_some() || event.question_asked().is_some() {
            terminal::say(format_args!("`{shown}` asks no model; see `glovebox show {run_id} {shown}`\n"));
            return Ok(Exit::Ok);
        }
        let started = event.stage_started().map(|started| &started.attempt);
        let attempt = started.or_else(|| event.stage_finished().map(|finished| &finished.attempt));
        visits = attempt.map_or(visits, |attempt| visits.max(attempt.task.visit));
    }
    let message = match visit {
        Some(_) if visits > 0 => format!("`{shown}` has only {}", terminal::counted(visits as usize, "visit")),
        _ => format!("run `{run_id}` has no visit of a node `{shown}`"),
    };
    Err(Stop::new(Exit::Usage, message).with_help(format!("glovebox show {run_id} lists the visited nodes")))
}
