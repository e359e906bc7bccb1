//! An index of the identities (device and inode) of all objects at and below the hidden entries, so that they cannot be
//! reached by another name.
//!
//! The index is built once, when the view is opened. It detects cases that rules for paths cannot: hard links, bind
//! mounts, renamed parents, and names that differ only in case.

use super::OpenViewError;
use super::error::ViewError;
use super::metadata::{Identity, Kind};
use crate::root::{Directory, Root};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::CStr;

/// Maximum number of files and directories that can be hidden in one view. If there are more, the view cannot be opened.
pub const HIDDEN_OBJECTS_MAX: usize = 1_000_000;

/// Identities of hidden files and directories.
#[derive(Debug, Default)]
pub(super) struct HiddenObjects(HashSet<Identity>);

const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

impl HiddenObjects {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, object: Identity) -> bool {
        self.0.contains(&object)
    }

    /// Opens a directory only to open entries in it. A hidden directory, and a directory below one, is not found.
    pub(super) fn directory<'r>(&self, root: &'r Root, path: &ScopePath) -> Result<Directory<'r>, ViewError> {
        if self.is_empty() {
            return Ok(root.directory(path)?);
        }
        root.checked_directory(
            path,
            &mut |passed| match self.contains(Identity::from_stat(&rustix::fs::fstat(passed)?)) {
                true => Err(ViewError::NotFound),
                false => Ok(()),
            },
        )
    }

    /// Indexes every existing hidden entry in each of the roots.
    pub(super) fn index<'r>(
        roots: impl IntoIterator<Item = &'r Root>,
        entries: &[Entry],
    ) -> Result<Self, OpenViewError> {
        let mut found = Self::default();
        for root in roots {
            entries.iter().try_for_each(|entry| found.add_entry(root, entry.path()))?;
        }
        Ok(found)
    }

    fn add_entry(&mut self, root: &Root, path: &ScopePath) -> Result<(), OpenViewError> {
        let problem = |source| OpenViewError::hidden(path, source);
        let name = path.name().unwrap_or(".");
        let parent = match root.directory(&path.parent().unwrap_or_default()).map_err(ViewError::from) {
            Ok(parent) => parent,
            Err(ViewError::NotFound | ViewError::NotADirectory) => return Ok(()),
            Err(ViewError::Loop) => return Err(OpenViewError::hidden_link(path)),
            Err(ViewError::Io(source)) => return Err(problem(source)),
            Err(_) => return Err(problem(Errno::INVAL)),
        };
        let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(source) => return Err(problem(source)),
        };
        if Kind::from_stat(&stat) == Kind::Symlink {
            return Err(OpenViewError::hidden_link(path));
        }
        self.add(Identity::from_stat(&stat))?;
        if Kind::from_stat(&stat) != Kind::Directory {
            return Ok(());
        }
        let top = rustix::fs::openat(&parent, name, READ_DIRECTORY, Mode::empty()).map_err(problem)?;
        self.add_below(top, path)
    }

    fn add(&mut self, object: Identity) -> Result<(), OpenViewError> {
        self.0.insert(object);
        if self.0.len() > HIDDEN_OBJECTS_MAX { Err(OpenViewError::TooManyHidden) } else { Ok(()) }
    }

    /// Adds everything below an open directory, depth first, with one open directory per level.
    fn add_below(&mut self, top: OwnedFd, path: &ScopePath) -> Result<(), OpenViewError> {
        let problem = |source| OpenViewError::hidden(path, source);
        let mut open = vec![Dir::new(top).map_err(problem)?];
        while let Some(directory) = open.last_mut() {
            let Some(entry) = directory.read().transpose().map_err(problem)? else {
                open.pop();
                continue;
            };
            if is_dot(entry.file_name()) {
                continue;
            }
            let at = directory.fd().map_err(problem)?;
            if let Some(below) = self.add_name(at, entry.file_name(), problem)? {
                open.push(Dir::new(below).map_err(problem)?);
            }
        }
        Ok(())
    }

    /// Adds the object with this name. If it is a directory, the directory is returned to descend into it.
    fn add_name(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        problem: impl Fn(Errno) -> OpenViewError,
    ) -> Result<Option<OwnedFd>, OpenViewError> {
        let stat = rustix::fs::statat(at.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(&problem)?;
        self.add(Identity::from_stat(&stat))?;
        if Kind::from_stat(&stat) != Kind::Directory {
            return Ok(None);
        }
        rustix::fs::openat(at, name, READ_DIRECTORY, Mode::empty()).map(Some).map_err(problem)
    }
}

/// Returns true for `.` and `..`.
pub(super) fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
