//! Stores the changes of a stage, and applies stored changes to a workspace.
//!
//! The journal lists each change as a [`FileChange`]. The bytes are in a blob store, which this module reaches only
//! through closures. Applying changes is idempotent and never follows a symbolic link out of the workspace.

use crate::change::{ChangedFiles, FoundChange, Op};
use crate::link;
use crate::protect::PART_PREFIX;
use crate::stage_error::StageError;
use crate::tree::{self, Owner, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange};
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Why changes could not be stored or applied.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The stage's files could not be read.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The path of a change is not a valid path of the workspace.
    #[error("`{path}` cannot be committed: {problem}")]
    Path {
        /// The given path.
        path: String,
        /// The problem.
        problem: String,
    },
    /// The file changed while it was read.
    #[error("`{path}` changed while it was stored")]
    Unstable {
        /// The file.
        path: String,
    },
    /// The content of a blob does not match its digest.
    #[error("the stored content of `{path}` has digest {found}, expected {expected}")]
    Corrupt {
        /// The file.
        path: String,
        /// Digest in the change.
        expected: Digest,
        /// Digest of the bytes.
        found: Digest,
    },
    /// A path exists that is not part of the changes.
    #[error("`{path}` exists and is not part of the changes; it was not changed")]
    InTheWay {
        /// The path.
        path: String,
    },
    /// The operating system refused.
    #[error("could not commit `{path}`: {source}")]
    Io {
        /// Path on which it failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl CommitError {
    pub(crate) fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: tree::shown(path.as_ref()), source }
    }
}

/// Passes the content of every allowed change to `keep`, which returns the digest. Returns the allowed changes in an
/// order in which they can be applied.
///
/// # Errors
/// [`CommitError::Unstable`] if the length of a file changed after the verdict, because the new content has no verdict.
pub fn store(
    found: &[FoundChange],
    view: &dyn ChangedFiles,
    keep: &mut dyn FnMut(&mut dyn Read) -> io::Result<Digest>,
) -> Result<Vec<FileChange>, CommitError> {
    let mut changes = Vec::new();
    for change in found.iter().filter(|change| change.is_allowed()) {
        let path = ScopePath::parse(&change.path)
            .map_err(|problem| CommitError::Path { path: change.path.clone(), problem: problem.to_string() })?;
        changes.push(match &change.op {
            &Op::Write { bytes, executable, mode } => {
                let digest = Some(store_file(change, bytes, view, keep)?);
                FileChange { digest, bytes, executable, mode, ..FileChange::bare(path, ChangeOp::Write) }
            }
            Op::Link { target } => {
                FileChange { target: Some(target.clone()), ..FileChange::bare(path, ChangeOp::Symlink) }
            }
            Op::Delete => FileChange::bare(path, ChangeOp::Delete),
            &Op::MakeDir { mode } => FileChange { mode, ..FileChange::bare(path, ChangeOp::Mkdir) },
            Op::RemoveDir => FileChange::bare(path, ChangeOp::Rmdir),
            Op::Special { .. } => continue,
        });
    }
    sort(&mut changes);
    Ok(changes)
}

fn store_file(
    change: &FoundChange,
    bytes: u64,
    view: &dyn ChangedFiles,
    keep: &mut dyn FnMut(&mut dyn Read) -> io::Result<Digest>,
) -> Result<Digest, CommitError> {
    let failed = |source: io::Error| CommitError::io(&change.raw, source);
    let mut file = view.open(change).map_err(failed)?.take(bytes.saturating_add(1));
    let digest = keep(&mut file).map_err(failed)?;
    if file.limit() == 1 { Ok(digest) } else { Err(CommitError::Unstable { path: change.path.clone() }) }
}

/// Sorts changes: first removals from the leaves up, then directories from the root down, then files and links.
fn sort(changes: &mut [FileChange]) {
    changes.sort_by(|a, b| {
        let rank = |change: &FileChange| match change.op {
            ChangeOp::Delete | ChangeOp::Rmdir => 0,
            ChangeOp::Mkdir => 1,
            ChangeOp::Write | ChangeOp::Symlink => 2,
        };
        let by_path = Path::new(a.path.as_str()).cmp(Path::new(b.path.as_str()));
        rank(a).cmp(&rank(b)).then(if rank(a) == 0 { by_path.reverse() } else { by_path })
    });
}

/// Returns the final state of every path that a list of changes touches, in an order in which the changes can be applied.
pub fn fold<'a>(changes: impl IntoIterator<Item = &'a FileChange>) -> Vec<FileChange> {
    let last: BTreeMap<&str, &FileChange> = changes.into_iter().map(|change| (change.path.as_str(), change)).collect();
    let mut folded: Vec<FileChange> = last.into_values().cloned().collect();
    sort(&mut folded);
    folded
}

