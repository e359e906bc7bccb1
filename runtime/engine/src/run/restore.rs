//! Restores the workspace of a run that is resumed to the state that its journal describes.
//!
//! A process of the user may have changed the workspace while no process drove the run. So each file is digested, and files
//! that differ are restored from the run's blobs or, if no stage changed them, from the user's project.

use super::RunDir;
use crate::driver::RunError;
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

/// Maximum size of the list of copied files, in bytes.
pub(super) const BASE_BYTES_MAX: u64 = 1 << 30;

/// Reads the list of files with which the workspace began, named by the run's first record.
pub(super) fn base(blobs: &impl BlobStore, state: &RunState) -> Result<Base, RunError> {
    let Some(started) = &state.run else { return Err(RunError::NotStarted) };
    let bytes = blobs.read_all(&started.workspace.base_digest, BASE_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Compares the workspace with the journal, and repairs it. Content that no longer exists anywhere is [`PortError::Corrupt`].
pub(super) fn restore(dir: &RunDir, blobs: &impl BlobStore, state: &RunState) -> Result<Option<Repaired>, RunError> {
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
    tracing::warn!(made, removed, "the run's workspace differed from its journal and was restored");
    Ok(Some(Repaired { made: made as u64, removed: removed as u64 }))
}

/// Why a resume removes the caches of a run and its files at ignored paths. The journal has no digests of them, so they
/// can neither be verified nor restored.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheRemoval {
    /// The run goes back: they could contain results of the visits that are undone.
    pub(super) goes_back: bool,
    /// The clock of the machine was set back: a build tool would take a later change for an earlier one.
    pub(super) clock_went_back: bool,
}

impl CacheRemoval {
    /// Removes them also if an attempt was in progress when its process was killed, because they could be damaged.
    /// Returns true if they were removed.
    pub(super) fn perform(self, dir: &RunDir, state: &RunState) -> Result<bool, RunError> {
        let was_killed = state.verdict.is_none() && state.is_under_way();
        if was_killed || self.goes_back || self.clock_went_back {
            let removed = tree::remove_all(&dir.path.join(cache::FOLDER));
            removed.map_err(|error| RunError::Workspace(Box::new(error)))?;
            return Ok(true);
        }
        Ok(false)
    }
}

fn changed(error: &CommitError) -> RunError {
    let found = format!("it was changed, and cannot be restored: {error}");
    PortError::Corrupt { what: "the run's workspace".into(), found }.into()
}

/// Opens a file of a folder that had this content when the run began.
pub(super) fn in_folder(project: &Path, base: &Base, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
    let (path, _) = base.files.iter().find(|(_, fact)| fact.digest == *digest).ok_or(ErrorKind::NotFound)?;
    Ok(Box::new(open_before(project, path)?))
}
