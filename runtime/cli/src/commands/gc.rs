//! `glovebox gc`: removes old runs by number or age, what killed processes left behind, and what successful runs no
//! longer need.
//!
//! Without `--keep` and `--older-than` no run is removed. A running run is never removed.

use crate::arguments::CollectArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::index::{self, RunState};
use crate::runs::removed::Removed;
use crate::runs::{self, RunFolder, remove};
use std::time::SystemTime;

/// Removes what the arguments select.
pub fn gc(arguments: &CollectArguments) -> CommandResult {
    let runs_dir = &arguments.runs.runs_dir;
    let states = index::rows(runs_dir)?;
    let has_succeeded = |run: &RunFolder| states.iter().any(|row| row.id == run.id && row.status == RunState::Success);
    let mut removed = Removed::new(arguments.dry_run, arguments.json);
    let ended = collect(arguments, &mut removed, has_succeeded);
    if !arguments.dry_run {
        index::forget(runs_dir);
    }
    // What was removed is reported even if a later removal failed.
    removed.report()?;
    ended.map(|()| Exit::Ok)
}

fn collect(
    arguments: &CollectArguments,
    removed: &mut Removed,
    has_succeeded: impl Fn(&RunFolder) -> bool,
) -> Result<(), Stop> {
    let runs_dir = &arguments.runs.runs_dir;
    for (position, run) in runs::list(runs_dir)?.iter().enumerate() {
        if is_old(arguments, position, run) && remove::check(run).is_ok() {
            removed.run(run)?;
        } else if has_succeeded(run) && !runs::is_live(run) {
            removed.folder(&remove::slack(run))?;
        }
    }
    for folder in remove::leftovers(runs_dir) {
        removed.folder(&folder)?;
    }
    Ok(())
}

/// Returns true if the arguments select a run for removal. `position` is the rank of the run, 0 for the newest.
fn is_old(arguments: &CollectArguments, position: usize, run: &RunFolder) -> bool {
    let is_beyond = arguments.keep.map(|keep| position >= keep);
    let age = SystemTime::now().duration_since(run.created).unwrap_or_default();
    let is_aged = arguments.older_than.map(|most| age > most);
    match (is_beyond, is_aged) {
        (None, None) => false,
        (beyond, aged) => beyond.unwrap_or(true) && aged.unwrap_or(true),
    }
}
