//! Directories of a view: opening, listing, creating and removing them. Also examines and removes single entries.
//!
//! A listing shows only paths in the scope. A parent of a grant is shown only if it is a directory.

use super::View;
use super::error::ViewError;
use super::hidden::is_dot;
use super::metadata::{Identity, Kind, Metadata, NewTime};
use super::place::{Holder, last_name};
use super::refuse::{ObjectFault, Operation};
use crate::root::Root;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Maximum number of entries in a directory that is listed, including entries that the stage cannot see.
pub const LIST_ENTRIES_MAX: usize = 50_000;

/// Inode numbers that a file system returns if it does not report the number of an entry.
const UNTOLD: [u64; 2] = [0, 0xffff_ffff];

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name of the entry.
    pub name: String,
    /// The kind of the entry.
    pub kind: Kind,
    /// Size in bytes; 0 for an entry that is not a regular file, and in a listing without sizes.
    pub size: u64,
    /// The identity of the entry, if the listing reports it.
    pub identity: Option<Identity>,
}

/// A directory that is open for reading its entries.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    pub(super) fd: OwnedFd,
    device: u64,
}

/// Detail of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Name and kind.
    Kind,
    /// Name, kind and size.
    Size,
}

impl OpenDirectory {
    /// Returns the entries, including `.` and `..`.
    pub(super) fn entries(&self) -> Result<Dir, Errno> {
        Dir::read_from(&self.fd)
    }
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl View {
    /// Returns the metadata of an entry without following it.
    pub fn stat(&self, path: &ScopePath) -> Result<Metadata, ViewError> {
        self.visible(Operation::Stat, path)
    }

    /// Returns the metadata of a directory. Any other kind of entry is an error.
    pub fn directory(&self, path: &ScopePath) -> Result<Metadata, ViewError> {
        let metadata = self.visible(Operation::List, path)?;
        match metadata.kind {
            Kind::Directory => Ok(metadata),
            Kind::Symlink => Err(self.refuse_link(Operation::List, path)),
            Kind::File | Kind::Special => Err(ViewError::NotADirectory),
        }
    }

    /// Lists a directory by name. Entries that are hidden, not granted or not UTF-8 are omitted. A directory with more
    /// than [`LIST_ENTRIES_MAX`] entries is [`ViewError::TooLarge`].
    pub fn list(&self, path: &ScopePath) -> Result<Vec<DirectoryEntry>, ViewError> {
        self.listing(path, Detail::Size)
    }

    /// As [`View::list`], but without sizes. If nothing is hidden, the kinds come from the directory itself, and no
    /// entry is examined.
    pub fn kinds(&self, path: &ScopePath) -> Result<Vec<DirectoryEntry>, ViewError> {
        self.listing(path, Detail::Kind)
    }

    fn listing(&self, path: &ScopePath, detail: Detail) -> Result<Vec<DirectoryEntry>, ViewError> {
        self.require(Operation::List, path, Access::Traverse)?;
        let root = match self.files.on_disk() {
            Ok(root) => root,
            Err(layered) => return self.list_layered(layered, path, detail),
        };
        let opened = self.open_directory(root, Operation::List, path)?;
        let mut listing = Vec::new();
        for (count, entry) in opened.entries()?.enumerate() {
            let entry = entry?;
            if count >= LIST_ENTRIES_MAX + 2 {
                return Err(ViewError::TooLarge);
            }
            if is_dot(entry.file_name()) {
                continue;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            let Ok(child) = path.join(name) else { continue };
            listing.extend(self.entry(&opened, &child, name, &entry, detail)?);
        }
        listing.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Creates a directory below a folder of the write scope, at such a folder, or as a parent of a writable path.
    pub fn make_directory(&self, path: &ScopePath) -> Result<(), ViewError> {
        if !self.scope.may_create_directory(path) {
            return Err(self.refuse_scope(Operation::MakeDirectory, path));
        }
        if path.is_root() {
            return Err(ViewError::Exists);
        }
        let place = self.find(Operation::MakeDirectory, path)?;
        if place.found.is_some() {
            return Err(ViewError::Exists);
        }
        self.charged_entry(path, || place.make_directory(path))
    }

    /// Removes a file, a link or a special file in the write scope.
    pub fn unlink(&self, path: &ScopePath) -> Result<(), ViewError> {
        self.require(Operation::Remove, path, Access::Write)?;
        if path.is_root() {
            return Err(ViewError::IsADirectory);
        }
        let (place, found) = self.look(Operation::Remove, path)?;
        if found.kind == Kind::Directory {
            return Err(ViewError::IsADirectory);
        }
        match &place.holder {
            Holder::Disk(_, directory) => {
                self.charged_entry(path, || rustix::fs::unlinkat(directory, last_name(path), AtFlags::empty()))
            }
            Holder::Layer(layered, _) => {
                let shows_lower = self.shows_below(layered, Operation::Remove, path);
                self.charged_entry(path, || layered.layer().remove(path, shows_lower))
            }
        }
    }

    /// Removes an empty directory below an entry of the write scope. A directory with a hidden path below it is refused.
    pub fn remove_directory(&self, path: &ScopePath) -> Result<(), ViewError> {
        self.require(Operation::Remove, path, Access::Write)?;
        if path.is_root() {
            return Err(ViewError::Invalid);
        }
        if self.scope.hides_below(path) {
            return Err(self.refuse_below(Operation::Remove, path));
        }
        let (place, found) = self.look(Operation::Remove, path)?;
        match found.kind {
            Kind::Directory => {}
            Kind::Symlink => return Err(self.refuse_link(Operation::Remove, path)),
            Kind::File | Kind::Special => return Err(ViewError::NotADirectory),
        }
        match &place.holder {
            Holder::Disk(_, directory) => {
                let removed =
                    self.charged_entry(path, || rustix::fs::unlinkat(directory, last_name(path), AtFlags::REMOVEDIR));
                // Some systems return EEXIST for a directory that is not empty.
                removed.map_err(|denied| if denied == ViewError::Exists { ViewError::NotEmpty } else { denied })
            }
            Holder::Layer(layered, _) if self.is_empty(layered, Operation::Remove, path)? => {
                let shows_lower = self.shows_below(layered, Operation::Remove, path);
                self.charged_entry(path, || layered.layer().remove(path, shows_lower))
            }
            Holder::Layer(..) => Err(ViewError::NotEmpty),
        }
    }

    /// Sets the times of a file or directory in the write scope.
    pub fn set_times(&self, path: &ScopePath, accessed: NewTime, modified: NewTime) -> Result<(), ViewError> {
        let operation = Operation::SetTimes;
        self.require(operation, path, Access::Write)?;
        let times = NewTime::pair(accessed, modified).ok_or(ViewError::Invalid)?;
        if path.is_root() {
            return Err(ViewError::Invalid);
        }
        let (place, found) = self.look(operation, path)?;
        self.require_changeable(found, path)?;
        let (root, directory) = match &place.holder {
            Holder::Disk(root, directory) => (root, directory),
            Holder::Layer(layered, _) => {
                self.set_times_in_layer(&place, layered, path, [accessed, modified], times)?;
                self.touch();
                return Ok(());
            }
        };
        let fd = root
            .open_name(directory.as_fd(), last_name(path), READ, Mode::empty())
            .map_err(|errno| self.denied(operation, path, errno))?;
        let opened = Metadata::from_stat(&rustix::fs::fstat(&fd)?);
        if self.hidden.contains(opened.identity) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        self.require_changeable(opened, path)?;
        self.touch();
        Ok(rustix::fs::futimens(&fd, &times)?)
    }

    fn require_changeable(&self, found: Metadata, path: &ScopePath) -> Result<(), ViewError> {
        match found.kind {
            Kind::Symlink => Err(self.refuse_link(Operation::SetTimes, path)),
            Kind::Special => Err(self.refuse_object(Operation::SetTimes, path, ObjectFault::Special)),
            Kind::File | Kind::Directory => self.require_single_name(Operation::SetTimes, path, &found),
        }
    }

    /// Returns the metadata of an entry that exists in the scope.
    fn visible(&self, operation: Operation, path: &ScopePath) -> Result<Metadata, ViewError> {
        self.require(operation, path, Access::Traverse)?;
        let found = self.look(operation, path)?.1;
        if self.scope.access(path) == Access::Traverse && found.kind != Kind::Directory {
            return Err(self.refuse_scope_of_file(operation, path));
        }
        Ok(found)
    }

    /// Opens a directory for reading its entries.
    pub(super) fn open_directory(
        &self,
        root: &Root,
        operation: Operation,
        path: &ScopePath,
    ) -> Result<OpenDirectory, ViewError> {
        let parent = self.parent(root, operation, path)?;
        let fd = root
            .open_name(parent.as_fd(), last_name(path), READ | OFlags::DIRECTORY, Mode::empty())
            .map_err(|errno| self.denied(operation, path, errno))?;
        let identity = Identity::from_stat(&rustix::fs::fstat(&fd)?);
        if self.hidden.contains(identity) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        Ok(OpenDirectory { fd, device: identity.device })
    }

    /// Returns the entry of a listing, or `None` if it must not be shown.
    pub(super) fn entry(
        &self,
        directory: &OpenDirectory,
        child: &ScopePath,
        name: &str,
        entry: &DirEntry,
        detail: Detail,
    ) -> Result<Option<DirectoryEntry>, ViewError> {
        let shown = |kind, size, identity| Some(DirectoryEntry { name: name.to_owned(), kind, size, identity });
        // If objects are hidden, each entry must be examined, because a hidden object may have another name here.
        if detail == Detail::Kind && self.hidden.is_empty() && entry.file_type() != FileType::Unknown {
            let kind = Kind::from_type(entry.file_type());
            let access = self.scope.access(child);
            let may_show = access > Access::Traverse || (access == Access::Traverse && kind == Kind::Directory);
            // A directory may be a mount point. The number in the listing is then not that of the mounted directory.
            let is_told = kind != Kind::Directory && !UNTOLD.contains(&entry.ino());
            let identity = is_told.then(|| Identity { device: directory.device, inode: entry.ino() });
            return Ok(shown(kind, 0, identity).filter(|_| may_show));
        }
        let found = self.shown(directory, child)?;
        Ok(found.and_then(|Metadata { kind, size, identity, .. }| shown(kind, size, Some(identity))))
    }

    /// Returns the metadata of an entry, or `None` if the listing must not show it. Omitting it is not a refusal.
    fn shown(&self, directory: &OpenDirectory, child: &ScopePath) -> Result<Option<Metadata>, ViewError> {
        let access = self.scope.access(child);
        if access <= Access::Absent {
            return Ok(None);
        }
        let stat = match rustix::fs::statat(&directory.fd, child.name().unwrap_or("."), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = Metadata::from_stat(&stat);
        let only_passed = access == Access::Traverse && metadata.kind != Kind::Directory;
        Ok((!only_passed && !self.hidden.contains(metadata.identity)).then_some(metadata))
    }
}
