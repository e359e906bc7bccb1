//! Files that stages leave at ignored paths, stored in the run's folder for the next stage of the same trust.
//!
//! The store is a layer below the workspace of that stage, so that it never hides a file of the workspace. The content is untrusted: files are
//! moved by descriptor, no link is followed, directories are created anew, holes stay holes, and no file keeps an attribute that an overlay
//! reads. A store that exceeds its limit, that could not be changed, or that a crash left half changed, is emptied.

use crate::cache::{self, CacheError, CacheSet};
use crate::change::Op;
use crate::ignored::IgnoredChanges;
use crate::overlay::attributes::remove_overlay_attributes;
use crate::sparse_copy;
use crate::stage::WorkspaceView;
use crate::tree::{self, Owner, Tree};
use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of all stores in a run's folder of caches.
const FOLDER: &str = "ignored";
/// Ending of the mark of a store that is being changed.
const CHANGING: &str = "changing";

/// The store of one set in one run.
#[derive(Debug)]
pub struct IgnoredStore {
    at: PathBuf,
    mark: PathBuf,
}

impl IgnoredStore {
    /// Makes or finds the store of a set. One that was being changed when the program ended is emptied.
    ///
    /// # Errors
    /// [`CacheError::Io`] when the system refuses.
    pub fn open(run: &Path, set: &CacheSet) -> Result<Self, CacheError> {
        let all = run.join(cache::FOLDER).join(FOLDER);
        let (at, mark) = (all.join(set.as_str()), all.join(format!("{}.{CHANGING}", set.as_str())));
        let store = Self { at, mark };
        if store.mark.exists() {
            store.clear()?;
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&store.at);
        made.map_err(cache::failed("make", &store.at))?;
        Ok(store)
    }

    /// True when there is content.
    pub fn holds_anything(&self) -> bool {
        cache::holds_anything(&self.at)
    }

    /// The folder with the content.
    pub fn folder(&self) -> &Path {
        &self.at
    }

    /// Stores the ignored files of a stage. The stage must have ended, and its other files must be stored. Returns false
    /// if they exceed `bytes_max`: then the store is empty, as it is after an error.
    ///
    /// # Errors
    /// [`CacheError::Io`] when the system refuses.
    pub fn take(&self, view: &WorkspaceView, left_out: &IgnoredChanges, bytes_max: u64) -> Result<bool, CacheError> {
        if left_out.lasting.is_empty() {
            return Ok(true);
        }
        let changed = self.change(view, left_out, bytes_max).map_err(cache::failed("change", &self.at));
        if !matches!(changed, Ok(true)) {
            self.clear()?;
        }
        changed
    }

    fn change(&self, view: &WorkspaceView, left_out: &IgnoredChanges, bytes_max: u64) -> io::Result<bool> {
        fs::write(&self.mark, [])?;
        let mut into = Tree::open(&self.at)?;
        into.owner = Owner::Us;
        let mut changes: Vec<&(PathBuf, Op)> = left_out.lasting.iter().collect();
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (removed, made): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, op)| op.removes());
        removed.iter().rev().try_for_each(|(path, _)| remove(&into, path))?;
        let from = view.changed_tree().map_err(io::Error::other)?;
        let moving = Transfer { from, into: &into, bytes_left: Cell::new(bytes_max) };
        made.iter().try_for_each(|(path, op)| moving.one(path, op))?;
        let fits = cache::measure(&self.at, bytes_max).is_some_and(|bytes| bytes <= bytes_max);
        if fits {
            fs::remove_file(&self.mark).or_else(absent)?;
        }
        Ok(fits)
    }

    fn clear(&self) -> Result<(), CacheError> {
        let failed = cache::failed("remove", &self.at);
        tree::remove_all(&self.at).map_err(&failed)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.at).map_err(&failed)?;
        fs::remove_file(&self.mark).or_else(absent).map_err(&failed)
    }
}

fn absent(error: io::Error) -> io::Result<()> {
    if tree::is_absent(&error) { Ok(()) } else { Err(error) }
}

/// Removes a path and the folders above it that are empty then.
fn remove(into: &Tree, path: &Path) -> io::Result<()> {
    match into.parent(path) {
        Ok((parent, name)) => tree::remove(&parent, name).or_else(absent)?,
        Err(error) => return absent(error),
    }
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        let (parent, name) = into.parent(above)?;
        if rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
    Ok(())
}

/// Files on their way into a store.
struct Transfer<'m> {
    from: &'m Tree,
    into: &'m Tree,
    /// Bytes that may still be copied, where a file cannot be moved.
    bytes_left: Cell<u64>,
}

impl Transfer<'_> {
    fn one(&self, path: &Path, op: &Op) -> io::Result<()> {
        match op {
            Op::MakeDir => self.make_directories(path).map(drop),
            Op::Write { executable, .. } => self.file(path, *executable),
            Op::Link { .. } => self.link(path),
            Op::Delete | Op::RemoveDir | Op::Special { .. } => Ok(()),
        }
    }

    fn file(&self, path: &Path, executable: bool) -> io::Result<()> {
        let (source, name) = self.from.parent(path)?;
        let target = self.target(path, name)?;
        // Opening restores permissions, and refuses an entry that is no longer a regular file.
        let file = tree::open_regular(&source, name, Owner::Us)?;
        rustix::fs::fchmod(&file, tree::file_mode(executable))?;
        remove_overlay_attributes(&file)?;
        let rename = || rustix::fs::renameat(&source, name, &target, name);
        let renamed = match rename() {
            Err(Errno::ACCESS) => {
                // The stage took away the right to change the folder.
                rustix::fs::fchmod(&source, Mode::RWXU)?;
                rename()
            }
            other => other,
        };
        match renamed {
            Err(Errno::XDEV) => self.copy(&file, tree::create_file(&target, name, tree::file_mode(executable))?),
            other => Ok(other?),
        }
    }

    fn copy(&self, file: &File, copy: File) -> io::Result<()> {
        let stat: Stat = rustix::fs::fstat(file)?;
        let copied = sparse_copy::copy(file, &copy, self.bytes_left.get())?;
        self.bytes_left.set(self.bytes_left.get().saturating_sub(copied));
        tree::keep_times(&copy, &stat)
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        let (source, name) = self.from.parent(path)?;
        let leads_to = tree::read_link(&source, name)?;
        Ok(rustix::fs::symlinkat(&leads_to, self.target(path, name)?, name)?)
    }

    /// The target directory of a file, in which the file's name is free.
    fn target(&self, path: &Path, name: &OsStr) -> io::Result<OwnedFd> {
        let target = self.make_directories(path.parent().unwrap_or(Path::new("")))?;
        tree::remove(&target, name)?;
        Ok(target)
    }

    /// Creates a directory and those above it. Files and links in their place are removed.
    fn make_directories(&self, path: &Path) -> io::Result<OwnedFd> {
        if let Ok(found) = self.into.directory(path) {
            return Ok(found);
        }
        let mut at = PathBuf::new();
        for part in path.components() {
            at.push(part);
            let (parent, name) = self.into.parent(&at)?;
            if rustix::fs::mkdirat(&parent, name, Mode::RWXU | tree::DIRECTORY_MODE) == Err(Errno::EXIST)
                && self.into.directory(&at).is_err()
            {
                tree::remove(&parent, name)?;
                rustix::fs::mkdirat(&parent, name, tree::DIRECTORY_MODE)?;
            }
        }
        self.into.directory(path)
    }
}
