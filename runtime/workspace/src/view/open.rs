//! Opens a file of a view.
//!
//! The order of the steps matters: check the rules, examine the path without opening it, open it without following
//! symbolic links or blocking, examine the opened object, and only then truncate. `O_TRUNC` is never passed to the
//! kernel, because it would truncate the file before the last checks.

use super::error::ViewError;
use super::file::FileHandle;
use super::metadata::{Identity, Kind};
use super::place::{Holder, last_name};
use super::refuse::{ObjectFault, Operation};
use super::{Metadata, View};
use crate::root::{Directory, Root};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::sync::Arc;

/// Whether opening a file creates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// The file must exist.
    #[default]
    Never,
    /// The file is created if it does not exist.
    IfAbsent,
    /// The file must not exist and is created.
    MustBeNew,
}

/// Options for opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Opens for reading.
    pub read: bool,
    /// Opens for writing.
    pub write: bool,
    /// Whether the file is created.
    pub create: Create,
    /// Truncates the file to length 0 after all checks.
    pub truncate: bool,
}

impl OpenOptions {
    /// Options to read an existing file.
    pub const READ: Self = Self { read: true, write: false, create: Create::Never, truncate: false };
    /// Options to replace the content of a file, which is created if it does not exist.
    pub const REPLACE: Self = Self { read: false, write: true, create: Create::IfAbsent, truncate: true };

    /// Returns true if the open or the handle can change something.
    pub fn changes(self) -> bool {
        self.write || self.truncate || self.create != Create::Never
    }

    pub(super) fn operation(self) -> Operation {
        if self.changes() { Operation::Write } else { Operation::Read }
    }

    /// Returns flags that keep the open from blocking, from acquiring a controlling terminal and from following links.
    fn flags(self) -> OFlags {
        let mode = match (self.read, self.write || self.truncate) {
            (_, false) => OFlags::RDONLY,
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
        };
        mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
    }
}

/// Maximum number of tries to open a file while other processes create and remove it.
const CREATE_TRIES_MAX: u32 = 4;

impl View {
    /// Opens a regular file. Writing is refused for a file with several hard links, because another name may be outside
    /// the write scope.
    pub fn open_file(self: &Arc<Self>, path: &ScopePath, options: OpenOptions) -> Result<FileHandle, ViewError> {
        let operation = options.operation();
        self.require_file_access(path, options)?;
        if path.is_root() {
            return Err(ViewError::IsADirectory);
        }
        for _ in 0..CREATE_TRIES_MAX {
            let place = self.find(operation, path)?;
            match &place.found {
                Some(_) if options.create == Create::MustBeNew => return Err(ViewError::Exists),
                Some(found) => {
                    self.require_plain_file(options, path, found)?;
                    return match &place.holder {
                        Holder::Disk(root, directory) => self.open_existing(root, directory, path, options),
                        Holder::Layer(layered, origin) => self.open_in_layer(layered, origin, path, options),
                    };
                }
                None if options.create == Create::Never => return Err(ViewError::NotFound),
                None => {}
            }
            let created = match &place.holder {
                Holder::Disk(root, directory) => self.create_new(root, directory, path, options),
                Holder::Layer(layered, _) => self.create_in_layer(layered, path, options),
            };
            match created {
                Err(ViewError::Exists) if options.create == Create::IfAbsent => {}
                created => return created,
            }
        }
        Err(ViewError::Io(Errno::AGAIN))
    }

    /// Checks the rules for a file. A directory that is only a parent of a grant is not a file.
    fn require_file_access(&self, path: &ScopePath, options: OpenOptions) -> Result<(), ViewError> {
        if options.changes() {
            return self.require(Operation::Write, path, Access::Write);
        }
        if self.scope.access(path) == Access::Traverse && self.stat(path).is_ok() {
            return Err(ViewError::IsADirectory);
        }
        self.require(Operation::Read, path, Access::Read)
    }

