//! Compares the files next to the journal in a run's folder with what the journal says.

use super::statement::RunEvidence;
use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::terminal::visible;
use glovebox_engine::run::{HOLDOUTS_DIR, WORKSPACE_DIR};
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::holdout::Seal;
use glovebox_workspace::repository_shape::{self, RepositoryChange};
use glovebox_workspace::restore;
use std::fmt;
use std::io;
use std::path::Path;

/// Returns the error for a file that differs from what was attested.
pub fn differs(message: impl fmt::Display) -> Stop {
    Stop::new(Exit::Mismatch, message.to_string()).with_help("do not trust it: get an unchanged copy of the run")
}

/// Compares the run's workspace with its journal. Returns the text for the report.
pub fn workspace(run: &RunFolder, evidence: &RunEvidence) -> Result<&'static str, Stop> {
    let place = run.path.join(WORKSPACE_DIR);
    match place.symlink_metadata() {
        Err(_) => return Ok("no longer exists"),
        Ok(found) if !found.is_dir() => {
            return Err(differs(format!("the workspace of run `{}` is a link or a file, not a folder", run.id)));
        }
        Ok(_) => {}
    }
    let changes = &evidence.changes;
    let differing = restore::differing(&place, &changes.base, changes.changes.iter());
    let differing = differing.map_err(|error| differs(format!("read the workspace of run `{}`: {error}", run.id)))?;
    match differing.first() {
        None => no_repository(&place, &changes.changes).map(|()| "every file matches the journal"),
        Some(path) => Err(differs(format!("`{path}` in the workspace of run `{}` does not match the journal", run.id))),
    }
}

/// Returns an error if the changes, together with other files of the folder, make a folder a git repository.
pub fn no_repository(folder: &Path, changed: &[FileChange]) -> Result<(), Stop> {
    let unread = |_: &Digest| Ok(None::<io::Empty>);
    let steps: Vec<RepositoryChange<'_>> =
        changed.iter().map(|change| RepositoryChange::recorded(change, &unread)).collect();
    let faults = repository_shape::faults_in_result(folder, &steps);
    let faults =
        faults.map_err(|error| Stop::io(format!("look for repositories in `{}`", folder.display()), &error))?;
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(differs(format!("in `{}`: {}", folder.display(), fault.what()))),
    }
}

/// Compares the sealed hold-outs with `root`, their commitment. Returns the text for the report.
pub fn holdouts(run: &RunFolder, root: &Digest) -> Result<&'static str, Stop> {
    let place = run.path.join(HOLDOUTS_DIR);
    if !place.exists() {
        return Ok("no longer exist; their root is attested");
    }
    let verified = Seal::open(&place).and_then(|seal| seal.verify(root, &seal.files()));
    match verified.as_deref() {
        Ok([]) => Ok("every file matches the seal"),
        Ok([first, ..]) => Err(differs(format!(
            "hold-out `{}` of run `{}` does not match the seal",
            visible::line(&first.path),
            run.id
        ))),
        Err(error) => {
            Err(differs(format!("the hold-outs of run `{}` cannot be compared with the seal: {error}", run.id)))
        }
    }
}
