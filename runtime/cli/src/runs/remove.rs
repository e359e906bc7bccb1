//! Removes runs and what killed processes left behind.
//!
//! A run is removed under its own lock, so never while a process drives it. Its folder is renamed first, then its files
//! are removed without following symbolic links. Apart from runs, only leftover folders are removed, and only in a
//! folder of runs that Glovebox marked.

use super::{DRAFT, RunFolder, folder};
use crate::exit::{Exit, Stop};
use glovebox_engine::attempt::REPOSITORIES_DIR;
use glovebox_engine::run::OWNER_FILE;
use glovebox_journal::sqlite::Owner;
use glovebox_workspace::{cache, run_folder, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the name of a run's folder while the run is being removed.
const REMOVED: &str = ".removed-";
/// Time after which a draft without a lock file was left behind. A process that creates a run takes the lock at once.
const DRAFT_LOCKED_AFTER: Duration = Duration::from_secs(60);

/// Returns why a run must not be removed; `None` if it may be removed.
fn refused(run: &RunFolder) -> Option<Stop> {
    let path = run.path.display();
    if super::is_live(run) {
        let message = format!("run `{}` is running; nothing of it was removed", run.id);
        return Some(
            Stop::new(Exit::Policy, message)
                .with_help("end it with `glovebox cancel`, or wait for it with `glovebox wait`"),
        );
    }
    let is_link = fs::symlink_metadata(&run.path).is_ok_and(|found| found.is_symlink());
    if is_link || !run_folder::is_run(&run.path) {
        let message = format!("`{path}` is not a run of glovebox: it was not removed");
        return Some(Stop::new(Exit::Policy, message));
    }
    None
}

/// Checks that a run could be removed. Returns its size on disk in bytes.
pub fn check(run: &RunFolder) -> Result<u64, Stop> {
    match refused(run) {
        Some(stop) => Err(stop),
        None => Ok(tree::bytes_on_disk(&run.path).unwrap_or(0)),
    }
}

/// Removes a run. Returns the size that it had on disk, in bytes.
pub fn remove(run: &RunFolder) -> Result<u64, Stop> {
    let bytes = check(run)?;
    let failed = |error: &std::io::Error| Stop::io(format!("remove run `{}`", run.id), error);
    let lock = run.path.join(OWNER_FILE);
    let is_file = fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file());
    // The lock is held until the files are gone, so that no process resumes the run during the removal.
    let _owner = is_file
        .then(|| Owner::acquire(&lock))
        .transpose()
        .map_err(|error| Stop::new(Exit::Policy, format!("run `{}` was not removed: {error}", run.id)))?;
    let gone = run.path.with_file_name(format!("{REMOVED}{}", run.id));
    fs::rename(&run.path, &gone).map_err(|error| failed(&error))?;
    tree::remove_all(&gone).map_err(|error| failed(&error))?;
    Ok(bytes)
}

/// Returns folders that no run needs: of runs whose removal or copy was interrupted, and of runs that were killed
/// before they began.
pub fn leftovers(runs_dir: &Path) -> Vec<PathBuf> {
    if !folder::is_marked(runs_dir) {
        return Vec::new();
    }
    let entries = fs::read_dir(runs_dir).into_iter().flatten().flatten();
    let mut left: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| {
            let is_removed =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(REMOVED.as_bytes()));
            is_removed || is_left_draft(path) || never_began(path)
        })
        .collect();
    left.sort();
    left
}

/// Returns true for a draft of a run whose process has ended.
fn is_left_draft(path: &Path) -> bool {
    let is_draft = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(DRAFT.as_bytes()));
    let lock = path.join(OWNER_FILE);
    is_draft
        && !Owner::is_held(&lock)
        && (fs::symlink_metadata(&lock).is_ok() || is_older_than(path, DRAFT_LOCKED_AFTER))
}

/// Returns true if a folder was last changed at least this long ago. A folder of the future is not older.
fn is_older_than(path: &Path, age: Duration) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|elapsed| elapsed >= age))
}

/// Returns true for a folder without a journal that has the lock file of a run, if no process holds the lock.
fn never_began(path: &Path) -> bool {
    let is_there = |name: &str| fs::symlink_metadata(path.join(name)).is_ok();
    !is_there(run_folder::JOURNAL_FILE) && is_there(OWNER_FILE) && !Owner::is_held(&path.join(OWNER_FILE))
}

/// Returns the folder with the repositories that a run's commands saw as `.git`. After a successful run, this folder is
/// not read again.
pub fn repositories(run: &RunFolder) -> PathBuf {
    run.path.join(REPOSITORIES_DIR)
}

/// Returns the folder with the build caches of a run. After a successful run, only a later run may use them.
pub fn caches(run: &RunFolder) -> PathBuf {
    run.path.join(cache::FOLDER)
}

/// Takes the lock of a run that no process drives. Its build caches may be moved or removed only under this lock.
pub fn lock(run: &RunFolder) -> Option<Owner> {
    let lock = run.path.join(OWNER_FILE);
    let is_file = fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file());
    is_file.then(|| Owner::acquire(&lock).ok()).flatten()
}

/// Returns true if the folder of a run is a real folder. A symbolic link could lead to the runs of another project.
pub fn is_folder(run: &RunFolder) -> bool {
    fs::symlink_metadata(&run.path).is_ok_and(|found| found.is_dir())
}

/// Returns true if a run has a folder of build caches.
pub fn has_caches(run: &RunFolder) -> bool {
    is_folder(run) && fs::symlink_metadata(caches(run)).is_ok()
}

/// Removes the build caches of a run. Returns true if it had some.
pub fn drop_caches(run: &RunFolder) -> bool {
    let folder = caches(run);
    let owner = has_caches(run).then(|| lock(run)).flatten();
    owner.is_some_and(|_owner| tree::remove_all(&folder).is_ok())
}

/// Removes what a successful run no longer needs. What cannot be removed stays until `gc`.
pub fn slim(run: &RunFolder) {
    let _stays_until_gc = tree::remove_all(&repositories(run));
}
