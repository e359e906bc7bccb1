//! The root of a view, and the walk from it to a directory below.
//!
//! The walk compares every directory with the hidden objects. A path through a hidden object does not exist.

use super::denied::Denied;
use super::hidden::HiddenObjects;
use super::metadata::Identity;
use crate::beneath::{How, PASS, Walker};
use glovebox_record::path::ScopePath;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// The opened root directory.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    walker: Walker,
}

/// A directory of the view: the root itself, or one opened below it.
pub(super) enum Directory<'root> {
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
    /// Takes an opened directory as a root.
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { fd, walker: Walker::new() }
    }

    pub(super) fn forget_openat2(&self) {
        self.walker.forget_openat2();
    }

    /// Opens a directory for passing through.
    pub(super) fn directory(&self, path: &ScopePath, hidden: &HiddenObjects) -> Result<Directory<'_>, Denied> {
        let (root, how) = (self.fd.as_fd(), How::existing(PASS));
        if path.is_root() {
            return Ok(Directory::Root(root));
        }
        let below = Path::new(path.as_str());
        if hidden.is_empty() {
            return Ok(Directory::Below(self.walker.open(root, below, how)?));
        }
        let mut check = |passed: &OwnedFd| match hidden.contains(Identity::of(&rustix::fs::fstat(passed)?)) {
            true => Err(Denied::NotFound),
            false => Ok(()),
        };
        self.walker.name_by_name(root, below, how, &mut check).map(Directory::Below)
    }

    /// Opens a file below, without following a link.
    pub(crate) fn file(&self, path: &ScopePath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let how = How::existing(flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC);
        self.walker.open(self.fd.as_fd(), Path::new(path.as_str()), how)
    }

    /// Opens one name in a directory. A link is `ELOOP`.
    pub(super) fn open_name(
        &self,
        at: BorrowedFd<'_>,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        self.walker.open(at, name, How { flags, mode, one_mount: false })
    }
}
