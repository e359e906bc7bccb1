//! Opens paths beneath a directory. It never follows a symbolic link and never leaves the directory.
//!
//! One `openat2` call opens a whole path. If the kernel or container does not support that call, or if the caller
//! checks each directory, names are opened one at a time. This module does not know scopes or owners.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of `openat2` calls for one open. The call fails with `EAGAIN` during a concurrent rename.
const UNSURE_TRIES: u32 = 32;

/// Flags that open a directory only to open entries in it. No read permission is needed.
pub(crate) const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Options for opening a path. `O_CLOEXEC` is always set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Flags for the last component. `O_NOFOLLOW` is not needed: a symbolic link is always `ELOOP`.
    pub(crate) flags: OFlags,
    /// Mode of a file that is created.
    pub(crate) mode: Mode,
    /// True to refuse mounts within the path, if the kernel can detect them.
    pub(crate) one_mount: bool,
}

impl How {
    /// Options that open an existing file or directory, on any mount.
    pub(crate) fn existing(flags: OFlags) -> Self {
        Self { flags, mode: Mode::empty(), one_mount: false }
    }
}

/// Opens paths beneath directories, and records whether the kernel supports `openat2`.
#[derive(Debug)]
pub(crate) struct Walker {
    openat2: AtomicBool,
}

impl Walker {
    /// Creates a walker that uses `openat2` until the kernel refuses the call.
    pub(crate) fn new() -> Self {
        Self { openat2: AtomicBool::new(true) }
    }

    /// Stops using `openat2`.
    pub(crate) fn forget_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }

    /// Opens a path of one or more names. A link anywhere in the path is `ELOOP`. `..` and an absolute path are errors.
    pub(crate) fn open(&self, at: BorrowedFd<'_>, path: &Path, how: How) -> Result<OwnedFd, Errno> {
        match self.in_one_step(at, path, how) {
            Some(opened) => opened,
            None => self.name_by_name(at, path, how, &mut |_: &OwnedFd| Ok(())),
        }
    }

    /// Opens a path one name at a time. `check` is called for every opened object, including the last.
    pub(crate) fn name_by_name<E: From<Errno>>(
        &self,
        at: BorrowedFd<'_>,
        path: &Path,
        how: How,
        check: &mut dyn FnMut(&OwnedFd) -> Result<(), E>,
    ) -> Result<OwnedFd, E> {
        let mut names = path.components().filter(|component| *component != Component::CurDir).peekable();
        if names.peek().is_none() {
            return Ok(self.one_name(at, OsStr::new("."), how)?);
        }
        let mut opened: Option<OwnedFd> = None;
        while let Some(component) = names.next() {
            let Component::Normal(name) = component else { return Err(Errno::XDEV.into()) };
            let how = if names.peek().is_some() { How { flags: PASS, mode: Mode::empty(), ..how } } else { how };
            let next = self.one_name(opened.as_ref().map_or(at, AsFd::as_fd), name, how)?;
            check(&next)?;
            opened = Some(next);
        }
        opened.ok_or_else(|| Errno::NOENT.into())
    }

    fn one_name(&self, at: BorrowedFd<'_>, name: &OsStr, how: How) -> Result<OwnedFd, Errno> {
        if let Some(opened) = self.in_one_step(at, Path::new(name), how) {
            return opened;
        }
        let opened = rustix::fs::openat(at, name, how.flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, how.mode);
        match opened {
            // With DIRECTORY, the kernel reports a link as `ENOTDIR`.
            Err(Errno::NOTDIR) if is_link(at, name)? => Err(Errno::LOOP),
            opened => opened,
        }
    }

    /// Opens a path with `openat2`. Returns `None` if the call is not supported.
    fn in_one_step(&self, at: BorrowedFd<'_>, path: &Path, how: How) -> Option<Result<OwnedFd, Errno>> {
        if !self.openat2.load(Ordering::Relaxed) {
            return None;
        }
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let resolve = if how.one_mount { beneath | ResolveFlags::NO_XDEV } else { beneath };
        // NOFOLLOW is not set, because with PATH the kernel would open the link itself. NO_SYMLINKS refuses links.
        let flags = (how.flags - OFlags::NOFOLLOW) | OFlags::CLOEXEC;
        for _ in 0..UNSURE_TRIES {
            match rustix::fs::openat2(at, path, flags, how.mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => {
                    self.forget_openat2();
                    return None;
                }
                opened => return Some(opened),
            }
        }
        Some(Err(Errno::AGAIN))
    }
}

fn is_link(at: BorrowedFd<'_>, name: &OsStr) -> Result<bool, Errno> {
    let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_ways_of_opening_stay_beneath() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("in/a/b")).unwrap();
        std::fs::create_dir_all(at("out/b")).unwrap();
        symlink("../out", at("in/way")).unwrap();
        symlink("a", at("in/short")).unwrap();
        let root = rustix::fs::open(at("in"), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let (whole, by_names) = (Walker::new(), Walker::new());
        by_names.forget_openat2();
        let open = |walker: &Walker, path: &str, flags| {
            walker.open(root.as_fd(), Path::new(path), How::existing(flags)).map(drop)
        };
        for flags in [OFlags::RDONLY | OFlags::DIRECTORY, PASS, PASS | OFlags::NOFOLLOW] {
            for path in [".", "a/b", "way", "way/b", "short/b", "..", "a/../../out", "missing", "/"] {
                let (first, second) = (open(&whole, path, flags), open(&by_names, path, flags));
                assert_eq!(first.is_ok(), matches!(path, "." | "a/b"), "{path:?}: {first:?}");
                assert_eq!(second.is_ok(), first.is_ok(), "{path:?} by names: {second:?}");
            }
            for walker in [&whole, &by_names] {
                assert_eq!(open(walker, "way", flags), Err(Errno::LOOP));
                assert_eq!(open(walker, "short/b", flags), Err(Errno::LOOP));
            }
        }
    }
}
