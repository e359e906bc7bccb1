//! The workspace as a projection: the copy of the project and the changes of finished stages.
//!
//! This module converts a change in the journal to a change on disk. It does not decide who may change what: that was decided
//! before the change was recorded.

use crate::driver::RunError;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::{Digest, FileChange};
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
