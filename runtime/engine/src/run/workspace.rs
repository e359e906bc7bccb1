//! The workspace as a projection: the base copy and the changes of finished stages.
//!
//! Knows how a change in the journal becomes a change on disk, and nothing of who may change what: that was settled before
//! the change was recorded.

use crate::driver::RunError;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::ports::PortError;
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::{apply, commit};
use std::path::Path;

/// Brings the workspace to where the changes say. Again is the same as once.
pub fn apply_changes<'a>(
    workspace: &Path,
    blobs: &DirBlobs,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), RunError> {
    let changes: Vec<&FileChange> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    let open = |digest: &Digest| blobs.open_unverified(digest);
    commit::apply(workspace, changes, &open).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Keeps the files at the paths of changes, so that `diff` knows them when the project has moved on. To be called before an append that
/// makes them durable, and that before the changes are applied. Anything else at a path, or nothing, is no file to keep.
pub(super) fn keep_replaced<'a>(
    workspace: &Path,
    blobs: &DirBlobs,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), PortError> {
    for change in changes {
        if let Ok(mut file) = apply::open_before(workspace, change.path.as_str()) {
            blobs.keep(&mut file)?;
        }
    }
    Ok(())
}
