//! What a stage changed in its overlay, read from the folder that took the changes.
//!
//! Only that folder is walked, by descriptor and without following anything. A whiteout or an opaque directory there means
//! that what the stage saw below is gone, and only that: what it could not see stays. Attributes with which a program could
//! make the folder say something else are refused; a kernel that knows them escapes them, an older one may not.

use super::findings::{self, Findings, same_content};
use super::judge::Kind;
use super::lower_entry::{Lookup, LowerEntry};
use super::overlay::Overlay;
use super::{StageError, mask};
use crate::found::{ChangeLimits, Found, Op};
use crate::protect::Protected;
use crate::tree::{self, Owner, WalkEntry};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Attributes of the kernel's own that say nothing about content.
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
const FORGED: &str = "it has an overlay attribute that only a forger sets";

/// Finds what the stage changed, sorted by path, what was removed first.
pub(super) fn changes(
    overlay: &Overlay,
    limits: &ChangeLimits,
    protected: &Protected,
) -> Result<Vec<Found>, StageError> {
    let lookup = Lookup::new(&overlay.lower);
    let findings = Findings::new(&lookup, limits, protected, None);
    let (gone, pure, forged) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut search = Search { overlay, lookup: &lookup, findings, gone, pure, forged };
    search.check_top().map_err(|source| StageError::io(Path::new(""), source))?;
    tree::walk(&overlay.upper, &mut |met| search.compare(met))?;
    search.find_removed()?;
    Ok(search.findings.finish())
}

struct Search<'s> {
    overlay: &'s Overlay,
    lookup: &'s Lookup<'s>,
    findings: Findings<'s>,
    /// Where nothing is left of what the stage saw, but for what was met in the upper folder.
    gone: Vec<PathBuf>,
    /// Directories through which nothing below shows.
    pure: HashSet<PathBuf>,
    /// Directories whose content cannot be told.
    forged: HashSet<PathBuf>,
}

/// What the attributes of a directory or file say.
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
        if mark(&top, OsStr::new("."), FileType::Directory)? != Mark::Plain {
            self.forged.insert(PathBuf::new());
        }
        Ok(())
    }

    /// Compares one entry of the upper folder with what the stage saw there; says whether to go into it.
    fn compare(&mut self, met: &WalkEntry<'_>) -> Result<bool, StageError> {
        self.findings.check_size(met)?;
        let failed = |source: io::Error| StageError::io(met.path, source);
        let mark = mark_of(met).map_err(failed)?;
        if mark == Mark::Forged || self.forged.contains(met.path.parent().unwrap_or(Path::new(""))) {
            self.findings.seen.insert(met.path.to_owned());
            return self.refuse(met);
        }
        if is_whiteout(met) {
            self.gone.push(met.path.to_owned());
            return Ok(false);
        }
        self.findings.seen.insert(met.path.to_owned());
        let standing = self.lookup.standing(met.path).map_err(failed)?;
        match met.kind() {
            FileType::Directory if met.stat.st_dev != self.overlay.device => {
                self.replace(met, standing, Op::Special { kind: "mount point" })?;
            }
            FileType::Directory => return self.directory(met, standing, mark).map(|()| true),
            FileType::RegularFile => self.file(met, standing)?,
            FileType::Symlink => {
                let now = met.target().map_err(failed)?;
                if !self.is_same_link(met, standing, &now).map_err(failed)? {
                    self.replace(met, standing, findings::link(&now))?;
                }
            }
            other => self.replace(met, standing, findings::special(other))?,
        }
        Ok(false)
    }

    /// What stands below or in something forged may not be what the stage saw.
    fn refuse(&mut self, met: &WalkEntry<'_>) -> Result<bool, StageError> {
        let op = match met.kind() {
            FileType::Directory => Op::MakeDir,
            FileType::RegularFile => {
                self.findings.count_bytes(met)?;
                findings::write(met)
            }
            FileType::Symlink => findings::link(&met.target().map_err(|source| StageError::io(met.path, source))?),
            _ if is_whiteout(met) => Op::Delete,
            other => findings::special(other),
        };
        self.findings.refuse(met.path, op, FORGED)?;
        if met.kind() == FileType::Directory {
            self.forged.insert(met.path.to_owned());
        }
        Ok(met.kind() == FileType::Directory && met.stat.st_dev == self.overlay.device)
    }

    fn directory(&mut self, met: &WalkEntry<'_>, standing: LowerEntry, mark: Mark) -> Result<(), StageError> {
        let is_pure_above = self.pure.contains(met.path.parent().unwrap_or(Path::new("")));
        match standing.kind {
            Some(Kind::Directory) if !is_pure_above && mark == Mark::Plain => return Ok(()),
            Some(Kind::Directory) if is_pure_above => {}
            Some(Kind::Directory) => self.gone.push(met.path.to_owned()),
            Some(_) => {
                self.findings.add(met.path, Op::Delete)?;
                self.findings.add(met.path, Op::MakeDir)?;
            }
            None => self.findings.add(met.path, Op::MakeDir)?,
        }
        self.pure.insert(met.path.to_owned());
        Ok(())
    }

    fn file(&mut self, met: &WalkEntry<'_>, standing: LowerEntry) -> Result<(), StageError> {
        if self.is_same_file(met, standing).map_err(|source| StageError::io(met.path, source))? {
            return Ok(());
        }
        self.findings.count_bytes(met)?;
        self.replace(met, standing, findings::write(met))
    }

    fn is_same_file(&self, met: &WalkEntry<'_>, standing: LowerEntry) -> io::Result<bool> {
        let (Some(Kind::File), Some(then)) = (standing.kind, standing.stat) else { return Ok(false) };
        if tree::length(&then) != tree::length(&met.stat)
            || tree::is_executable(&then) != tree::is_executable(&met.stat)
        {
            return Ok(false);
        }
        same_content(tree::open_regular(met.directory, met.name, Owner::Us)?, self.lookup.open(met.path)?)
    }

    fn is_same_link(&self, met: &WalkEntry<'_>, standing: LowerEntry, now: &OsStr) -> io::Result<bool> {
        Ok(standing.kind == Some(Kind::Link) && self.lookup.target(met.path)? == now)
    }

    /// Adds what now stands at a path, and the removal of a directory that stood there.
    fn replace(&mut self, met: &WalkEntry<'_>, standing: LowerEntry, op: Op) -> Result<(), StageError> {
        if standing.kind == Some(Kind::Directory) {
            self.findings.add(met.path, Op::RemoveDir)?;
            self.gone.push(met.path.to_owned());
        }
        self.findings.add(met.path, op)
    }

    /// Lists what the stage saw and is gone.
    fn find_removed(&mut self) -> Result<(), StageError> {
        for start in std::mem::take(&mut self.gone) {
            let standing = self.lookup.standing(&start).map_err(|source| StageError::io(&start, source))?;
            let Some(kind) = standing.kind else { continue };
            let mut listed = vec![(start.clone(), kind)];
            if kind == Kind::Directory {
                self.lookup
                    .each_below(&start, &mut |path, kind| {
                        listed.push((path.to_owned(), kind));
                        Ok::<_, io::Error>(())
                    })
                    .map_err(|source| StageError::io(&start, source))?;
            }
            for (path, kind) in listed {
                if self.findings.seen.insert(path.clone()) {
                    let op = if kind == Kind::Directory { Op::RemoveDir } else { Op::Delete };
                    self.findings.add(&path, op)?;
                }
            }
        }
        Ok(())
    }
}

