//! Files that stages write to ignored paths, stored in the run's folder for later stages of the same cache set.
//!
//! The store is a lower layer of such a stage, below the workspace, so it never hides a file of the workspace. The
//! content is untrusted: files are moved by file descriptor, no symbolic link is followed, directories are created
//! anew, sparse files stay sparse, and no file keeps an extended attribute that an overlay reads. A store is emptied if
//! it exceeds its limit, if a change of it failed, or if a crash interrupted a change.

use crate::cache::{self, CacheError, CacheSet};
use crate::change::Op;
use crate::ignored::IgnoredChanges;
use crate::overlay::attributes::remove_overlay_attributes;
use crate::sparse_copy;
use crate::stage::WorkspaceView;
use crate::tree::{self, Owner, Tree};
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the folder of all stores, in a run's folder of caches.
pub(crate) const FOLDER: &str = "ignored";
/// File name extension of the mark of a store that is being changed.
const CHANGING: &str = "changing";

/// The store of one set in one run.
#[derive(Debug)]
pub struct IgnoredStore {
    at: PathBuf,
    mark: PathBuf,
}

impl IgnoredStore {
    /// Opens or creates the store of a set. If the program ended during a change of the store, the store is emptied.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
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

    /// Returns true if any store of a run has content.
    pub fn has_any(run: &Path) -> bool {
        let stores = fs::read_dir(run.join(cache::FOLDER).join(FOLDER)).into_iter().flatten().flatten();
        stores.map(|store| store.path()).any(|store| store.is_dir() && cache::has_content(&store))
    }

    /// Returns true if a change of the store of a set did not end.
    pub(crate) fn is_changing(run: &Path, set: &CacheSet) -> bool {
        run.join(cache::FOLDER).join(FOLDER).join(format!("{}.{CHANGING}", set.as_str())).exists()
    }

    /// Returns true if the store has content.
    pub fn has_content(&self) -> bool {
        cache::has_content(&self.at)
    }

    /// Returns the folder with the content.
    pub fn folder(&self) -> &Path {
        &self.at
    }

    /// Stores the ignored files of a stage. The stage must have ended, and its allowed changes must be stored. Returns
    /// false if the files exceed `bytes_max`. In that case, and after an error, the store is empty.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the system refuses.
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
        into.owner = Owner::ThisProgram;
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

/// Removes a path, and the folders above it that become empty.
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

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A transfer of files into a store.
struct Transfer<'m> {
    from: &'m Tree,
    into: &'m Tree,
    /// Number of bytes that may still be copied if files cannot be moved.
    bytes_left: Cell<u64>,
}

impl Transfer<'_> {
    fn one(&self, path: &Path, op: &Op) -> io::Result<()> {
        match op {
            Op::MakeDir { .. } => self.make_directories(path).map(drop),
            Op::Write { executable, .. } => self.file(path, *executable),
            Op::Link { .. } => self.link(path),
            Op::Delete | Op::RemoveDir | Op::Special { .. } => Ok(()),
        }
    }

    fn file(&self, path: &Path, executable: bool) -> io::Result<()> {
        let (source, name) = self.from.parent(path)?;
        let target = self.target(path, name)?;
        let mode = tree::stat_at(&source, name)?.map_or(tree::file_mode(executable), |stat| tree::copied_mode(&stat));
        // Opening the file makes it readable, and refuses an entry that is no longer a regular file.
        let file = tree::open_regular(&source, name, Owner::ThisProgram)?;
        rustix::fs::fchmod(&file, mode)?;
        remove_overlay_attributes(&file)?;
        let rename = || rustix::fs::renameat(&source, name, &target, name);
        let renamed = match rename() {
            Err(Errno::ACCESS) => {
                // The stage removed the write permission of the folder.
                rustix::fs::fchmod(&source, Mode::RWXU)?;
                rename()
            }
            other => other,
        };
        match renamed {
            Err(Errno::XDEV) => self.copy(&file, tree::create_file(&target, name, mode)?),
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

    /// Opens the target directory of a file and removes an existing entry with the file's name.
    fn target(&self, path: &Path, name: &OsStr) -> io::Result<OwnedFd> {
        let target = self.make_directories(path.parent().unwrap_or(Path::new("")))?;
        tree::remove(&target, name)?;
        Ok(target)
    }

    /// Creates a directory and its parents. Files and links at these paths are removed.
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
            // A private folder stays private. Its owner must be able to change it.
            if let Some(stat) = self.from.stat(&at)?.filter(is_folder) {
                rustix::fs::chmodat(&parent, name, tree::copied_mode(&stat) | Mode::RWXU, AtFlags::empty())?;
            }
        }
        self.into.directory(path)
    }
}
