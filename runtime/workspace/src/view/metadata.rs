//! The metadata of a file or directory that a view shows, and new values for times.
//!
//! A view does not show owners, modes, or the device numbers of special files.

use crate::layer::content::Content;
use crate::layer::nodes::DirectoryState;
use rustix::fs::{FileType, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Device and inode. They identify an object independently of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl Identity {
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link. It is shown and never followed.
    Symlink,
    /// A FIFO, socket or device. It is shown and never opened.
    Special,
}

impl Kind {
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self::from_type(FileType::from_raw_mode(stat.st_mode))
    }

    pub(super) fn from_type(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

/// The metadata of an object that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The kind of the object.
    pub kind: Kind,
    /// Size in bytes; 0 for an object that is not a regular file.
    pub size: u64,
    /// Number of hard links.
    pub links: u64,
    /// The identity of the object.
    pub identity: Identity,
    /// Time of the last access; `None` before 1970.
    pub accessed: Option<SystemTime>,
    /// Time of the last change of the content; `None` before 1970.
    pub modified: Option<SystemTime>,
    /// Time of the last change of the content or the status; `None` before 1970.
    pub changed: Option<SystemTime>,
}

impl Metadata {
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let kind = Kind::from_stat(stat);
        let file_size = || u64::try_from(stat.st_size).unwrap_or(0);
        Self {
            kind,
            size: if kind == Kind::File { file_size() } else { 0 },
            links: link_count(stat),
            identity: Identity::from_stat(stat),
            accessed: time(i128::from(stat.st_atime), i128::from(stat.st_atime_nsec)),
            modified: time(i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec)),
            changed: time(i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec)),
        }
    }
}

/// Device number of objects that exist only in a layer.
const LAYER_DEVICE: u64 = u64::MAX;

impl Metadata {
    /// Returns the metadata of a file in a layer. It has one hard link, and its identity does not change when its content is moved.
    pub(super) fn for_content(content: &Content) -> Result<Self, Errno> {
        let identity = Identity { device: LAYER_DEVICE, inode: content.number };
        Ok(Self { links: 1, identity, ..Self::from_stat(&content.stat()?) })
    }

    /// Returns the metadata of a directory that exists only in a layer.
    pub(super) fn for_directory(seen: DirectoryState) -> Self {
        let identity = Identity { device: LAYER_DEVICE, inode: seen.number };
        let bare =
            Self { kind: Kind::Directory, size: 0, links: 2, identity, accessed: None, modified: None, changed: None };
        bare.changed_by(seen)
    }

    /// Returns the metadata of a link in a layer.
    pub(super) fn for_link() -> Self {
        let identity = Identity { device: LAYER_DEVICE, inode: 0 };
        Self { kind: Kind::Symlink, size: 0, links: 1, identity, accessed: None, modified: None, changed: None }
    }

    /// Returns the metadata of a lower directory whose entries or times were changed in the layer.
    pub(super) fn changed_by(self, seen: DirectoryState) -> Self {
        let times = seen.times.unwrap_or_default();
        let (accessed, modified) = (times.accessed.or(self.accessed), times.modified.or(self.modified));
        Self { accessed, modified, changed: times.modified.or(self.changed), ..self }
    }
}

#[expect(clippy::useless_conversion, reason = "narrower than 64 bits on some targets")]
fn link_count(stat: &Stat) -> u64 {
    u64::from(stat.st_nlink)
}

fn time(seconds: i128, nanoseconds: i128) -> Option<SystemTime> {
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// A new value for one of a file's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewTime {
    /// The time does not change.
    Keep,
    /// The time is set to the host's current time.
    Now,
    /// The time is set to this duration since 1970.
    At(Duration),
}

impl NewTime {
    fn timespec(self) -> Option<Timespec> {
        Some(match self {
            Self::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            Self::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            Self::At(since) => {
                Timespec { tv_sec: since.as_secs().try_into().ok()?, tv_nsec: since.subsec_nanos().into() }
            }
        })
    }

    /// Returns the time to set, or `None` if it does not change.
    pub(super) fn time(self) -> Option<SystemTime> {
        match self {
            Self::Keep => None,
            Self::Now => Some(SystemTime::now()),
            Self::At(since) => UNIX_EPOCH.checked_add(since),
        }
    }

    /// Pairs two times for the system call. Returns `None` if one is out of range.
    pub(super) fn pair(accessed: Self, modified: Self) -> Option<Timestamps> {
        Some(Timestamps { last_access: accessed.timespec()?, last_modification: modified.timespec()? })
    }
}
