//! The files of the one commit: those of the project's last commit, or those of the workspace.
//!
//! Each file of the workspace that the last commit has is hashed. If it is equal, its bytes come from the workspace, and
//! the index contains its time, so `git status` does not read it. Only what differs is read from the project's
//! repository.

use super::digest::{ObjectId, ObjectKind};
use super::last_commit::{CommittedEntry, CommittedFiles, LastCommit, is_pointer};
use super::pack::{self, Pack};
use super::snapshot::{Files, Mode, TrackedFile};
use super::{FILE_BYTES_MAX, REPOSITORY_DIR, RepositoryError, SubmoduleLink, pattern};
use crate::lower::is_seen;
use crate::tree::{self, Tree, WalkEntry};
use glovebox_record::scope::Scope;
use rustix::fs::{FileType, Stat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The files of the commit.
#[derive(Default)]
pub(super) struct CommitFiles {
    pub(super) files: Files,
    /// Lines of `info/exclude`.
    pub(super) excluded: Vec<u8>,
    /// A text for the commit's message: which files are missing and why. Empty if none are missing.
    pub(super) note: String,
    /// True if these are the files of the project's last commit.
    pub(super) is_last: bool,
}

/// A file of the workspace that differs from the commit.
struct Changed {
    path: Vec<u8>,
    committed: CommittedEntry,
    /// The status of the file if git considered it unchanged, and its bytes in the workspace.
    unchanged: Option<(Stat, Vec<u8>)>,
}

/// Adds the content of all files to a pack. If the last commit cannot be read, the files are those of the workspace.
pub(super) fn add(
    workspace: &Path,
    scope: &Scope,
    last: Option<LastCommit<'_>>,
    submodules: &[SubmoduleLink],
    pack: &mut Pack,
) -> Result<CommitFiles, RepositoryError> {
    let workspace = Tree::open(workspace)?;
    let read = last.map(|last| CommittedFiles::read(last, scope)).transpose();
    let why = match read {
        Ok(Some(committed)) => {
            let mut content = of_commit(&workspace, scope, committed, pack)?;
            link(submodules, &mut content);
            return Ok(content);
        }
        Ok(None) => "it has none, or `.git` does not belong to this folder".to_owned(),
        Err(error) => error.to_string(),
    };
    let note = format!("The last commit of the project cannot be shown: {why}.");
    tracing::warn!("git in stages: {note} Commands see a commit of the files of the workspace.");
    Ok(CommitFiles { note, ..of_workspace(&workspace, scope, pack)? })
}

/// Lets the commit name the commits of the submodules in the stage, where it names those in the project. Another commit stays: git then
/// shows that the submodule is at another one, as in the project.
fn link(submodules: &[SubmoduleLink], content: &mut CommitFiles) {
    for submodule in submodules {
        let named = content.files.get_mut(submodule.path.as_bytes());
        if let Some(named) = named.filter(|named| named.mode == Mode::Submodule && named.id == submodule.head) {
            named.id = submodule.commit;
        }
    }
}

/// A file or link of the workspace, as a commit contains it.
struct CurrentFile {
    mode: Mode,
    /// `None` if the file is too large for a commit.
    bytes: Option<Vec<u8>>,
}

fn of_workspace(workspace: &Tree, scope: &Scope, pack: &mut Pack) -> Result<CommitFiles, RepositoryError> {
    let mut content = CommitFiles::default();
    each_file(workspace, scope, &mut |path, entry| {
        match current(workspace, entry)? {
            CurrentFile { mode, bytes: Some(bytes) } => {
                let id = pack.add(ObjectKind::Blob, &bytes)?;
                content.files.insert(path, TrackedFile { id, mode, stat: Some(entry.stat) });
            }
            CurrentFile { bytes: None, .. } => content.excluded.extend(pattern(&path)),
        }
        Ok(())
    })?;
    Ok(content)
}

fn of_commit(
    workspace: &Tree,
    scope: &Scope,
    mut committed: CommittedFiles<'_>,
    pack: &mut Pack,
) -> Result<CommitFiles, RepositoryError> {
    let (mut content, mut changed) = (CommitFiles { is_last: true, ..CommitFiles::default() }, Vec::new());
    let mut missing = std::mem::take(&mut committed.entries);
    each_file(workspace, scope, &mut |path, entry| {
        let Some(known) = missing.remove(&path) else { return Ok(()) };
        if known.mode == Mode::Submodule {
            changed.push(Changed { path, committed: known, unchanged: None });
            return Ok(());
        }
        let CurrentFile { mode, bytes } = current(workspace, entry)?;
        let Some(bytes) = bytes else {
            content.excluded.extend(pattern(&path));
            return Ok(());
        };
        let is_same_kind = (mode == Mode::Link) == (known.mode == Mode::Link);
        if is_same_kind && ObjectId::for_object(ObjectKind::Blob, &bytes) == known.id {
            let id = pack.add(ObjectKind::Blob, &bytes)?;
            content.files.insert(path, TrackedFile { id, mode: known.mode, stat: Some(entry.stat) });
            return Ok(());
        }
        let is_unchanged = is_same_kind && committed.is_unchanged(&path, known, &entry.stat);
        let unchanged = is_unchanged.then_some((entry.stat, bytes));
        changed.push(Changed { path, committed: known, unchanged });
        Ok(())
    })?;
    let removed = missing.into_iter().filter(|(path, _)| committed.was_removed(path));
    changed.extend(removed.map(|(path, committed)| Changed { path, committed, unchanged: None }));
    add_changed(workspace, changed, &mut committed, &mut content, pack)?;
    Ok(content)
}

/// Adds the committed content of files that differ from the workspace, and submodules.
fn add_changed(
    workspace: &Tree,
    changed: Vec<Changed>,
    committed: &mut CommittedFiles<'_>,
    content: &mut CommitFiles,
    pack: &mut Pack,
) -> Result<(), RepositoryError> {
    let is_file = |changed: &&Changed| changed.committed.mode != Mode::Submodule;
    let files: Vec<_> =
        changed.iter().filter(is_file).map(|changed| (changed.path.clone(), changed.committed.id)).collect();
    let withheld = committed.withheld(&files, &|path| at_path(workspace, path).ok()?.bytes);
    let withheld = withheld.map_err(|error| io::Error::other(error.to_string()))?;
    let mut unreadable = BTreeSet::new();
    for Changed { path, committed: CommittedEntry { id, mode }, unchanged } in changed {
        if mode == Mode::Submodule {
            content.files.insert(path, TrackedFile { id, mode, stat: None });
            continue;
        }
        let read = if withheld.contains(&path) { None } else { committed.content(id).ok() };
        let stat = unchanged.as_ref().map(|(stat, _)| *stat);
        let file = match (read, unchanged) {
            // Git in the stage has no program for large files, so the commit has the files themselves.
            (Some(pointer), Some((_, bytes))) if is_pointer(&pointer) => {
                TrackedFile { id: pack.add(ObjectKind::Blob, &bytes)?, mode, stat }
            }
            (Some(bytes), _) => TrackedFile { id: pack.add(ObjectKind::Blob, &bytes)?, mode, stat },
            (None, _) => {
                let current = at_path(workspace, &path);
                let is_hidden = withheld.contains(&path);
                if !is_hidden {
                    unreadable.insert(path.clone());
                }
                let Ok(CurrentFile { mode, bytes: Some(bytes) }) = current else { continue };
                TrackedFile { id: pack.add(ObjectKind::Blob, &bytes)?, mode, stat: None }
            }
        };
        content.files.insert(path, file);
    }
    if let Some(first) = unreadable.first() {
        let first = tree::shown(Path::new(OsStr::from_bytes(first)));
        content.note = format!(
            "The committed content of {} changed files could not be read, of `{first}` among others, so they are not shown as changed.",
            unreadable.len()
        );
        tracing::warn!("git in stages: {}", content.note);
    }
    Ok(())
}

/// What [`each_file`] does with the path and the entry of a file.
type VisitFile<'v> = dyn FnMut(Vec<u8>, &WalkEntry<'_>) -> Result<(), RepositoryError> + 'v;