/// Applies changes to the workspace: those of one stage, or those of all stages of a run in order.
///
/// Idempotent: the result is the same if some or all of the changes were already applied. It is also the same if
/// changes of later stages were already applied and are part of the list. Conflicting files are replaced. Nothing
/// outside the workspace is ever changed.
pub fn apply<'a, R: Read>(
    workspace: &Path,
    changes: impl IntoIterator<Item = &'a FileChange>,
    open_blob: &dyn Fn(&Digest) -> io::Result<R>,
) -> Result<(), CommitError> {
    let tree = Tree::open(workspace).map_err(|source| CommitError::io(workspace, source))?;
    ChangeWriter { tree: &tree, obstacle: Obstacle::Replace, open_blob }.all(&fold(changes))
}

/// Handling of a path at which a change needs another kind of file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The obstacle is removed, because the tree is a projection of the changes. Files in a removed directory were
    /// created by later changes, which create them again. Files that no stage can see are safe, because a change that
    /// replaces their directory is never allowed.
    Replace,
    /// The obstacle stays and the change is refused, because the tree is the user's project.
    Refuse,
}

/// Applies changes below one folder.
pub(crate) struct ChangeWriter<'a, R> {
    pub(crate) tree: &'a Tree,
    pub(crate) obstacle: Obstacle,
    pub(crate) open_blob: &'a dyn Fn(&Digest) -> io::Result<R>,
}

