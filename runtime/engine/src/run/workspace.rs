//! The workspace as a projection: the base copy and the changes of finished stages.
//!
//! Knows how a change in the journal becomes a change on disk, and nothing of who may change what: that was settled before
//! the change was recorded.

use crate::blobs::DirBlobs;
use crate::driver::RunError;
use glovebox_record::{Digest, FileChange};
use glovebox_sandbox::commit;
use std::path::Path;

/// Brings the workspace to where the changes say. Again is the same as once.
pub fn apply_changes<'a>(
    workspace: &Path,
    blobs: &DirBlobs,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), RunError> {
    let mut changes = changes.peekable();
    if changes.peek().is_none() {
        return Ok(());
    }
    let open = |digest: &Digest| Ok(blobs.open_file(digest)?.into_std());
    commit::apply(workspace, changes, &open).map_err(|error| RunError::Workspace(Box::new(error)))
}
