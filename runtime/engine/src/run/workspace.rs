//! The workspace as a projection: the base copy and the changes of finished stages.
//!
//! Knows how a change in the journal becomes a change on disk, and nothing of who may change what: that was settled before
//! the change was recorded.

use crate::blobs::DirBlobs;
use crate::driver::RunError;
use glovebox_record::{Digest, FileChange};
use glovebox_sandbox::{apply, commit};
use std::path::Path;

/// Brings the workspace to where the changes say. Again is the same as once. What a change replaces is kept as a blob first, so that
/// `diff` knows it when the project has moved on.
pub fn apply_changes<'a>(
    workspace: &Path,
    blobs: &DirBlobs,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), RunError> {
    let changes: Vec<&FileChange> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    for change in &changes {
        keep_replaced(workspace, blobs, change)?;
    }
    let open = |digest: &Digest| Ok(blobs.open_file(digest)?.into_std());
    commit::apply(workspace, changes, &open).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Keeps the file at the path of a change. Anything else there, or nothing, is no file to keep.
fn keep_replaced(workspace: &Path, blobs: &DirBlobs, change: &FileChange) -> Result<(), RunError> {
    match apply::open_before(workspace, change.path.as_str()) {
        Ok(mut file) => Ok(blobs.keep(&mut file)?),
        Err(_) => Ok(()),
    }
}