/// The kernel's word for something that is gone.
fn is_whiteout(met: &WalkEntry<'_>) -> bool {
    met.kind() == FileType::CharacterDevice && met.stat.st_rdev == 0
}

/// What the attributes of an entry say; only directories and regular files have any.
fn mark_of(met: &WalkEntry<'_>) -> io::Result<Mark> {
    match met.kind() {
        // Opened for us first: without read permission no attribute can be read.
        FileType::Directory => {
            let held = tree::open_directory(met.directory, met.name, Owner::Us)?;
            mark(&held, OsStr::new("."), FileType::Directory)
        }
        FileType::RegularFile => mark(met.directory, met.name, FileType::RegularFile),
        _ => Ok(Mark::Plain),
    }
}

/// Reads what the attributes of a name in a directory say, links not followed.
fn mark(directory: &OwnedFd, name: &OsStr, kind: FileType) -> io::Result<Mark> {
    let mut at = OsString::from(format!("/proc/self/fd/{}/", directory.as_raw_fd()));
    at.push(name);
    let mut names = vec![0_u8; 512];
    let length = loop {
        match rustix::fs::llistxattr(&at, &mut names[..]) {
            Err(Errno::RANGE) => names.resize(names.len() * 4, 0),
            Err(Errno::OPNOTSUPP) => return Ok(Mark::Plain),
            other => break other?,
        }
    };
    let mut mark = Mark::Plain;
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(PREFIX)) {
        if kind == FileType::Directory && name == mask::OPAQUE.as_bytes() && is_opaque(&at)? {
            mark = Mark::Opaque;
        } else if !name.starts_with(ESCAPED) && !HARMLESS.contains(&name) {
            return Ok(Mark::Forged);
        }
    }
    Ok(mark)
}

fn is_opaque(at: &OsStr) -> io::Result<bool> {
    let mut value = [0_u8; 8];
    match rustix::fs::lgetxattr(at, mask::OPAQUE, &mut value[..]) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::RANGE) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
