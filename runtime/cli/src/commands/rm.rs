//! `glovebox rm`: removes the named runs completely. If one of them is running, none is removed.

use crate::arguments::RemoveArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::removed::Removed;
use crate::runs::{self, RunFolder, index, remove};

/// Removes runs.
pub fn rm(arguments: &RemoveArguments) -> CommandResult {
    let runs_dir = &arguments.runs.runs_dir;
    let mut found: Vec<RunFolder> = Vec::new();
    for target in &arguments.targets {
        let run = runs::select(runs_dir, target)?;
        remove::check(&run)?;
        if !found.iter().any(|known| known.id == run.id) {
            found.push(run);
        }
    }
    let mut removed = Removed::new(arguments.dry_run, arguments.json);
    let ended: Result<(), Stop> = found.iter().try_for_each(|run| removed.run(run));
    if !arguments.dry_run {
        index::forget(runs_dir);
    }
    // What was removed is reported even if a later removal failed.
    removed.report()?;
    ended.map(|()| Exit::Ok)
}
