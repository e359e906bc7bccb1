//! A folder with an open descriptor: opening paths below it, walking it, and emptying it.
//!
//! Even with hostile content, nothing here follows a symbolic link or leaves the folder: every name is resolved beneath one open
//! descriptor, nothing recurses without a bound, and no operation blocks on a FIFO. This module does not know scopes.

mod remove;

pub use remove::remove_all;
pub(crate) use remove::{clear, remove};

use crate::beneath::{How, Walker};
use glovebox_names::visible;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Maximum length in bytes of a relative path in one system call.
pub const PATH_BYTES_MAX: u64 = 4095;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
const CAREFUL: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// The owner of the files in a folder. It decides how files that cannot be read are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Glovebox. Commands may have removed permissions, so they are restored.
    ThisProgram,
    /// The user or another program. Permissions are not changed.
    Other,
}

/// A folder with an open descriptor.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    walker: Walker,
    pub(crate) owner: Owner,
}

impl Tree {
    /// Opens an existing folder. Links in `path` are followed, because the caller trusts the path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(path, DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, walker: Walker::new(), owner: Owner::Other })
    }

    /// Creates a new folder that only this user can enter.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        rustix::fs::mkdir(path, Mode::RWXU)?;
        Ok(Self { owner: Owner::ThisProgram, ..Self::open(path)? })
    }

    /// Opens a directory below the folder as a separate tree.
    pub(crate) fn below(&self, path: &Path) -> io::Result<Self> {
        Ok(Self { root: self.directory(path)?, walker: Walker::new(), owner: self.owner })
    }

    /// Returns another descriptor of the folder.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    /// Returns the device and inode numbers of the folder.
    pub(crate) fn inode(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.root)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Opens a directory below the folder. The empty path is the folder itself.
    pub fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // In folders that programs wrote, mount points are never crossed.
        let how = How { one_mount: self.owner == Owner::ThisProgram, ..How::existing(DIRECTORY | CAREFUL) };
        Ok(self.walker.open(self.root.as_fd(), path, how)?)
    }

    /// Opens a regular file below the folder for reading.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        open_regular(&parent, name, self.owner)
    }

    /// Opens the parent directory of `path` and returns it with the last name of `path`.
    pub(crate) fn parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Returns the status of a path, or `None` if the path or a directory in it is missing.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        match self.parent(path) {
            Ok((parent, name)) => stat_at(&parent, name),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the status of a path, or `None` if the path or a directory in it is missing or a directory in it is a link.
    pub(crate) fn stat_below_folders(&self, path: &Path) -> io::Result<Option<Stat>> {
        match self.stat(path) {
            Err(error) if is_unreachable(&error) => Ok(None),
            other => other,
        }
    }
}

/// Returns true if an error means that the path or a directory in it does not exist.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns true if an error means that nothing exists at a path when links are not followed: the path does not exist,
/// or a part of it is a link.
pub(crate) fn is_unreachable(error: &io::Error) -> bool {
    is_absent(error) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Returns the metadata of a name, without following links.
pub fn stat_at(directory: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file by its name without blocking. Any other kind of entry is an error.
pub(crate) fn open_regular(directory: impl AsFd, name: &OsStr, owner: Owner) -> io::Result<File> {
    let directory = directory.as_fd();
    let open = || rustix::fs::openat(directory, name, OFlags::RDONLY | CAREFUL, Mode::empty());
    let file = match open() {
        Err(Errno::ACCESS) if owner == Owner::ThisProgram => {
            make_readable(directory, name, Mode::RUSR | Mode::WUSR)?;
            open()?
        }
        other => other?,
    };
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no longer a regular file"));
    }
    Ok(File::from(file))
}

/// Opens a directory by its name. A link is an error. If Glovebox owns the directory, its permissions are restored.
pub(crate) fn open_directory(directory: impl AsFd, name: &OsStr, owner: Owner) -> io::Result<OwnedFd> {
    let directory = directory.as_fd();
    let open = || rustix::fs::openat(directory, name, DIRECTORY | CAREFUL, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) if owner == Owner::ThisProgram => {
            make_readable(directory, name, Mode::RWXU)?;
            return Ok(open()?);
        }
        other => other?,
    };
    if owner == Owner::ThisProgram {
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode & 0o777);
        if !mode.contains(Mode::RWXU) {
            rustix::fs::fchmod(&opened, mode | Mode::RWXU)?;
        }
    }
    Ok(opened)
}

/// Adds permissions to a file or directory of Glovebox. They are changed through a descriptor, so that the target
/// of a link is never changed.
fn make_readable(directory: impl AsFd, name: &OsStr, add: Mode) -> io::Result<()> {
    let held = rustix::fs::openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = rustix::fs::fstat(&held)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::from_raw_mode(stat.st_mode & 0o777) | add)?;
    Ok(())
}

/// An entry that [`walk`] visits.
pub(crate) struct WalkEntry<'w> {
    /// Path relative to the walked folder.
    pub(crate) path: &'w Path,
    /// The parent directory of the entry.
    pub(crate) directory: BorrowedFd<'w>,
    /// The name of the entry in `directory`.
    pub(crate) name: &'w OsStr,
    /// The status of the entry when it was visited.
    pub(crate) stat: Stat,
    /// Depth of the entry; 1 for entries directly in the walked folder.
    pub(crate) depth: u32,
}

impl WalkEntry<'_> {
    /// Returns the kind of the entry.
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns the target of a link.
    pub(crate) fn target(&self) -> io::Result<OsString> {
        read_link(self.directory, self.name)
    }
}

/// Returns the target of a link.
pub(crate) fn read_link(directory: impl AsFd, name: &OsStr) -> io::Result<OsString> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(OsStr::from_bytes(target.to_bytes()).to_owned())
}

