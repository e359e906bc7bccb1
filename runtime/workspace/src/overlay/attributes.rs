//! Extended attributes with which an overlay marks files and directories, and detection of attributes that a program
//! could have forged.
//!
//! New kernels escape attributes that a program in an overlay sets; older ones may not. So an unknown attribute is treated as
//! forged.

use crate::tree::{self, Owner, WalkEntry};
use rustix::fs::{FileType, XattrFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The attribute of a directory that hides all entries of lower layers.
const OPAQUE: &str = "user.overlay.opaque";
/// Attributes of the kernel that do not affect content.
const HARMLESS: &[&[u8]] = &[
    b"user.overlay.origin",
    b"user.overlay.impure",
    b"user.overlay.nlink",
    b"user.overlay.upper",
    b"user.overlay.uuid",
    b"user.overlay.protattr",
];
/// Prefix of the attributes that an overlay reads.
const PREFIX: &[u8] = b"user.overlay.";
/// Prefix of attributes that a program set and that the kernel escaped.
const ESCAPED: &[u8] = b"user.overlay.overlay.";

/// The mark that the attributes of a directory or file represent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    Opaque,
    Forged,
}

/// Marks a directory as opaque: no lower entries show in it.
pub(crate) fn set_opaque(directory: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())?)
}

/// Removes every attribute of a file that an overlay reads.
pub(crate) fn remove_overlay_attributes(file: &File) -> io::Result<()> {
    let found = names(&mut |space| rustix::fs::flistxattr(file, space))?;
    found.iter().filter(|name| name.starts_with(PREFIX)).try_for_each(|name| {
        let removed = rustix::fs::fremovexattr(file, name.as_slice());
        removed.or_else(|error| if error == Errno::NODATA { Ok(()) } else { Err(error.into()) })
    })
}

/// Reads the mark of an entry. Only directories and regular files have attributes.
pub(crate) fn mark_of(entry: &WalkEntry<'_>) -> io::Result<Mark> {
    match entry.kind() {
        // The directory is opened first, which restores read permission. Without it, attributes cannot be read.
        FileType::Directory => {
            let held = tree::open_directory(entry.directory, entry.name, Owner::ThisProgram)?;
            mark(held.as_fd(), OsStr::new("."), FileType::Directory)
        }
        FileType::RegularFile => mark(entry.directory, entry.name, FileType::RegularFile),
        _ => Ok(Mark::Plain),
    }
}

/// Reads the mark of a name in a directory. Links are not followed.
pub(crate) fn mark(directory: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> io::Result<Mark> {
    let mut mark = Mark::Plain;
    for found in attributes(directory, name)?.iter().filter(|found| found.starts_with(PREFIX)) {
        if kind == FileType::Directory && found == OPAQUE.as_bytes() && is_opaque(&held(directory, name))? {
            mark = Mark::Opaque;
        } else if !found.starts_with(ESCAPED) && !HARMLESS.contains(&found.as_slice()) {
            return Ok(Mark::Forged);
        }
    }
    Ok(mark)
}

/// Returns a path to a name in an open directory.
fn held(directory: BorrowedFd<'_>, name: &OsStr) -> OsString {
    let mut at = OsString::from(format!("/proc/self/fd/{}/", directory.as_raw_fd()));
    at.push(name);
    at
}

/// Lists the attributes of a name in a directory. Links are not followed.
fn attributes(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let at = held(directory, name);
    names(&mut |space| rustix::fs::llistxattr(&at, space))
}

/// Lists names of attributes, in a buffer that grows as needed.
fn names(list: &mut dyn FnMut(&mut [u8]) -> Result<usize, Errno>) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0_u8; 512];
    let length = loop {
        match list(&mut names[..]) {
            Err(Errno::RANGE) => names.resize(names.len() * 4, 0),
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            other => break other?,
        }
    };
    let found = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(found.map(<[u8]>::to_vec).collect())
}

fn is_opaque(at: &OsStr) -> io::Result<bool> {
    let mut value = [0_u8; 8];
    match rustix::fs::lgetxattr(at, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
