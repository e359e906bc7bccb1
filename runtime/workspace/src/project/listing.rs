//! The list of a project's files that git would not ignore.

use super::{NEVER, ProjectError};
use crate::ignored::{EntryKind, RuleReader, RulesTooLong};
use crate::run_folder;
use ignore::{DirEntry, WalkBuilder};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A walk through the files of a project, with the entries it skipped.
pub(super) struct Listing {
    /// Every file and folder that is copied, a folder before its content.
    pub(super) walk: ignore::Walk,
    /// Notes that are complete when the walk is done.
    pub(super) noted: WalkNotes,
}

/// Entries that a walk leaves out.
pub(super) struct WalkNotes(Arc<Mutex<WalkState>>);

struct WalkState {
    rules: RuleReader,
    /// Folders that hold a run: they are not entered.
    runs: Vec<PathBuf>,
    failed: Option<RulesTooLong>,
}

/// Lists what git would not ignore. Rules outside of the project count only within its own repository, so that the same project gives
/// the same copy everywhere. The rules are read here and not by the walk, which would wait for a pipe.
///
/// # Errors
/// [`ProjectError::Rules`] when the rules around the project are too long.
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
    /// The folders that hold a run.
    ///
    /// # Errors
    /// [`ProjectError::Rules`] when the rules of the project are too long: then the walk was cut.
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