/// Visits every entry once, a directory before its content. `visit` returns whether to descend into a directory.
/// Entries that are removed during the walk are skipped. The number of open descriptors does not depend on the depth.
pub(crate) fn walk<E: From<WalkError>>(
    tree: &Tree,
    visit: &mut dyn FnMut(&WalkEntry<'_>) -> Result<bool, E>,
) -> Result<(), E> {
    let mut pending = vec![(PathBuf::new(), 0_u32)];
    while let Some((path, depth)) = pending.pop() {
        let failed = |source: io::Error| E::from(WalkError { path: path.clone(), source });
        let directory = if path.as_os_str().is_empty() {
            tree.directory(&path).map_err(failed)?
        } else {
            let (parent, name) = tree.parent(&path).map_err(failed)?;
            open_directory(&parent, name, tree.owner).map_err(failed)?
        };
        let mut directory = Dir::new(directory).map_err(|error| failed(error.into()))?;
        while let Some(entry) = directory.read() {
            let entry = entry.map_err(|error| failed(error.into()))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let directory = directory.fd().map_err(|error| failed(error.into()))?;
            let Some(stat) = stat_at(directory, name).map_err(failed)? else { continue };
            let path = path.join(name);
            let entry = WalkEntry { path: &path, directory, name, stat, depth: depth + 1 };
            if visit(&entry)? && entry.kind() == FileType::Directory {
                pending.push((path, depth + 1));
            }
        }
    }
    Ok(())
}

/// Lists the names in a directory.
pub(crate) fn names(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The path at which a walk failed, and the error.
#[derive(Debug)]
pub(crate) struct WalkError {
    /// Path relative to the walked folder.
    pub(crate) path: PathBuf,
    /// The system's error.
    pub(crate) source: io::Error,
}

/// Returns the disk usage of a folder in bytes. Links are not followed. A file with several hard links is counted once. Entries that
/// are removed during the walk are not counted.
///
/// # Errors
///
/// Fails if a folder cannot be read.
pub fn bytes_on_disk(path: &Path) -> io::Result<u64> {
    const BLOCK_BYTES: u64 = 512;
    let tree = Tree::open(path)?;
    let (mut bytes, mut linked) = (0_u64, HashSet::new());
    walk::<WalkError>(&tree, &mut |entry| {
        if entry.stat.st_nlink == 1
            || entry.kind() == FileType::Directory
            || linked.insert((entry.stat.st_dev, entry.stat.st_ino))
        {
            bytes = bytes.saturating_add(u64::try_from(entry.stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES));
        }
        Ok(true)
    })
    .map_err(|error| error.source)?;
    Ok(bytes)
}

/// The state of a file as returned by `stat`, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    mode: u32,
}

impl Stamp {
    /// Creates the stamp from a `stat` result.
    #[expect(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self {
            bytes: length(stat),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// Returns the change time of the file's inode, in seconds and nanoseconds.
    pub(crate) fn changed(&self) -> (i64, i64) {
        self.changed
    }
}

/// Returns the length of a file in bytes.
pub fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Returns true if the owner may execute a file with this mode.
pub(crate) fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o100 != 0
}

/// Returns the mode of a new file: one of two modes, with or without execute permission. It never has set-id bits.
pub(crate) fn file_mode(executable: bool) -> Mode {
    Mode::from_raw_mode(if executable { 0o755 } else { 0o644 })
}

/// Returns the permissions of a file for a copy of it, without set-id bits. The owner can always read the copy.
pub(crate) fn copied_mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o777 | 0o400)
}

/// The mode of new directories.
pub(crate) const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// The permissions in a mode, without set-id bits.
pub(crate) const PERMISSIONS: u32 = 0o777;

/// Returns the permissions of a directory for a copy of it. The owner can always read, change and enter the copy.
pub(crate) fn copied_directory_mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o777) | Mode::RWXU
}

/// Permissions that no stage can give to a file or directory that it creates: writing for the group and others, and
/// set-id bits.
const NEVER_GIVEN: u32 = !0o755;

/// Returns the permissions of a new file or directory, if they are not the usual ones ([`file_mode`],
/// [`DIRECTORY_MODE`]). The owner can always read it and enter a directory.
pub(crate) fn unusual_mode(stat: &Stat) -> Option<u32> {
    let (always, usual) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => (0o400, file_mode(is_executable(stat))),
        FileType::Directory => (0o500, DIRECTORY_MODE),
        _ => return None,
    };
    let mode = stat.st_mode & !NEVER_GIVEN | always;
    (mode != usual.as_raw_mode()).then_some(mode)
}

/// Creates a new regular file. An existing name is an error.
pub(crate) fn create_file(directory: impl AsFd, name: &OsStr, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, mode)?))
}

/// Returns a printable path. Bytes that are not UTF-8, and characters that could control a terminal or reorder text, are escaped.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&visible::line(chunk.valid()));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Reads until the buffer is full or the source ends. Returns the number of bytes.
pub(crate) fn read_full(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match from.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Sets the times of a file to those of another one. Build tools compare times; a copy that is newer than its outputs
/// would be built again.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
pub(crate) fn keep_times(file: impl AsFd, stat: &Stat) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as i64, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime as i64, tv_nsec: stat.st_mtime_nsec as _ },
    };
    Ok(rustix::fs::futimens(file, &times)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_for_people_cannot_drive_a_terminal() {
        let path = Path::new(OsStr::from_bytes(b"a\n\x1b[2J\xff\xe2\x80\xae\xc3\xa9"));
        assert_eq!(shown(path), "a\\n\\x1b[2J\\xff\\u{202e}\u{e9}");
    }
}
