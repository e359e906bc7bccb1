//! Lists the files of a project that git does not ignore.

use super::{NEVER, ProjectError};
use crate::ignored::{EntryKind, RuleReader, RulesTooLong};
use crate::run_folder;
use ignore::{DirEntry, WalkBuilder};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A walk through the files of a project, and the entries that it skipped.
pub(super) struct Listing {
    /// Every file and folder that is copied, a folder before its content.
    pub(super) walk: ignore::Walk,
    /// The skipped entries. They are complete when the walk is finished.
    pub(super) noted: WalkNotes,
}

/// The entries that a walk skips.
pub(super) struct WalkNotes(Arc<Mutex<WalkState>>);

struct WalkState {
    rules: RuleReader,
    /// Folders that contain a run. They are not entered.
    runs: Vec<PathBuf>,
    failed: Option<RulesTooLong>,
}

/// Lists the files that git does not ignore. Rules outside of the project apply only within its own repository, so that
/// the same project gives the same copy everywhere. The walk does not read the rules itself, because its reader would
/// block on a FIFO.
///
/// # Errors
/// [`ProjectError::Rules`] if the rules above the project are too long.
pub(super) fn list(from: &Path, own: &Path) -> Result<Listing, ProjectError> {
    let walked = WalkState { rules: RuleReader::new(from)?, runs: Vec::new(), failed: None };
    let noted = WalkNotes(Arc::new(Mutex::new(walked)));
    let (own, root, at) = (own.to_owned(), from.to_owned(), WalkNotes(Arc::clone(&noted.0)));
    let walk = WalkBuilder::new(from)
        .standard_filters(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let inside = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            entry.depth() == 0 || at.takes(entry, inside, &own)
        })
        .build();
    Ok(Listing { walk, noted })
}

impl WalkNotes {
    /// Returns the folders that contain a run.
    ///
    /// # Errors
    /// [`ProjectError::Rules`] if the rules of the project are too long. The walk was then incomplete.
    pub(super) fn finish(self) -> Result<Vec<PathBuf>, ProjectError> {
        let mut walked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        walked.failed.take().map_or(Ok(()), Err)?;
        Ok(std::mem::take(&mut walked.runs))
    }

    fn takes(&self, entry: &DirEntry, inside: &Path, own: &Path) -> bool {
        if NEVER.iter().any(|name| entry.file_name() == *name) {
            return false;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let kind = if is_folder { EntryKind::Directory } else { EntryKind::File };
        let mut walked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if walked.failed.is_some() {
            return false;
        }
        if is_folder && run_folder::is_run(entry.path()) {
            walked.runs.push(inside.to_owned());
            return false;
        }
        if walked.rules.ignores(inside, kind) {
            return false;
        }
        let may_be_own = is_folder && entry.file_name() == own.file_name().unwrap_or_default();
        if may_be_own && std::fs::canonicalize(entry.path()).is_ok_and(|path| path == own) {
            return false;
        }
        if is_folder && let Err(error) = walked.rules.enter(inside) {
            walked.failed = Some(error);
            return false;
        }
        true
    }
}
