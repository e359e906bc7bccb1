//! What stages leave at paths that git ignores, kept in the run's folder for the next stage of the same trust.
//!
//! It lies under the workspace of that stage, so that it never hides a file of the workspace. The content is untrusted: files are
//! moved by descriptor, no link is followed, directories are made anew, and nothing keeps an attribute that an overlay reads. A store
//! that is over its bound, or that a crash left half changed, begins empty.

use super::LeftOut;
use crate::cache::{self, CacheError, Domain};
use crate::found::Op;
use crate::stage::WorkspaceView;
use crate::stage::has_overlay_attribute;
use crate::tree::{self, Owner, Tree};
use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of all stores in a run's folder of caches.
const FOLDER: &str = "ignored";
/// Ending of the mark of a store that is being changed.
const CHANGING: &str = "changing";

/// The store of one domain in one run.
#[derive(Debug)]
pub struct Store {
    at: PathBuf,
    mark: PathBuf,
}

impl Store {
    /// Makes or finds the store of a domain. One that was being changed when the program ended is emptied.
    ///
    /// # Errors
    /// [`CacheError::Io`] when the system refuses.
    pub fn open(run: &Path, domain: Domain) -> Result<Self, CacheError> {
        let all = run.join(cache::FOLDER).join(FOLDER);
        let (at, mark) = (all.join(domain.as_str()), all.join(format!("{}.{CHANGING}", domain.as_str())));
        let store = Self { at, mark };
        if store.mark.exists() {
            store.clear()?;
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&store.at);
        made.map_err(cache::failed("make", &store.at))?;
        Ok(store)
    }

    /// The folder with the content.
    pub fn folder(&self) -> &Path {
        &self.at
    }

    /// Takes over what a stage left out, once nothing of the stage is alive and everything else of its files was stored. Returns false
    /// when that was more than `bytes_max`: then the store is empty.
    ///
    /// # Errors
    /// [`CacheError::Io`] when the system refuses.
    pub fn take(&self, view: &WorkspaceView, left_out: &LeftOut, bytes_max: u64) -> Result<bool, CacheError> {
        if left_out.lasting.is_empty() {
            return Ok(true);
        }
        let failed = cache::failed("change", &self.at);
        fs::write(&self.mark, []).map_err(&failed)?;
        let mut into = Tree::open(&self.at).map_err(&failed)?;
        into.owner = Owner::Us;
        let mut changes: Vec<&(PathBuf, Op)> = left_out.lasting.iter().collect();
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (removed, made): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, op)| op.removes());
        removed.iter().rev().try_for_each(|(path, _)| remove(&into, path)).map_err(&failed)?;
        let from = view.changed_tree().map_err(io::Error::other).map_err(&failed)?;
        let moving = Moving { from, into: &into };
        made.iter().try_for_each(|(path, op)| moving.one(path, op)).map_err(&failed)?;
        let fits = cache::measure(&self.at, bytes_max).is_some_and(|bytes| bytes <= bytes_max);
        if !fits {
            self.clear()?;
        }
        fs::remove_file(&self.mark).or_else(absent).map_err(&failed)?;
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
struct Moving<'m> {
    from: &'m Tree,
    into: &'m Tree,
}

impl Moving<'_> {
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
        // Opening restores permissions, and refuses what is no longer a file.
        let mut file = tree::open_regular(&source, name, Owner::Us)?;
        if !has_overlay_attribute(&source, name)? {
            rustix::fs::fchmod(&file, tree::file_mode(executable))?;
            match rustix::fs::renameat(&source, name, &target, name) {
                Err(Errno::XDEV) => {}
                other => return Ok(other?),
            }
        }
        let stat: Stat = rustix::fs::fstat(&file)?;
        let mut copy = tree::create_file(&target, name, tree::file_mode(executable))?;
        io::copy(&mut file, &mut copy)?;
        tree::keep_times(&copy, &stat)
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        let (source, name) = self.from.parent(path)?;
        let leads_to = tree::read_link(&source, name)?;
        Ok(rustix::fs::symlinkat(&leads_to, self.target(path, name)?, name)?)
    }

    /// The directory that a file goes to, in which nothing has its name any more.
    fn target(&self, path: &Path, name: &OsStr) -> io::Result<OwnedFd> {
        let target = self.make_directories(path.parent().unwrap_or(Path::new("")))?;
        tree::remove(&target, name)?;
        Ok(target)
    }

    /// Makes a directory and those above it. What was a file or a link there goes.
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
