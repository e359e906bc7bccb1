//! Checks the merge of several branches at a fan-in with the rule that applies to each stage: the result has no folder that
//! git would treat as a repository.
//!
//! Each branch was checked alone, against the files with which it began, but the branches together may create a repository.
//! The check uses the list of copied files, the changes of the branch that split and the bytes in the blob store, so the same
//! journal gives the same result.

use glovebox_journal::event::FanInFinished;
use glovebox_journal::ports::BlobStore;
use glovebox_record::{Digest, Failure, FailureClass, FileChange, Status};
use glovebox_state::failure_signature;
use glovebox_state::run_state::{Branch, RunState};
use glovebox_workspace::apply::open_before;
use glovebox_workspace::project::Base;
use glovebox_workspace::repository_shape::{self, FolderEntry, Folders, RepositoryChange, RepositoryFault};
use std::error::Error;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a `HEAD` file that is read, in bytes. A larger file is treated as if it named a branch.
const HEAD_BYTES_MAX: u64 = 4096;

/// Maximum size of the list of copied files, in bytes.
const BASE_BYTES_MAX: u64 = 1 << 30;

/// Why branches could not be checked.
pub(crate) type MergeFault = Box<dyn Error + Send + Sync>;

/// Checks merges at fan-ins. The blob store has the bytes of changed files.
#[derive(Clone, Copy)]
pub struct MergeCheck<'b>(pub &'b dyn BlobStore);

impl MergeCheck<'_> {
    /// Fails a fan-in whose branches together create a repository, and drops the changes that do so.
    pub(crate) fn settle(self, state: &RunState, finished: &mut FanInFinished) -> Result<(), MergeFault> {
        match finished.merged.len() {
            0 | 1 => Ok(()),
            _ => {
                let faults = faults(self.0, state, finished)?;
                refuse(&faults, finished);
                Ok(())
            }
        }
    }
}

fn refuse(faults: &[RepositoryFault], finished: &mut FanInFinished) {
    let Some(first) = faults.first() else { return };
    let touched = |change: &FileChange| faults.iter().any(|fault| fault.touched(change.path.as_str()).is_some());
    finished.changes.retain(|change| change.op.removes() || !touched(change));
    let reason = format!("the merge of the branches is refused: {}", first.reason());
    let failure = Failure::new(FailureClass::Deterministic, "fan_in/repository", reason);
    finished.signature = failure_signature::of_failure(&failure);
    finished.failure = Some(failure);
    (finished.status, finished.verifying) = (Status::Fail, false);
}

fn faults(
    blobs: &dyn BlobStore,
    state: &RunState,
    finished: &FanInFinished,
) -> Result<Vec<RepositoryFault>, MergeFault> {
    let open = |digest: &Digest| blobs.open(digest).map(Some).map_err(io::Error::other);
    let steps: Vec<RepositoryChange<'_>> =
        finished.changes.iter().map(|change| RepositoryChange::recorded(change, &open)).collect();
    if !steps.iter().any(RepositoryChange::may_touch_repository) {
        return Ok(Vec::new());
    }
    let Some(started) = &state.run else { return Ok(Vec::new()) };
    let base = serde_json::from_slice(&blobs.read_all(&started.workspace.base_digest, BASE_BYTES_MAX)?)?;
    let base = with_changes(base, state.branch(&finished.branch));
    let before = Before { base, blobs, project: Path::new(&started.workspace.source_dir) };
    Ok(repository_shape::faults(&before, &steps)?)
}

/// Returns the files with all changes of a branch and of its parent branches.
fn with_changes(base: Base, branch: &Branch) -> Base {
    let base = match &branch.origin {
        Some(origin) => with_changes(base, &origin.branch),
        None => base,
    };
    base.after(branch.changes.values())
}

/// The files of the branch that split.
struct Before<'b> {
    base: Base,
    blobs: &'b dyn BlobStore,
    project: &'b Path,
}

impl Folders for Before<'_> {
    fn entries(&self, folder: &Path) -> io::Result<Vec<(String, FolderEntry)>> {
        self.base.entries(folder)
    }

    /// Reads the first bytes of a file: from the blob store if a stage wrote the file, otherwise from the project if it
    /// is unchanged there.
    fn beginning(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = file.to_str() else { return Ok(None) };
        let Some(fact) = self.base.files.get(file).filter(|fact| fact.bytes <= HEAD_BYTES_MAX) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = match self.blobs.open_unverified(&fact.digest) {
            Ok(blob) => blob.take(HEAD_BYTES_MAX).read_to_end(&mut bytes),
            Err(_) => {
                open_before(self.project, file).and_then(|file| file.take(HEAD_BYTES_MAX).read_to_end(&mut bytes))
            }
        };
        Ok(read.ok().filter(|_| Digest::hash(&bytes) == fact.digest).map(|_| bytes))
    }
}
