//! An open directory and operations that open paths below it. No symbolic link is followed, and no path leaves the
//! directory.
//!
//! This module does not know scopes: [`crate::view`] decides what may be opened.

use crate::beneath::{How, PASS, Walker};
use glovebox_record::path::ScopePath;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// An open root directory.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    walker: Walker,
}

/// The root itself, or a directory opened below it.
pub(crate) enum Directory<'root> {
    Root(BorrowedFd<'root>),
    Below(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Directory::Root(fd) => *fd,
            Directory::Below(fd) => fd.as_fd(),
        }
    }
}

impl Root {
    /// Uses an open directory as a root.
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { fd, walker: Walker::new() }
    }

    /// Stops using `openat2`.
    pub(crate) fn forget_openat2(&self) {
        self.walker.forget_openat2();
    }

    /// Opens a directory only to open entries in it.
    pub(crate) fn directory(&self, path: &ScopePath) -> Result<Directory<'_>, Errno> {
        let root = self.fd.as_fd();
        if path.is_root() {
            return Ok(Directory::Root(root));
        }
        self.walker.open(root, Path::new(path.as_str()), How::existing(PASS)).map(Directory::Below)
    }

    /// Opens a directory only to open entries in it, name by name. `check` is called for each directory on the path,
    /// including the last, but not for the root.
    pub(crate) fn checked_directory<E: From<Errno>>(
        &self,
        path: &ScopePath,
        check: &mut dyn FnMut(&OwnedFd) -> Result<(), E>,
    ) -> Result<Directory<'_>, E> {
        let root = self.fd.as_fd();
        if path.is_root() {
            return Ok(Directory::Root(root));
        }
        let below = Path::new(path.as_str());
        self.walker.name_by_name(root, below, How::existing(PASS), check).map(Directory::Below)
    }

    /// Opens a file below the root without following links.
    pub(crate) fn file(&self, path: &ScopePath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let how = How::existing(flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC);
        self.walker.open(self.fd.as_fd(), Path::new(path.as_str()), how)
    }

    /// Opens one name in a directory. A link is `ELOOP`.
    pub(crate) fn open_name(
        &self,
        at: BorrowedFd<'_>,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        self.walker.open(at, name, How { flags, mode, one_mount: false })
    }
}
