//! `glovebox tasks`: each visit of a stage, with its attempts and what it waits for.

use crate::arguments::TasksArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use glovebox_journal::event::Record;
use glovebox_journal::reading::ReadRecords;
use glovebox_state::tasks::{Blocked, TaskRow, Tasks};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The document that `tasks --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "tasks.json")]
pub struct TaskList {
    /// Version of this document.
    pub schema_version: u32,
    /// The tasks, in the order in which they became ready; of several runs, those of the newest run first.
    #[schemars(with = "Vec<TaskRow>")]
    pub tasks: Vec<Value>,
}

/// One task of `GET /tasks/{id}`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "task.json")]
pub struct TaskFile {
    /// Version of this document.
    pub schema_version: u32,
    /// The task.
    #[schemars(with = "TaskRow")]
    pub task: Value,
}

/// Prints the tasks of a run.
pub fn tasks(arguments: &TasksArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let mut rows = of_run(&run)?;
    rows.retain(|row| arguments.state.is_empty() || arguments.state.iter().any(|state| state == row.state.as_str()));
    if arguments.json {
        let tasks = rows.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect();
        terminal::print_json(&TaskList { schema_version: 1, tasks })?;
        return Ok(Exit::Ok);
    }
    terminal::print(text(&rows));
    Ok(Exit::Ok)
}

/// Returns the tasks of a run.
pub fn of_run(run: &RunFolder) -> Result<Vec<TaskRow>, Stop> {
    let journal = journal::open_to_show(run)?;
    journal::beginning(run, &journal.verified.records)?;
    let mut tasks = Tasks::default();
    let read = journal.read(1..=journal.last_seq(), &mut |record: &Record| tasks.add(record));
    read.map_err(|error| journal::unreadable(run, &error))?;
    Ok(tasks.finish())
}

fn text(rows: &[TaskRow]) -> String {
    let width = rows.iter().map(|row| row.task.node.as_str().chars().count()).max().unwrap_or_default();
    let mut printed = Rows::new(width);
    for row in rows {
        let visit = row.task.visit;
        let attempts = terminal::counted(row.attempts.len(), "attempt");
        let waits = row.blocked.as_ref().map(waits).unwrap_or_default();
        let last = row.attempts.iter().rev().find_map(|attempt| attempt.failure.as_ref());
        let why = last.map(|failure| format!(": {}", visible::line(&failure.reason))).unwrap_or_default();
        let state = row.state.as_str();
        printed.row(row.task.node.to_string(), format_args!("visit {visit}  {state}{waits}, {attempts}{why}"));
    }
    printed.finish()
}

fn waits(blocked: &Blocked) -> String {
    match blocked {
        Blocked::NeedsRework { question: Some(question), .. } => format!(" (needs_rework, asks {question})"),
        Blocked::NeedsRework { question: None, .. } => " (needs_rework)".to_owned(),
        Blocked::QuotaWait { provider, until } => format!(" (quota_wait until {until}, {})", visible::line(provider)),
        Blocked::NeedsAnswer { question } => format!(" (needs_answer {question})"),
    }
}
