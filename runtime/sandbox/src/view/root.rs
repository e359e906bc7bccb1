//! From the root of a view to a directory below it, without ever following a link.
//!
//! One `openat2` does the whole way when nothing is hidden; otherwise, and on kernels without that call, names are taken one at
//! a time and every directory passed is compared with the hidden objects.

use super::denied::Denied;
use super::hidden::HiddenObjects;
use super::metadata::{Identity, Kind};
use crate::path::ScopePath;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// The opened root directory.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    openat2: AtomicBool,
}

/// A directory of the view: the root itself, or one opened below it.
pub(super) enum Place<'root> {
    Root(BorrowedFd<'root>),
    Below(OwnedFd),
}

impl AsFd for Place<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Place::Root(fd) => *fd,
            Place::Below(fd) => fd.as_fd(),
        }
    }
}

const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

impl Root {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, openat2: AtomicBool::new(true) }
    }

    pub(super) fn forget_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }

    /// Opens a directory for passing through. Something hidden on the way does not exist.
    pub(super) fn directory(&self, path: &ScopePath, hidden: &HiddenObjects) -> Result<Place<'_>, Denied> {
        if path.is_root() {
            return Ok(Place::Root(self.fd.as_fd()));
        }
        if hidden.is_empty() && self.openat2.load(Ordering::Relaxed) {
            match self.resolve(self.fd.as_fd(), path.as_str(), PASS, Mode::empty()) {
                Err(Errno::NOSYS | Errno::PERM) => self.forget_openat2(),
                opened => return Ok(Place::Below(opened?)),
            }
        }
        let mut place = Place::Root(self.fd.as_fd());
        for name in path.names() {
            let next = self.open_name(place.as_fd(), name, PASS, Mode::empty())?;
            if hidden.contains(Identity::of(&rustix::fs::fstat(&next)?)) {
                return Err(Denied::NotFound);
            }
            place = Place::Below(next);
        }
        Ok(place)
    }

    /// Opens one name in a directory, never through a link. A link answers `LOOP` whatever the kernel says.
    pub(super) fn open_name(
        &self,
        at: BorrowedFd<'_>,
        name: &str,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        if self.openat2.load(Ordering::Relaxed) {
            match self.resolve(at, name, flags, mode) {
                Err(Errno::NOSYS | Errno::PERM) => self.forget_openat2(),
                opened => return opened,
            }
        }
        let opened = rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode);
        match opened {
            Err(Errno::NOTDIR)
                if Kind::of(&rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?) == Kind::Symlink =>
            {
                Err(Errno::LOOP)
            }
            opened => opened,
        }
    }

    fn resolve(&self, at: BorrowedFd<'_>, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut tries_left = 8;
        loop {
            // No NOFOLLOW: with PATH it would open the link itself, while NO_SYMLINKS refuses it.
            // AGAIN: a rename happened elsewhere while the kernel was on its way.
            match rustix::fs::openat2(at, path, flags | OFlags::CLOEXEC, mode, beneath) {
                Err(Errno::AGAIN | Errno::INTR) if tries_left > 0 => tries_left -= 1,
                opened => return opened,
            }
        }
    }
}
