//! `glovebox rm`: removes the runs that are named, each as a whole. A running one is refused before any is removed.

use crate::arguments::RemoveArguments;
use crate::exit::{Ended, Exit};
use crate::runs::{self, index, remove};
use crate::terminal::{self, about, counted, visible};

/// Removes runs.
pub fn rm(arguments: &RemoveArguments) -> Ended {
    let runs_dir = &arguments.runs.runs_dir;
    let mut found = Vec::new();
    for target in &arguments.targets {
        let run = runs::select(runs_dir, target)?;
        remove::check(&run)?;
        if !found.iter().any(|known: &runs::RunFolder| known.id == run.id) {
            found.push(run);
        }
    }
    let mut freed = 0_u64;
    for run in &found {
        let (verb, bytes) = match arguments.dry_run {
            true => ("would remove", remove::check(run)?),
            false => ("removed", remove::remove(run)?),
        };
        freed = freed.saturating_add(bytes);
        terminal::print(format_args!("{verb} {} ({})\n", visible::line(&run.id), about(bytes)));
    }
    if !arguments.dry_run {
        index::forget(runs_dir);
        terminal::print(format_args!("freed {}: {}\n", about(freed), counted(found.len(), "run")));
    }
    Ok(Exit::Ok)
}
