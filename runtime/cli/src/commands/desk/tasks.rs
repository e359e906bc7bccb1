//! The tasks of runs.

use super::all_or_one;
use super::problem::problem;
use crate::commands::tasks::{self, TaskFile, TaskList};
use crate::exit::Exit;
use crate::runs::hidden::Hidden;
use crate::runs::{self, RunFolder};
use crate::terminal;
use glovebox_record::RunId;
use glovebox_serve::desk::Problem;
use glovebox_serve::right::Sight;
use glovebox_state::tasks::{TaskRow, TaskState};
use std::path::Path;

/// Number of the newest runs whose tasks are listed.
const RUNS_MAX: usize = 50;

/// Returns the list of tasks, as `tasks --json` prints it.
pub(super) fn list(
    runs_dir: &Path,
    run: Option<&RunFolder>,
    state: Option<&str>,
    seen: Sight,
) -> Result<String, Problem> {
    let wanted = |text: &str| TaskState::ALL.into_iter().find(|state| state.as_str() == text);
    let unknown = || Problem::new(400, "usage", "`state` is not the state of a task");
    let state = state.map(|text| wanted(text).ok_or_else(unknown)).transpose()?;
    let mut rows = Vec::new();
    for run in all_or_one(runs_dir, run)?.iter().take(RUNS_MAX) {
        rows.extend(of_run(run, seen)?.into_iter().filter(|(row, _)| state.is_none_or(|state| row.state == state)));
    }
    let rows = rows.into_iter().map(|(_, value)| value).collect();
    terminal::json(&TaskList { schema_version: 1, tasks: rows }).map_err(problem)
}

/// Returns one task, as `tasks ID --json` prints it.
pub(super) fn one(runs_dir: &Path, id: &str, seen: Sight) -> Result<String, Problem> {
    let unknown = || Problem::new(404, "unknown-task", "there is no such task").with_help("GET /tasks lists the tasks");
    let run = RunId::from(id.split('.').next().unwrap_or_default());
    let run = runs::with_id(runs_dir, &run).ok_or_else(unknown)?;
    let task = of_run(&run, seen)?.into_iter().find(|(row, _)| row.id == id).map(|(_, value)| value);
    terminal::json(&TaskFile { schema_version: 1, task: task.ok_or_else(unknown)? }).map_err(problem)
}

/// Returns the tasks of a run with their JSON. A run that cannot be read has none, so that the tasks of others are listed.
fn of_run(run: &RunFolder, seen: Sight) -> Result<Vec<(TaskRow, serde_json::Value)>, Problem> {
    let rows = match tasks::of_run(run) {
        Ok(rows) => rows,
        Err(stop) if matches!(stop.exit, Exit::Mismatch | Exit::Usage) => return Ok(Vec::new()),
        Err(stop) => return Err(problem(stop)),
    };
    let hidden = Hidden::of(run).map_err(problem)?;
    let with_json = |row: TaskRow| {
        let mut value = serde_json::to_value(&row).unwrap_or_default();
        if !hidden.is_empty() {
            super::sight::remove(&mut value, &|node| hidden.has(&node.into()), seen);
        }
        (row, value)
    };
    Ok(rows.into_iter().map(with_json).collect())
}
