//! `glovebox ls`: lists all runs, newest first.
//!
//! The rows come from [`index`], which does not verify journals. `show` verifies the journal of its run.

use crate::arguments::ListArguments;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::index::{self, ListedRun, RunState};
use crate::terminal::branches_now;
use crate::terminal::paint::{Colour, Paint};
use crate::terminal::{self, about, ago, duration, pager, summary, visible};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Minimum interval between two looks at the runs of `--watch`.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks take at most 1/`LOOK_SHARE` of the time.
const LOOK_SHARE: u32 = 10;
/// Moves the cursor to the top left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The document that `ls --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "ls.json")]
pub struct RunList {
    /// Version of this document.
    schema_version: u32,
    /// The runs, newest first.
    runs: Vec<ListedRun>,
}

/// Prints one line per run.
pub fn ls(arguments: &ListArguments) -> CommandResult {
    let wanted = WantedRuns::of(arguments);
    if arguments.watch {
        return drive::block_on(watch(&wanted, &arguments.runs.runs_dir))?;
    }
    if arguments.json {
        terminal::print_json(&wanted.document(&arguments.runs.runs_dir)?)?;
        return Ok(Exit::Ok);
    }
    let (runs, all) = wanted.list(&arguments.runs.runs_dir)?;
    if runs.is_empty() {
        let which = if all == 0 { "no runs" } else { "no such runs" };
        terminal::say(format_args!("{which} in `{}`\n", arguments.runs.runs_dir.display()));
        return Ok(Exit::Ok);
    }
    pager::show(&table(&runs, Paint::stdout()));
    Ok(Exit::Ok)
}

/// Shows the list, and again whenever it changes, until a signal ends the command. On a terminal the list replaces the one
/// before.
async fn watch(wanted: &WantedRuns<'_>, runs_dir: &Path) -> CommandResult {
    let on = |kind: SignalKind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
    let (mut interrupt, mut terminate) = (on(SignalKind::interrupt())?, on(SignalKind::terminate())?);
    let is_terminal = terminal::is_capable(&std::io::stdout());
    let mut shown = None;
    loop {
        let began = Instant::now();
        let (runs, _) = wanted.list(runs_dir)?;
        let mut text = table(&runs, Paint::stdout());
        if is_terminal {
            // The last line stays free for the cursor.
            let rows = terminal::screen().rows.saturating_sub(1).max(2);
            text = text.lines().take(rows).map(|line| format!("{line}\n")).collect();
        }
        // A pipe gets the list only if the state of a run has changed, and not for each second of a duration.
        let states = runs.iter().map(|run| format!("{} {}\n", run.id, run.status.as_str())).collect();
        let seen = if is_terminal { text.clone() } else { states };
        if shown.as_ref() != Some(&seen) {
            match (is_terminal, &shown) {
                (true, _) => terminal::print(format!("{CLEAR}{text}")),
                (false, None) => terminal::print(&text),
                (false, Some(_)) => terminal::print(format!("\n{text}")),
            }
            shown = Some(seen);
        }
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
            _ = terminate.recv() => return Ok(Exit::Terminated),
            () = tokio::time::sleep(LOOK_EVERY.max(began.elapsed() * LOOK_SHARE)) => {}
        }
    }
}

/// Which runs are listed.
#[derive(Debug)]
pub struct WantedRuns<'a> {
    /// Only runs whose pipeline's name contains this text.
    pub pipeline: Option<&'a str>,
    /// Only runs in one of these states; empty for all states.
    pub states: &'a [RunState],
    /// At most this number of runs.
    pub limit: usize,
    /// Only runs after the run with this id, which are older.
    pub before: Option<&'a str>,
}

impl<'a> WantedRuns<'a> {
    /// Returns the choice of a command line.
    pub fn of(arguments: &'a ListArguments) -> Self {
        Self {
            pipeline: arguments.pipeline.as_deref(),
            states: &arguments.state,
            limit: arguments.limit.unwrap_or(usize::MAX),
            before: None,
        }
    }
}

/// Prints rows that do not come from folders of runs.
#[cfg(feature = "fleet")]
pub fn print(rows: Vec<ListedRun>, arguments: &ListArguments) -> CommandResult {
    let wanted = WantedRuns::of(arguments);
    let runs: Vec<ListedRun> = rows.into_iter().filter(|run| wanted.has(run)).take(wanted.limit).collect();
    match arguments.json {
        true => terminal::print_json(&RunList { schema_version: 1, runs })?,
        false => pager::show(&table(&runs, Paint::stdout())),
    }
    Ok(Exit::Ok)
}

impl WantedRuns<'_> {
    /// Returns the document that `ls --json` prints.
    pub fn document(&self, runs_dir: &Path) -> Result<RunList, Stop> {
        let (mut runs, _) = self.list(runs_dir)?;
        index::count_proofs(runs_dir, &mut runs)?;
        Ok(RunList { schema_version: 1, runs })
    }

    /// Returns the rows, and the number of all runs.
    fn list(&self, runs_dir: &Path) -> Result<(Vec<ListedRun>, usize), Stop> {
        let all = index::rows(runs_dir)?;
        let count = all.len();
        let first = self.before.map_or(0, |id| all.iter().position(|run| run.id == id).map_or(count, |at| at + 1));
        let runs = all.into_iter().skip(first).filter(|run| self.has(run)).take(self.limit).collect();
        Ok((runs, count))
    }

    fn has(&self, run: &ListedRun) -> bool {
        let of_pipeline = self.pipeline.is_none_or(|text| run.pipeline.contains(text));
        of_pipeline && (self.states.is_empty() || self.states.contains(&run.status))
    }
}

fn table(runs: &[ListedRun], paint: Paint) -> String {
    let now = Timestamp::now();
    // If two runs share the short form of the id, both are listed with the whole id.
    let name = |run: &ListedRun| {
        let is_shared = runs.iter().any(|other| other.id != run.id && other.short.eq_ignore_ascii_case(&run.short));
        visible::line(if is_shared { &run.id } else { &run.short }).into_owned()
    };
    let names: Vec<String> = runs.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(2);
    let head = format!(
        "{:<width$} {:<10} {:<10} {:>8} {:>8} {:>9} PIPELINE",
        "ID", "STATE", "STARTED", "DURATION", "SIZE", "COST"
    );
    let mut text = paint.with(Colour::Bold, head) + "\n";
    for (run, name) in runs.iter().zip(&names) {
        let started = run.started.map_or_else(String::new, |at| ago(at, now));
        let size = run.bytes.map_or_else(|| "-".to_owned(), about);
        let cost = if run.spent.cost.is_zero() { "-".to_owned() } else { summary::cost(run.spent) };
        let rest = run.problem.as_deref().unwrap_or(&run.pipeline);
        let whose = if run.is_own || run.problem.is_some() { "" } else { " (not signed by you)" };
        text.push_str(&format!(
            "{name:<width$} {} {started:<10} {:>8} {size:>8} {cost:>9} {}{whose}\n",
            paint.status(&format!("{:<10}", run.status.as_str())),
            duration(run.duration_ms),
            visible::line(rest)
        ));
        if !run.branches.is_empty() {
            text.push_str(&format!("{:width$} {}\n", "", branches_now::in_one_line(&run.branches)));
        }
    }
    text
}
