//! Moves the content of a folder of a lower layer to a new folder at the same path.
//!
//! Each entry is renamed, which keeps its content, permissions, times and hard links; only folders are created anew. The
//! whole folder is examined first, so that a folder that contains a mount or cannot be emptied stays as it is. After an
//! error the content is moved back, by this process or another one.
#![forbid(unsafe_code)]

use crate::raw;
use crate::seccomp::RENAME_MARK;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, StatxAttributes, StatxFlags, Timespec, Timestamps, fchmod, fstat,
    futimens, mkdirat, openat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{CString, OsStr};

/// Maximum number of entries in a folder that is made movable, at all depths.
const ENTRIES_MAX: u32 = 200_000;
/// Maximum depth of a folder that is made movable.
const DEPTH_MAX: u32 = 64;
/// Number of tries, because another process may write to the folder meanwhile.
const TRIES: u32 = 3;
/// Permissions of a new folder: those of the old one, without set-id bits, which the filters refuse.
const PERMISSIONS: u32 = 0o1777;
/// Beginning of the name of the new folder until it replaces the old one.
const NEW_PREFIX: &str = ".glovebox-moved-";

/// A folder that a call renames.
#[derive(Debug)]
pub(super) struct FolderEntry {
    /// The folder that contains it. It is opened once, so a path that changes meanwhile cannot separate a move from its
    /// rollback.
    parent: OwnedFd,
    name: CString,
    /// Name of the new folder until it replaces the old one. No other call has it.
    temporary: CString,
}

impl FolderEntry {
    /// Names an entry of a folder. The id of the call and the position in it must be unique in the jail.
    pub(super) fn new(parent: OwnedFd, name: &OsStr, call: u64, index: usize) -> Option<Self> {
        let name = CString::new(name.as_encoded_bytes()).ok()?;
        let temporary = CString::new(format!("{NEW_PREFIX}{call:x}-{index}")).ok()?;
        Some(Self { parent, name, temporary })
    }
}

/// Makes a folder movable. A folder that is movable already stays as it is. After an error, [`restore`] must follow.
pub(super) fn make_movable(folder: &FolderEntry, device: u64) -> Result<(), Errno> {
    let FolderEntry { parent, name, temporary } = folder;
    let old = open_folder(parent, name)?;
    let before = fstat(&old)?;
    if !is_merged(&old, &before)? {
        return Ok(());
    }
    let mut left = ENTRIES_MAX;
    examine(&old, device, 0, &mut left)?;
    mkdirat(parent, temporary, permissions(&before))?;
    let new = open_folder(parent, temporary)?;
    // The permissions are set first, because a rollback in another process can take them only from here.
    fchmod(&new, permissions(&before))?;
    replace(parent, name, (&old, &new))?;
    futimens(&new, &times(&before))?;
    raw::rename_marked(parent, temporary, parent, name, RENAME_MARK)
}

/// Undoes a move that has failed or whose process was killed. If the old folder has been removed already, the new one
/// has the whole content and replaces it. Fails if content may be left in the new folder.
pub(super) fn restore(folder: &FolderEntry) -> Result<(), Errno> {
    let FolderEntry { parent, name, temporary } = folder;
    let new = match open_folder(parent, temporary) {
        Err(Errno::NOENT) => return Ok(()),
        new => new?,
    };
    match open_folder(parent, name) {
        Err(Errno::NOENT) => raw::rename_marked(parent, temporary, parent, name, RENAME_MARK),
        old => {
            move_content(&new, &old?, 0)?;
            unlinkat(parent, temporary, AtFlags::REMOVEDIR)
        }
    }
}

/// Moves the content of the old folder to the new one, and removes the old one.
fn replace(parent: &OwnedFd, name: &CString, (old, new): (&OwnedFd, &OwnedFd)) -> Result<(), Errno> {
    for _ in 0..TRIES {
        move_content(old, new, 0)?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return removed,
        }
    }
    Err(Errno::NOTEMPTY)
}

/// Returns true for a folder to which a lower layer contributes. Setting its times to the same values creates it in the
/// upper layer too, and for a folder in both, an overlay counts one link.
fn is_merged(folder: &OwnedFd, before: &Stat) -> Result<bool, Errno> {
    futimens(folder, &times(before))?;
    Ok(fstat(folder)?.st_nlink == 1)
}

/// Checks that a folder and everything below it can be moved: one file system, no mount, folders that their owner may
/// change.
fn examine(folder: &OwnedFd, device: u64, depth: u32, left: &mut u32) -> Result<(), Errno> {
    if depth > DEPTH_MAX {
        return Err(Errno::XDEV);
    }
    let stat = fstat(folder)?;
    let is_mine = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o700 == 0o700;
    if stat.st_dev != device || !is_mine {
        return Err(Errno::XDEV);
    }
    for (name, kind) in entries(folder)? {
        *left = left.checked_sub(1).ok_or(Errno::XDEV)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = statx(folder, &name, flags, StatxFlags::TYPE)?;
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Err(Errno::XDEV);
        }
        if kind == FileType::Directory {
            examine(&open_folder(folder, &name)?, device, depth + 1, left)?;
        }
    }
    Ok(())
}

/// Moves all entries of a folder to another one.
fn move_content(from: &OwnedFd, to: &OwnedFd, depth: u32) -> Result<(), Errno> {
    if depth > DEPTH_MAX + 1 {
        return Err(Errno::XDEV);
    }
    for (name, kind) in entries(from)? {
        match raw::rename_marked(from, &name, to, &name, RENAME_MARK) {
            // A folder that is in the upper layer alone is moved whole. Any other one is created anew.
            Err(Errno::XDEV | Errno::NOTEMPTY | Errno::EXIST) if kind == FileType::Directory => {}
            // Another process has removed it.
            Err(Errno::NOENT) => continue,
            moved => {
                moved?;
                continue;
            }
        }
        let old = open_folder(from, &name)?;
        let before = fstat(&old)?;
        let is_new = match mkdirat(to, &name, permissions(&before)) {
            Ok(()) => true,
            // The folder is left from an earlier try or, in a rollback, from before the move. It keeps its permissions.
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error),
        };
        let new = open_folder(to, &name)?;
        if is_new {
            fchmod(&new, permissions(&before))?;
        }
        move_content(&old, &new, depth + 1)?;
        if is_new {
            futimens(&new, &times(&before))?;
        }
        match unlinkat(from, &name, AtFlags::REMOVEDIR) {
            // What another process wrote meanwhile is moved with the next try.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn permissions(old: &Stat) -> Mode {
    Mode::from_raw_mode(old.st_mode & PERMISSIONS)
}

#[expect(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as i64, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime as i64, tv_nsec: stat.st_mtime_nsec as _ },
    }
}

fn open_folder(parent: impl AsFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

fn entries(folder: &OwnedFd) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            entries.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(entries)
}
