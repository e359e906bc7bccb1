//! Moves the content of a folder of a lower layer to a new folder at the same path.
//!
//! Each entry is renamed, which keeps its content, permissions, times and hard links; only folders are created anew. The
//! whole folder is examined first, so that a folder that contains a mount or cannot be emptied stays as it is. After an
//! error the content is moved back.
#![forbid(unsafe_code)]

use super::caller::CallerPath;
use crate::raw;
use crate::seccomp::RENAME_MARK;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, StatxAttributes, StatxFlags, Timespec, Timestamps, fchmod, fstat,
    futimens, mkdirat, openat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{geteuid, getpid};
use std::ffi::CString;

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

/// Makes a folder movable. A folder that is movable already stays as it is.
pub(super) fn make_movable(folder: &CallerPath, device: u64) -> Result<(), Errno> {
    let (parent, name) = folder.parent()?;
    let name = CString::new(name.as_encoded_bytes()).map_err(|_| Errno::INVAL)?;
    let old = open_folder(&parent, &name)?;
    let before = fstat(&old)?;
    if !is_merged(&old, &before)? {
        return Ok(());
    }
    let mut left = ENTRIES_MAX;
    examine(&old, device, 0, &mut left)?;
    let new_name = CString::new(format!("{NEW_PREFIX}{}", getpid().as_raw_nonzero())).map_err(|_| Errno::INVAL)?;
    mkdirat(&parent, &new_name, Mode::RWXU)?;
    let new = open_folder(&parent, &new_name)?;
    let moved = replace(&parent, &name, (&old, &new)).and_then(|()| {
        keep_metadata(&before, &new)?;
        raw::rename_marked(&parent, &new_name, &parent, &name, RENAME_MARK)
    });
    if moved.is_err() {
        // If the old folder has been removed already, the content stays in the new one, under the old name if possible.
        let _ = mkdirat(&parent, &name, Mode::RWXU);
        let _ = open_folder(&parent, &name).and_then(|old| move_content(&new, &old, 0));
        let _ = unlinkat(&parent, &new_name, AtFlags::REMOVEDIR);
    }
    moved
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
        match mkdirat(to, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let (old, new) = (open_folder(from, &name)?, open_folder(to, &name)?);
        let before = fstat(&old)?;
        move_content(&old, &new, depth + 1)?;
        keep_metadata(&before, &new)?;
        match unlinkat(from, &name, AtFlags::REMOVEDIR) {
            // What another process wrote meanwhile is moved with the next try.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives a new folder the permissions and times that the old one had before it was emptied.
fn keep_metadata(before: &Stat, new: &OwnedFd) -> Result<(), Errno> {
    fchmod(new, Mode::from_raw_mode(before.st_mode & PERMISSIONS))?;
    futimens(new, &times(before))
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
