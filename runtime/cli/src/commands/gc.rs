//! `glovebox gc`: removes old runs by number or age, what killed processes left, and what successful runs need no longer.
//!
//! Without `--keep` and `--older-than` no run is removed. A running run never is.

use crate::arguments::CollectArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::runs::index::{self, RunState};
use crate::runs::{self, RunFolder, remove};
use crate::terminal::{self, about, counted, visible};
use glovebox_sandbox::tree;
use std::path::Path;
use std::time::SystemTime;

/// What was removed, or would be.
struct Collected {
    is_dry: bool,
    bytes: u64,
    runs: usize,
}

/// Removes what the arguments allow.
pub fn gc(arguments: &CollectArguments) -> Ended {
    let runs_dir = &arguments.runs.runs_dir;
    let states = index::rows(runs_dir)?;
    let has_succeeded = |run: &RunFolder| states.iter().any(|row| row.id == run.id && row.status == RunState::Success);
    let mut collected = Collected { is_dry: arguments.dry_run, bytes: 0, runs: 0 };
    for (position, run) in runs::list(runs_dir)?.iter().enumerate() {
        if is_old(arguments, position, run) && remove::check(run).is_ok() {
            collected.run(run)?;
        } else if has_succeeded(run) && !runs::is_live(run) {
            collected.folder(&remove::slack(run))?;
        }
    }
    for folder in remove::leftovers(runs_dir) {
        collected.folder(&folder)?;
    }
    collected.finish(runs_dir)
}

/// Whether the arguments select a run. `position` counts from the newest.
fn is_old(arguments: &CollectArguments, position: usize, run: &RunFolder) -> bool {
    let is_beyond = arguments.keep.map(|keep| position >= keep);
    let age = SystemTime::now().duration_since(run.created).unwrap_or_default();
    let is_aged = arguments.older_than.map(|most| age > most);
    match (is_beyond, is_aged) {
        (None, None) => false,
        (beyond, aged) => beyond.unwrap_or(true) && aged.unwrap_or(true),
    }
}

impl Collected {
    fn run(&mut self, run: &RunFolder) -> Result<(), Stop> {
        let bytes = if self.is_dry { remove::check(run)? } else { remove::remove(run)? };
        self.runs += 1;
        self.note(&visible::line(&run.id), bytes);
        Ok(())
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Stop> {
        let failed = |error: &std::io::Error| Stop::io(format!("remove `{}`", folder.display()), error);
        if std::fs::symlink_metadata(folder).is_err() {
            return Ok(());
        }
        let bytes = tree::bytes_on_disk(folder).unwrap_or(0);
        if !self.is_dry {
            tree::remove_all(folder).map_err(|error| failed(&error))?;
        }
        self.note(&visible::line(&folder.to_string_lossy()), bytes);
        Ok(())
    }

    fn note(&mut self, name: &str, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        let verb = if self.is_dry { "would remove" } else { "removed" };
        terminal::print(format_args!("{verb} {name} ({})\n", about(bytes)));
    }

    fn finish(self, runs_dir: &Path) -> Ended {
        let (bytes, runs) = (about(self.bytes), counted(self.runs, "run"));
        match self.is_dry {
            true => terminal::print(format_args!("would free {bytes}: {runs}\n")),
            false => {
                index::forget(runs_dir);
                terminal::print(format_args!("freed {bytes}: {runs}\n"));
            }
        }
        Ok(Exit::Ok)
    }
}
