//! `glovebox gc`: removes old runs by number or age, what killed processes left behind, and what successful runs no
//! longer need.
//!
//! Without `--keep` and `--older-than`, the project's `keep_runs` decides which runs are removed. A running run is
//! never removed.

use crate::arguments::CollectArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::runs::index::{self, RunState};
use crate::runs::removed::Removed;
use crate::runs::retention::{self, Retention};
use crate::runs::{self, RunFolder, remove};
use std::path::Path;
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
    let is_asked = arguments.keep.is_some() || arguments.older_than.is_some();
    let expired = if is_asked { Vec::new() } else { expired(runs_dir)? };
    for (position, run) in runs::list(runs_dir)?.iter().enumerate() {
        let is_old = is_old(arguments, position, run) || expired.iter().any(|old| old.id == run.id);
        if is_old && remove::check(run).is_ok() {
            removed.run(run)?;
        } else if remove::is_folder(run) && has_succeeded(run) && !runs::is_live(run) {
            removed.folder(&remove::repositories(run))?;
            // The next run may begin with the caches of the newest runs.
            let owner = if position >= retention::CACHES_KEPT { remove::lock(run) } else { None };
            owner.map_or(Ok(()), |_owner| removed.folder(&remove::caches(run)))?;
        }
    }
    for folder in remove::leftovers(runs_dir) {
        removed.folder(&folder)?;
    }
    Ok(())
}

/// Returns the runs to remove according to `keep_runs` of the project in the current folder.
fn expired(runs_dir: &Path) -> Result<Vec<RunFolder>, Stop> {
    let project = prepare::read_project(Path::new("."), None)?;
    let keep_runs = project.config.run.keep_runs;
    retention::expired(runs_dir, &Retention { project: project.workdir.clone(), keep_runs })
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
