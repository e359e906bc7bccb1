//! The workspace as a projection: the copy of the project and the changes of finished stages.
//!
//! This module converts a change in the journal to a change on disk. It does not decide who may change what: that was decided
//! before the change was recorded.

use super::{RunDir, branches};
use crate::driver::{Fault, Follow, RunError};
use crate::run_dir::branch_workspace;
use glovebox_journal::event::{BranchId, Event, Record};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::{Digest, FileChange};
use glovebox_state::evidence::Replay;
use glovebox_workspace::{apply, commit};
use std::path::Path;

/// Applies the changes to the workspace. Applying them again has no effect.
pub fn apply_changes<'a>(
    workspace: &Path,
    blobs: &impl BlobStore,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), RunError> {
    let changes: Vec<&FileChange> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    let open = |digest: &Digest| blobs.open_unverified(digest);
    commit::apply(workspace, changes, &open).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Stores the current files at the paths of changes as blobs, so that `diff` finds them after the project has changed.
/// Must be called before the append that makes these blobs durable, and before the changes are applied. A path without
/// a regular file is skipped.
pub(super) fn keep_replaced<'a>(
    workspace: &Path,
    blobs: &impl BlobStore,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), PortError> {
    for change in changes {
        if let Ok(mut file) = apply::open_before(workspace, change.path.as_str()) {
            blobs.keep(&mut file)?;
        }
    }
    Ok(())
}

/// Updates the workspace with the records of an append, before `next` is called.
pub(super) struct WorkspaceFollower<'a, F, B> {
    pub(super) dir: &'a RunDir,
    pub(super) blobs: &'a B,
    pub(super) next: &'a mut F,
    /// True after a request to stop. A resume continues with the branches that end then.
    pub(super) is_stopped: bool,
    /// False if this machine has no workspace of the run.
    pub(super) has_workspace: bool,
}

impl<F: Follow, B: BlobStore> Follow for WorkspaceFollower<'_, F, B> {
    fn record(&mut self, record: &Record, replay: &Replay) {
        self.is_stopped = replay.state.canceled.is_some() && replay.state.stopped.is_some();
        self.next.record(record, replay);
    }

    fn appended(&mut self, records: &[Record]) -> Result<(), Fault> {
        if self.has_workspace {
            records.iter().try_for_each(|record| self.apply(record))?;
        }
        self.next.appended(records)
    }
}

impl<F, B: BlobStore> WorkspaceFollower<'_, F, B> {
    fn apply(&self, record: &Record) -> Result<(), Fault> {
        if let Event::BranchFinished(finished) = &record.event
            && !self.is_stopped
        {
            branches::remove_files(self.dir, &finished.branch);
        }
        let Some((branch, changes)) = record.event.committed() else { return Ok(()) };
        let workspace = branch_workspace(branch);
        // A branch without a workspace folder creates it when one of its stages needs it.
        if *branch == BranchId::main() || self.dir.dir.symlink_metadata(&workspace).is_ok() {
            apply_changes(&self.dir.path.join(workspace), self.blobs, changes.iter())?;
        }
        Ok(())
    }
}
