//! `glovebox ls`: all runs, newest first.
//!
//! It reads the first and the last record of each journal and verifies none. `show` verifies the journal of its run.

use crate::arguments::ListArguments;
use crate::exit::{Ended, Exit};
use crate::runs::RunFolder;
use crate::terminal::{self, duration, visible};
use crate::{journal, runs};
use glovebox_engine::evidence::RunSummary;
use glovebox_engine::sqlite::Provenance;
use serde::Serialize;

/// The status of a run whose journal cannot be read.
const UNREADABLE: &str = "unreadable";

#[derive(Serialize)]
struct Row {
    id: String,
    pipeline: String,
    status: &'static str,
    started: Option<jiff::Timestamp>,
    duration_ms: u64,
    /// Whether this user started it on this machine.
    is_own: bool,
    problem: Option<String>,
}

/// Prints one line per run. A run whose journal cannot be read is listed with the reason and hides no other.
pub fn ls(arguments: &ListArguments) -> Ended {
    let rows: Vec<Row> = runs::list(&arguments.runs.runs_dir)?.into_iter().map(row).collect();
    if arguments.json {
        terminal::print_json(&rows)?;
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        terminal::say(format_args!("no runs in `{}`\n", arguments.runs.runs_dir.display()));
    }
    for row in &rows {
        terminal::print(line(row));
    }
    Ok(Exit::Ok)
}

fn row(run: RunFolder) -> Row {
    let ends = journal::read_ends(&run);
    let id = run.id;
    match ends {
        Ok((ends, provenance)) => {
            let RunSummary { pipeline, status, started_at, duration_ms, .. } = RunSummary::of(&ends);
            let (status, is_own) = (status.as_str(), provenance == Provenance::Own);
            Row { id, pipeline, status, started: started_at, duration_ms, is_own, problem: None }
        }
        Err(stop) => {
            let (pipeline, status) = (String::new(), UNREADABLE);
            Row { id, pipeline, status, started: None, duration_ms: 0, is_own: false, problem: Some(stop.message) }
        }
    }
}

fn line(row: &Row) -> String {
    let time = row.started.map_or_else(String::new, |at| {
        at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    });
    let rest = row.problem.as_deref().unwrap_or(&row.pipeline);
    let whose = if row.is_own || row.problem.is_some() { "" } else { " (not signed by you)" };
    format!(
        "{:<26} {:<10} {time:<19} {:>7} {}{whose}\n",
        visible::line(&row.id),
        row.status,
        duration(row.duration_ms),
        visible::line(rest)
    )
}