impl<R: Read> ChangeWriter<'_, R> {
    /// Applies all changes in the given order. New directories of a project then get permissions that keep their owner
    /// from changing them. In a workspace their owner can change them, and only stages see these permissions.
    pub(crate) fn all(&self, changes: &[FileChange]) -> Result<(), CommitError> {
        changes.iter().try_for_each(|change| self.one(change))?;
        let is_closed = |change: &&FileChange| change.op == ChangeOp::Mkdir && is_closed(change.mode);
        let closed = changes.iter().filter(is_closed).filter(|_| self.obstacle == Obstacle::Refuse);
        closed.rev().try_for_each(|change| self.close(change))
    }

    fn close(&self, change: &FileChange) -> Result<(), CommitError> {
        let path = Path::new(change.path.as_str());
        let closed = self.tree.directory(path).and_then(|directory| {
            let mode = Mode::from_raw_mode(change.mode.unwrap_or_default());
            Ok(rustix::fs::fchmod(&directory, mode)?)
        });
        closed.map_err(|source| CommitError::io(path, source))
    }

    fn one(&self, change: &FileChange) -> Result<(), CommitError> {
        let path = &change.path;
        let refused = |problem: &str| CommitError::Path { path: path.to_string(), problem: problem.to_owned() };
        if path.is_root() {
            return Err(refused("it is the workspace itself"));
        }
        match change.op {
            ChangeOp::Delete | ChangeOp::Rmdir => self.remove(path),
            ChangeOp::Mkdir => self.mkdir(path, change.mode),
            ChangeOp::Write => self.write(path, change),
            ChangeOp::Symlink => {
                let target = Path::new(change.target.as_deref().unwrap_or_default());
                link::destination(path, target).map_err(refused)?;
                self.link(path, target)
            }
        }
    }

    fn remove(&self, path: &ScopePath) -> Result<(), CommitError> {
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let at = Path::new(path.as_str());
        let (parent, name) = match self.tree.parent(at) {
            Err(error) if tree::is_absent(&error) => return Ok(()),
            other => other.map_err(failed)?,
        };
        let Some(stat) = tree::stat_at(&parent, name).map_err(failed)? else { return Ok(()) };
        let flags = if kind(&stat) == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(&parent, name, flags) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Creates a directory. A file at this path is replaced. The owner can read, change and enter it.
    fn mkdir(&self, path: &ScopePath, mode: Option<u32>) -> Result<(), CommitError> {
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let stat = self.tree.stat(Path::new(path.as_str())).map_err(failed);
        if stat.is_ok_and(|stat| stat.is_some_and(|stat| kind(&stat) != FileType::Directory)) {
            self.remove(path)?;
        }
        if let Some(mode) = mode {
            let parent = self.directory(&path.parent().unwrap_or_default())?;
            let name = OsStr::new(path.name().unwrap_or_default());
            make_directory(&parent, name, Mode::from_raw_mode(mode) | Mode::RWXU).map_err(failed)?;
        }
        self.directory(path).map(drop)
    }

    fn write(&self, path: &ScopePath, change: &FileChange) -> Result<(), CommitError> {
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let no_content = || CommitError::Path { path: path.to_string(), problem: "its content is missing".to_owned() };
        let expected = change.digest.ok_or_else(no_content)?;
        let parent = self.directory(&path.parent().unwrap_or_default())?;
        let name = OsStr::new(path.name().unwrap_or_default());
        if is_already(&parent, name, change).map_err(failed)? {
            return Ok(());
        }
        let part = part_name(path);
        unlink_if_there(&parent, &part).map_err(failed)?;
        let blob = (self.open_blob)(&expected).map_err(failed)?;
        let file = tree::create_file(&parent, &part, mode(&parent, name, change)).map_err(failed)?;
        let found = copy_blob(blob, file).map_err(failed)?;
        if found != expected {
            unlink_if_there(&parent, &part).map_err(failed)?;
            return Err(CommitError::Corrupt { path: path.to_string(), expected, found });
        }
        self.put(path, &parent, &part, name)
    }

    fn link(&self, path: &ScopePath, target: &Path) -> Result<(), CommitError> {
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let parent = self.directory(&path.parent().unwrap_or_default())?;
        let part = part_name(path);
        unlink_if_there(&parent, &part).map_err(failed)?;
        rustix::fs::symlinkat(target, &parent, &part).map_err(|error| failed(error.into()))?;
        self.put(path, &parent, &part, OsStr::new(path.name().unwrap_or_default()))
    }

    /// Renames a complete temporary file to its final name. A directory at that name is removed first.
    fn put(&self, path: &ScopePath, parent: &OwnedFd, part: &OsStr, name: &OsStr) -> Result<(), CommitError> {
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let rename = || rustix::fs::renameat(parent, part, parent, name);
        match rename() {
            Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => {}
            other => return other.map_err(|error| failed(error.into())),
        }
        if self.obstacle == Obstacle::Replace {
            tree::remove(parent, name).map_err(failed)?;
        } else if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_err() {
            unlink_if_there(parent, part).map_err(failed)?;
            return Err(CommitError::InTheWay { path: path.to_string() });
        }
        rename().map_err(|error| failed(error.into()))
    }

    /// Opens the directory at `path` and creates missing directories. Links are never followed.
    fn directory(&self, path: &ScopePath) -> Result<OwnedFd, CommitError> {
        if let Ok(directory) = self.tree.directory(Path::new(path.as_str())) {
            return Ok(directory);
        }
        let failed = |source: io::Error| CommitError::io(path.as_str(), source);
        let mut at = self.tree.directory(Path::new("")).map_err(failed)?;
        for name in path.names() {
            let name = OsStr::new(name);
            match tree::stat_at(&at, name).map_err(failed)? {
                Some(stat) if kind(&stat) == FileType::Directory => {}
                None => make_directory(&at, name, tree::DIRECTORY_MODE).map_err(failed)?,
                Some(_) if self.obstacle == Obstacle::Replace => {
                    tree::remove(&at, name).map_err(failed)?;
                    make_directory(&at, name, tree::DIRECTORY_MODE).map_err(failed)?;
                }
                Some(_) => return Err(CommitError::InTheWay { path: path.to_string() }),
            }
            at = tree::open_directory(&at, name, Owner::Other).map_err(failed)?;
        }
        Ok(at)
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn make_directory(parent: &OwnedFd, name: &OsStr, mode: Mode) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if these permissions keep the owner of a directory from reading, changing or entering it.
pub(crate) fn is_closed(mode: Option<u32>) -> bool {
    mode.is_some_and(|mode| !Mode::from_raw_mode(mode).contains(Mode::RWXU))
}

fn unlink_if_there(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the mode for a file that replaces the one at `name`: the same permissions, unless the change has others. So a
/// file that only its owner may read stays private, and one that the group may write stays so.
fn mode(parent: &OwnedFd, name: &OsStr, change: &FileChange) -> Mode {
    let replaced = tree::stat_at(parent, name).ok().flatten();
    let replaced = replaced.filter(|stat| {
        let is_kept = change.mode.is_none_or(|mode| tree::unusual_mode(stat) == Some(mode));
        kind(stat) == FileType::RegularFile && tree::is_executable(stat) == change.executable && is_kept
    });
    let given = || change.mode.map_or(tree::file_mode(change.executable), Mode::from_raw_mode);
    replaced.map_or_else(given, |stat| tree::copied_mode(&stat))
}

/// Returns the name of the temporary file for a path. It is always the same, so that the next attempt replaces the file
/// of an interrupted one.
fn part_name(path: &ScopePath) -> OsString {
    format!("{PART_PREFIX}{}", &blake3::hash(path.as_str().as_bytes()).to_hex()[..16]).into()
}

/// Returns true if the file already has this content. It is then not written, so that build tools do not see a new
/// modification time.
fn is_already(parent: &OwnedFd, name: &OsStr, change: &FileChange) -> io::Result<bool> {
    let Some(stat) = tree::stat_at(parent, name)? else { return Ok(false) };
    if kind(&stat) != FileType::RegularFile
        || tree::length(&stat) != change.bytes
        || tree::is_executable(&stat) != change.executable
        || stat.st_nlink != 1
    {
        return Ok(false);
    }
    Ok(change.digest == Some(digest_of(tree::open_regular(parent, name, Owner::Other)?)?))
}

/// Returns the digest of a file's content.
pub fn digest_of(file: File) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().into())
}

fn copy_blob(mut blob: impl Read, mut file: impl Write) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        let got = tree::read_full(&mut blob, &mut buffer)?;
        if got == 0 {
            return Ok(hasher.finalize().into());
        }
        hasher.update(&buffer[..got]);
        file.write_all(&buffer[..got])?;
    }
}

#[cfg(test)]
mod tests;