/// Calls `act` for each file and link of the workspace that the scope shows.
fn each_file(workspace: &Tree, scope: &Scope, act: &mut VisitFile<'_>) -> Result<(), RepositoryError> {
    tree::walk::<RepositoryError>(workspace, &mut |entry: &WalkEntry<'_>| {
        let is_repository = entry.name == OsStr::new(REPOSITORY_DIR);
        if is_repository || !is_seen(entry.kind(), scope, entry.path) {
            return Ok(false);
        }
        if entry.kind() == FileType::Directory {
            return Ok(true);
        }
        act(entry.path.as_os_str().as_bytes().to_vec(), entry)?;
        Ok(false)
    })
}

fn current(workspace: &Tree, entry: &WalkEntry<'_>) -> Result<CurrentFile, RepositoryError> {
    let read = |source| RepositoryError::Read { path: tree::shown(entry.path), source };
    if entry.kind() == FileType::Symlink {
        return Ok(CurrentFile { mode: Mode::Link, bytes: Some(entry.target().map_err(read)?.into_vec()) });
    }
    let mode = if tree::is_executable(&entry.stat) { Mode::Executable } else { Mode::File };
    if tree::length(&entry.stat) > FILE_BYTES_MAX {
        return Ok(CurrentFile { mode, bytes: None });
    }
    let file = tree::open_regular(entry.directory, entry.name, workspace.owner).map_err(read)?;
    Ok(CurrentFile { mode, bytes: pack::content(file, FILE_BYTES_MAX).map_err(read)? })
}

/// Reads the file or link at a path of the workspace.
fn at_path(workspace: &Tree, path: &[u8]) -> io::Result<CurrentFile> {
    let (directory, name) = workspace.parent(Path::new(OsStr::from_bytes(path)))?;
    let stat = tree::stat_at(&directory, name)?.ok_or(io::ErrorKind::NotFound)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Ok(CurrentFile { mode: Mode::Link, bytes: Some(tree::read_link(&directory, name)?.into_vec()) });
    }
    let mode = if tree::is_executable(&stat) { Mode::Executable } else { Mode::File };
    let file = tree::open_regular(&directory, name, workspace.owner)?;
    Ok(CurrentFile { mode, bytes: pack::content(file, FILE_BYTES_MAX)? })
}