    fn open_existing(
        self: &Arc<Self>,
        root: &Root,
        directory: &Directory<'_>,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, ViewError> {
        let fd = root
            .open_name(directory.as_fd(), last_name(path), options.flags(), Mode::empty())
            .map_err(|errno| self.denied(options.operation(), path, errno))?;
        self.require_plain_file(options, path, &Metadata::from_stat(&rustix::fs::fstat(&fd)?))?;
        if options.truncate {
            rustix::fs::ftruncate(&fd, 0)?;
            self.touch();
        }
        Ok(self.handle(fd, path, options))
    }

    fn create_new(
        self: &Arc<Self>,
        root: &Root,
        directory: &Directory<'_>,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, ViewError> {
        let flags = options.flags() | OFlags::CREATE | OFlags::EXCL;
        let fd = self.charged_entry(path, || {
            root.open_name(directory.as_fd(), last_name(path), flags, Mode::from_raw_mode(0o666))
        })?;
        Ok(self.handle(fd, path, options))
    }

    fn handle(self: &Arc<Self>, fd: OwnedFd, path: &ScopePath, options: OpenOptions) -> FileHandle {
        FileHandle::on_disk(Arc::clone(self), fd, path.clone(), options)
    }

    /// Refuses special files, objects that are hidden under another name, and writing to files with several hard links.
    pub(super) fn require_plain_file(
        &self,
        options: OpenOptions,
        path: &ScopePath,
        found: &Metadata,
    ) -> Result<(), ViewError> {
        let operation = options.operation();
        match found.kind {
            Kind::Directory => return Err(ViewError::IsADirectory),
            Kind::Symlink => return Err(self.refuse_link(operation, path)),
            Kind::Special => return Err(self.refuse_object(operation, path, ObjectFault::Special)),
            Kind::File => {}
        }
        if self.hidden.contains(found.identity) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        if options.changes() { self.require_single_name(operation, path, found) } else { Ok(()) }
    }

    /// Refuses to change a file with several hard links.
    pub(super) fn require_single_name(
        &self,
        operation: Operation,
        path: &ScopePath,
        found: &Metadata,
    ) -> Result<(), ViewError> {
        if found.kind == Kind::File && found.links > 1 {
            return Err(self.refuse_object(operation, path, ObjectFault::HardLink));
        }
        Ok(())
    }

    /// Requires at least the access `needed` to `path`. Records a refusal otherwise.
    pub(super) fn require(&self, operation: Operation, path: &ScopePath, needed: Access) -> Result<(), ViewError> {
        if self.scope.access(path) >= needed { Ok(()) } else { Err(self.refuse_scope(operation, path)) }
    }

    /// Opens the parent directory of a path.
    pub(super) fn parent<'r>(
        &self,
        root: &'r Root,
        operation: Operation,
        path: &ScopePath,
    ) -> Result<Directory<'r>, ViewError> {
        let parent = path.parent().unwrap_or_default();
        self.hidden.directory(root, &parent).map_err(|denied| match denied {
            ViewError::Loop => self.refuse_link(operation, path),
            other => other,
        })
    }

    /// Returns the status of an entry without opening or following it. An object that is hidden under another name is not found.
    pub(super) fn lstat(
        &self,
        operation: Operation,
        directory: &Directory<'_>,
        path: &ScopePath,
    ) -> Result<Option<Stat>, ViewError> {
        match rustix::fs::statat(directory, last_name(path), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if self.hidden.contains(Identity::from_stat(&stat)) => {
                Err(self.refuse_hidden_object(operation, path))
            }
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Converts an error of the kernel. An error about a link becomes a recorded refusal.
    pub(super) fn denied(&self, operation: Operation, path: &ScopePath, errno: Errno) -> ViewError {
        match ViewError::from(errno) {
            ViewError::Loop => self.refuse_link(operation, path),
            other => other,
        }
    }
}
