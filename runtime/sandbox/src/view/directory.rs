//! Directories of a view: open, list, make, remove. Also examines and removes single entries.
//!
//! A listing shows only paths in the scope. An ancestor of a grant is shown only if it is a directory.

use super::View;
use super::denied::Denied;
use super::hidden::is_dot;
use super::metadata::{Identity, Kind, Metadata, NewTime};
use super::refuse::{Operation, Unusable};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::path::Path;

/// Most entries a directory may have to be listed, seen or not.
pub const LIST_ENTRIES_MAX: usize = 50_000;

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Size in bytes; 0 for anything but a regular file.
    pub size: u64,
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl View {
    /// Looks at an entry without following it.
    pub fn stat(&self, path: &ScopePath) -> Result<Metadata, Denied> {
        self.visible(Operation::Stat, path).map(|stat| Metadata::of(&stat))
    }

    /// Looks at a directory; anything else is not one.
    pub fn directory(&self, path: &ScopePath) -> Result<Metadata, Denied> {
        let metadata = self.visible(Operation::List, path).map(|stat| Metadata::of(&stat))?;
        match metadata.kind {
            Kind::Directory => Ok(metadata),
            Kind::Symlink => Err(self.refuse_link(Operation::List, path)),
            Kind::File | Kind::Special => Err(Denied::NotADirectory),
        }
    }

    /// Lists a directory by name. Hidden, ungranted and unspeakable (not UTF-8) entries are left out; one with more than
    /// [`LIST_ENTRIES_MAX`] entries is too large.
    pub fn list(&self, path: &ScopePath) -> Result<Vec<DirectoryEntry>, Denied> {
        self.require(Operation::List, path, Access::Traverse)?;
        let opened = self.open_directory(Operation::List, path)?;
        let mut listing = Vec::new();
        for (count, entry) in Dir::read_from(&opened)?.enumerate() {
            let entry = entry?;
            if count >= LIST_ENTRIES_MAX + 2 {
                return Err(Denied::TooLarge);
            }
            if is_dot(entry.file_name()) {
                continue;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            let Ok(child) = path.join(name) else { continue };
            if let Some(Metadata { kind, size, .. }) = self.shown(&opened, &child)? {
                listing.push(DirectoryEntry { name: name.to_owned(), kind, size });
            }
        }
        listing.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Makes a directory, also the one a write entry names and those on the way to it.
    pub fn make_directory(&self, path: &ScopePath) -> Result<(), Denied> {
        if !self.scope.may_create_directory(path) {
            return Err(self.refuse_scope(Operation::MakeDirectory, path));
        }
        let Some(name) = path.name() else { return Err(Denied::Exists) };
        let parent = self.parent(Operation::MakeDirectory, path)?;
        if self.lstat(Operation::MakeDirectory, &parent, path)?.is_some() {
            return Err(Denied::Exists);
        }
        self.charged_entry(path, || rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)))
    }

    /// Removes a file, or a link or special file that lies in the write scope.
    pub fn unlink(&self, path: &ScopePath) -> Result<(), Denied> {
        self.require(Operation::Remove, path, Access::Write)?;
        let Some(name) = path.name() else { return Err(Denied::IsADirectory) };
        let parent = self.parent(Operation::Remove, path)?;
        if Kind::of(&self.look(Operation::Remove, &parent, path)?) == Kind::Directory {
            return Err(Denied::IsADirectory);
        }
        self.charged_entry(path, || rustix::fs::unlinkat(&parent, name, AtFlags::empty()))
    }

    /// Removes an empty directory; not the one a write entry names, and not one with something hidden below.
    pub fn remove_directory(&self, path: &ScopePath) -> Result<(), Denied> {
        self.require(Operation::Remove, path, Access::Write)?;
        let Some(name) = path.name() else { return Err(Denied::Invalid) };
        if self.scope.hides_below(path) {
            return Err(self.refuse_below(Operation::Remove, path));
        }
        let parent = self.parent(Operation::Remove, path)?;
        match Kind::of(&self.look(Operation::Remove, &parent, path)?) {
            Kind::Directory => {}
            Kind::Symlink => return Err(self.refuse_link(Operation::Remove, path)),
            Kind::File | Kind::Special => return Err(Denied::NotADirectory),
        }
        // Some systems answer EXIST for a directory that is not empty.
        let not_empty = |denied| if denied == Denied::Exists { Denied::NotEmpty } else { denied };
        self.charged_entry(path, || rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)).map_err(not_empty)
    }

    /// Sets the times of a file or directory in the write scope.
    pub fn set_times(&self, path: &ScopePath, accessed: NewTime, modified: NewTime) -> Result<(), Denied> {
        let operation = Operation::SetTimes;
        self.require(operation, path, Access::Write)?;
        let times = NewTime::pair(accessed, modified).ok_or(Denied::Invalid)?;
        let Some(name) = path.name() else { return Err(Denied::Invalid) };
        let parent = self.parent(operation, path)?;
        self.require_changeable(&self.look(operation, &parent, path)?, path)?;
        let fd = self
            .root
            .open_name(parent.as_fd(), Path::new(name), READ, Mode::empty())
            .map_err(|errno| self.denied(operation, path, errno))?;
        let opened = rustix::fs::fstat(&fd)?;
        if self.hidden.contains(Identity::of(&opened)) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        self.require_changeable(&opened, path)?;
        self.touch();
        Ok(rustix::fs::futimens(&fd, &times)?)
    }

    fn require_changeable(&self, stat: &Stat, path: &ScopePath) -> Result<(), Denied> {
        match Kind::of(stat) {
            Kind::Symlink => Err(self.refuse_link(Operation::SetTimes, path)),
            Kind::Special => Err(self.refuse_object(Operation::SetTimes, path, Unusable::Special)),
            Kind::File | Kind::Directory => self.require_single_name(Operation::SetTimes, path, stat),
        }
    }

    /// Returns the status of what the scope lets exist.
    fn visible(&self, operation: Operation, path: &ScopePath) -> Result<Stat, Denied> {
        self.require(operation, path, Access::Traverse)?;
        if path.is_root() {
            return Ok(rustix::fs::fstat(self.root.directory(path, &self.hidden)?)?);
        }
        let parent = self.parent(operation, path)?;
        let stat = self.look(operation, &parent, path)?;
        if self.scope.access(path) == Access::Traverse && Kind::of(&stat) != Kind::Directory {
            return Err(self.refuse_scope_of_file(operation, path));
        }
        Ok(stat)
    }

    /// Opens a directory for reading its entries.
    fn open_directory(&self, operation: Operation, path: &ScopePath) -> Result<OwnedFd, Denied> {
        let flags = READ | OFlags::DIRECTORY;
        let parent =
            if path.is_root() { self.root.directory(path, &self.hidden)? } else { self.parent(operation, path)? };
        let fd = self
            .root
            .open_name(parent.as_fd(), Path::new(path.name().unwrap_or(".")), flags, Mode::empty())
            .map_err(|errno| self.denied(operation, path, errno))?;
        if self.hidden.contains(Identity::of(&rustix::fs::fstat(&fd)?)) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        Ok(fd)
    }

    /// Looks at an entry if the listing may show it. Leaving out is not a refusal.
    fn shown(&self, directory: &OwnedFd, child: &ScopePath) -> Result<Option<Metadata>, Denied> {
        let access = self.scope.access(child);
        if access <= Access::Absent {
            return Ok(None);
        }
        let stat = match rustix::fs::statat(directory, child.name().unwrap_or("."), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = Metadata::of(&stat);
        let only_passed = access == Access::Traverse && metadata.kind != Kind::Directory;
        Ok((!only_passed && !self.hidden.contains(metadata.identity)).then_some(metadata))
    }
}
