//! The workspace of a run that is resumed: what its journal says, whatever happened to it since.
//!
//! A process that ran as the user may have changed it while nobody drove the run. So each file is digested, and what differs is made
//! again from the run's blobs or, if no stage changed it, from the user's project.

use super::RunDir;
use crate::driver::RunError;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::Repaired;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_record::Digest;
use glovebox_state::run_state::RunState;
use glovebox_workspace::apply::open_before;
use glovebox_workspace::commit::CommitError;
use glovebox_workspace::project::Base;
use glovebox_workspace::{cache, restore, tree};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The largest list of copied files.
pub(super) const BASE_BYTES_MAX: u64 = 1 << 30;

/// Reads what the workspace began with, from the run's first record.
pub(super) fn base(blobs: &DirBlobs, state: &RunState) -> Result<Base, RunError> {
    let Some(started) = &state.run else { return Err(RunError::NotStarted) };
    let bytes = blobs.read_all(&started.workspace.base_digest, BASE_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Compares the workspace with the journal, and repairs it. Content that is nowhere any more is [`PortError::Corrupt`].
pub(super) fn restore(dir: &RunDir, blobs: &DirBlobs, state: &RunState) -> Result<Option<Repaired>, RunError> {
    let base = base(blobs, state)?;
    let Some(started) = &state.run else { return Err(RunError::NotStarted) };
    let project = Path::new(&started.workspace.source_dir);
    let open = |digest: &Digest| match blobs.open_unverified(digest) {
        Err(error) if error.kind() == ErrorKind::NotFound => in_folder(project, &base, digest),
        found => found,
    };
    let restored = restore::restore(&dir.workspace(), &base, state.main().changes.values(), &open);
    let restored = restored.map_err(|error| match &error {
        CommitError::Corrupt { .. } => changed(&error),
        CommitError::Io { source, .. } if source.kind() == ErrorKind::NotFound => changed(&error),
        _ => RunError::Workspace(Box::new(error)),
    })?;
    if restored == restore::RestoreReport::default() {
        return Ok(None);
    }
    let restore::RestoreReport { made, removed } = restored;
    tracing::warn!(made, removed, "the run's workspace was not what its journal says; it was restored");
    Ok(Some(Repaired { made: made as u64, removed: removed as u64 }))
}

/// Removes the run's caches if an attempt was under way when its process was killed: a cache has no digest in the journal, so nothing says
/// what of it is whole. Returns whether it did.
pub(super) fn remove_caches(dir: &RunDir, state: &RunState) -> Result<bool, RunError> {
    let was_killed = state.verdict.is_none() && state.is_under_way();
    if was_killed {
        let removed = tree::remove_all(&dir.path.join(cache::FOLDER));
        removed.map_err(|error| RunError::Workspace(Box::new(error)))?;
    }
    Ok(was_killed)
}

fn changed(error: &CommitError) -> RunError {
    let found = format!("it was changed, and cannot be restored: {error}");
    PortError::Corrupt { what: "the run's workspace".into(), found }.into()
}

/// Opens a folder's file that had this content when the run began.
pub(super) fn in_folder(project: &Path, base: &Base, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
    let (path, _) = base.files.iter().find(|(_, fact)| fact.digest == *digest).ok_or(ErrorKind::NotFound)?;
    Ok(Box::new(open_before(project, path)?))
}
