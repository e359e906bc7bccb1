//! The workspace as a projection: the base copy and the changes of finished stages.
//!
//! Knows how a change in the journal becomes a change on disk, and nothing of who may change what: that was settled before
//! the change was recorded.

use crate::blobs::DirBlobs;
use crate::driver::RunError;
use crate::event::{ChangeOp, Digest, FileChange};
use glovebox_sandbox::commit;
use std::io;
use std::path::Path;

/// Brings the workspace to where the changes say. Again is the same as once.
pub fn apply_changes<'a>(
    workspace: &Path,
    blobs: &DirBlobs,
    changes: impl Iterator<Item = &'a FileChange>,
) -> Result<(), RunError> {
    let changes: Vec<commit::FileChange> = changes.map(on_disk).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let open = |digest: &str| {
        let digest: Digest = digest.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(blobs.open_file(&digest)?.into_std())
    };
    commit::apply(workspace, &changes, &open).map_err(|error| RunError::Workspace(Box::new(error)))
}

fn on_disk(change: &FileChange) -> commit::FileChange {
    commit::FileChange {
        path: change.path.clone(),
        op: match change.op {
            ChangeOp::Write => commit::ChangeOp::Write,
            ChangeOp::Delete => commit::ChangeOp::Delete,
            ChangeOp::Mkdir => commit::ChangeOp::Mkdir,
            ChangeOp::Rmdir => commit::ChangeOp::Rmdir,
            ChangeOp::Symlink => commit::ChangeOp::Symlink,
        },
        digest: change.digest.as_ref().map(Digest::to_string),
        bytes: change.bytes,
        executable: change.executable,
        target: change.target.clone(),
    }
}
