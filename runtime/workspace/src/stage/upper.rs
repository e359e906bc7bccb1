//! Finds the changes of a stage in the upper folder of its overlay.
//!
//! The walk covers only that folder, by descriptor, and follows nothing. A whiteout or an opaque directory removes only what the
//! stage saw below it; hidden files stay. Overlay attributes that a program forged are refused. New kernels escape such
//! attributes, older ones may not.

use super::compare::{Comparison, Now};
use super::findings::{self, Met};
use super::lower_entry::Lookup;
use super::overlay::Overlay;
use super::{ChangeRules, Examined, StageError, mask};
use crate::found::Op;
use crate::tree::{self, Owner, WalkEntry};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Attributes of the kernel that do not affect content.
const HARMLESS: &[&[u8]] = &[
    b"user.overlay.origin",
    b"user.overlay.impure",
    b"user.overlay.nlink",
    b"user.overlay.upper",
    b"user.overlay.uuid",
    b"user.overlay.protattr",
];
/// Beginning of the attributes an overlay reads.
const PREFIX: &[u8] = b"user.overlay.";
/// Beginning of the attributes a program set and the kernel moved out of the way.
const ESCAPED: &[u8] = b"user.overlay.overlay.";

/// Finds what the stage changed, sorted by path, what was removed first.
pub(super) fn changes(overlay: &Overlay, rules: ChangeRules<'_>) -> Result<Examined, StageError> {
    let lookup = Lookup::new(&overlay.lower);
    let mut search = Search { overlay, comparison: Comparison::new(&lookup, rules), forged: HashSet::new() };
    search.check_top().map_err(|source| StageError::io(Path::new(""), source))?;
    tree::walk(&overlay.upper, &mut |entry| search.compare(entry))?;
    search.comparison.finish()
}

struct Search<'s> {
    overlay: &'s Overlay,
    comparison: Comparison<'s>,
    /// Directories with forged attributes, whose content is unknown.
    forged: HashSet<PathBuf>,
}

/// The meaning of the attributes of a directory or file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Plain,
    Opaque,
    Forged,
}

impl Search<'_> {
    /// The kernel marks the top in no way that matters.
    fn check_top(&mut self) -> io::Result<()> {
        let top = self.overlay.upper.directory(Path::new(""))?;
        if mark(top.as_fd(), OsStr::new("."), FileType::Directory)? != Mark::Plain {
            self.forged.insert(PathBuf::new());
        }
        Ok(())
    }

    /// Compares one entry of the upper folder with what the stage saw there. Returns whether to descend into it.
    fn compare(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        let met = Met::of(entry);
        self.comparison.findings.check_size(met)?;
        let failed = |source: io::Error| StageError::io(entry.path, source);
        let mark = mark_of(entry).map_err(failed)?;
        if mark == Mark::Forged || self.forged.contains(entry.path.parent().unwrap_or(Path::new(""))) {
            self.comparison.findings.seen.insert(entry.path.to_owned());
            return self.refuse(entry);
        }
        if is_whiteout(entry) {
            self.comparison.removed(entry.path);
            return Ok(false);
        }
        let now = match entry.kind() {
            FileType::Directory if entry.stat.st_dev != self.overlay.device => {
                Now::Special(Op::Special { kind: "mount point" })
            }
            FileType::Directory => Now::Directory { shows_lower: mark == Mark::Plain },
            FileType::RegularFile => Now::File(&|| tree::open_regular(entry.directory, entry.name, Owner::Us)),
            FileType::Symlink => Now::Link(entry.target().map_err(failed)?),
            other => Now::Special(findings::special(other)),
        };
        let descends = matches!(now, Now::Directory { .. });
        self.comparison.compare(met, now)?;
        Ok(descends)
    }

    /// Refuses an entry in or below something forged: it may differ from what the stage saw.
    fn refuse(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        let findings = &mut self.comparison.findings;
        let op = match entry.kind() {
            FileType::Directory => Op::MakeDir,
            FileType::RegularFile => {
                findings.count_bytes(Met::of(entry))?;
                Met::of(entry).write()
            }
            FileType::Symlink => findings::link(&entry.target().map_err(|source| StageError::io(entry.path, source))?),
            _ if is_whiteout(entry) => Op::Delete,
            other => findings::special(other),
        };
        findings.refuse_forged(entry.path, op)?;
        if entry.kind() == FileType::Directory {
            self.forged.insert(entry.path.to_owned());
        }
        Ok(entry.kind() == FileType::Directory && entry.stat.st_dev == self.overlay.device)
    }
}

/// True for the kernel's mark of a removed file.
fn is_whiteout(entry: &WalkEntry<'_>) -> bool {
    entry.kind() == FileType::CharacterDevice && entry.stat.st_rdev == 0
}

/// Removes every attribute of a file that an overlay could read.
pub(crate) fn remove_overlay_attributes(file: &File) -> io::Result<()> {
    let found = names(&mut |space| rustix::fs::flistxattr(file, space))?;
    found.iter().filter(|name| name.starts_with(PREFIX)).try_for_each(|name| {
        let removed = rustix::fs::fremovexattr(file, name.as_slice());
        removed.or_else(|error| if error == Errno::NODATA { Ok(()) } else { Err(error.into()) })
    })
}

/// Reads the attributes of an entry; only directories and regular files have any.
fn mark_of(entry: &WalkEntry<'_>) -> io::Result<Mark> {
    match entry.kind() {
        // Opened for us first: without read permission no attribute can be read.
        FileType::Directory => {
            let held = tree::open_directory(entry.directory, entry.name, Owner::Us)?;
            mark(held.as_fd(), OsStr::new("."), FileType::Directory)
        }
        FileType::RegularFile => mark(entry.directory, entry.name, FileType::RegularFile),
        _ => Ok(Mark::Plain),
    }
}

/// Reads the attributes of a name in a directory; does not follow links.
fn mark(directory: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> io::Result<Mark> {
    let mut mark = Mark::Plain;
    for found in attributes(directory, name)?.iter().filter(|found| found.starts_with(PREFIX)) {
        if kind == FileType::Directory && found == mask::OPAQUE.as_bytes() && is_opaque(&held(directory, name))? {
            mark = Mark::Opaque;
        } else if !found.starts_with(ESCAPED) && !HARMLESS.contains(&found.as_slice()) {
            return Ok(Mark::Forged);
        }
    }
    Ok(mark)
}

/// The path of a name in a directory that is held open.
fn held(directory: BorrowedFd<'_>, name: &OsStr) -> OsString {
    let mut at = OsString::from(format!("/proc/self/fd/{}/", directory.as_raw_fd()));
    at.push(name);
    at
}

/// The names of the attributes of a name in a directory; does not follow links.
fn attributes(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let at = held(directory, name);
    names(&mut |space| rustix::fs::llistxattr(&at, space))
}

/// Lists names of attributes, with as much space as they need.
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
    match rustix::fs::lgetxattr(at, mask::OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
