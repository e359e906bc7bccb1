//! Lists the changes of a stage from the upper folder of its overlay.
//!
//! The walk covers only that folder, by file descriptor, and follows no symbolic links. A whiteout or an opaque
//! directory removes only entries that the stage could see; hidden files stay. Entries with overlay attributes that a
//! program forged are refused. New kernels escape such attributes; older ones may not.

use super::compare::{Comparison, CurrentEntry};
use super::findings::{self, FoundEntry};
use super::lower_entry::Lookup;
use super::{ChangeRules, StageChanges};
use crate::change::{ChangeLimits, FoundChange, Op};
use crate::ignored::IgnoreMatcher;
use crate::overlay::Overlay;
use crate::overlay::attributes::{Mark, mark, mark_of};
use crate::protect::Protected;
use crate::stage_error::StageError;
use crate::tree::{self, Owner, WalkEntry};
use rustix::fs::FileType;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Lists the stage's changes, sorted by path. At equal paths, removals are first.
pub(super) fn changes(overlay: &Overlay, rules: ChangeRules<'_>) -> Result<StageChanges, StageError> {
    let lookup = Lookup::new(&overlay.lower);
    let mut search = UpperSearch { overlay, comparison: Comparison::new(&lookup, rules), forged: HashSet::new() };
    search.check_top().map_err(|source| StageError::io(Path::new(""), source))?;
    tree::walk(&overlay.upper, &mut |entry| search.compare(entry))?;
    search.comparison.finish()
}

impl Overlay {
    /// Lists the stage's changes; see [`crate::stage::WorkspaceView::changes`]. Only paths that the stage touched are read.
    ///
    /// # Errors
    /// [`StageError::Limit`] if the changes exceed `limits`.
    pub fn changes(&self, limits: &ChangeLimits, protected: &Protected) -> Result<Vec<FoundChange>, StageError> {
        let ignored = &IgnoreMatcher::default();
        changes(self, ChangeRules { limits, protected, ignored }).map(|examined| examined.found)
    }
}

struct UpperSearch<'s> {
    overlay: &'s Overlay,
    comparison: Comparison<'s>,
    /// Directories with forged attributes, whose content is unknown.
    forged: HashSet<PathBuf>,
}

impl UpperSearch<'_> {
    /// Checks the attributes of the top folder. The kernel sets none there that affect content, so any mark is forged.
    fn check_top(&mut self) -> io::Result<()> {
        let top = self.overlay.upper.directory(Path::new(""))?;
        if mark(top.as_fd(), OsStr::new("."), FileType::Directory)? != Mark::Plain {
            self.forged.insert(PathBuf::new());
        }
        Ok(())
    }

    /// Compares one entry of the upper folder with the initial one. Returns whether to descend into it.
    fn compare(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        let met = FoundEntry::new(entry);
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
                CurrentEntry::Special(Op::Special { kind: "mount point" })
            }
            FileType::Directory => CurrentEntry::Directory { shows_lower: mark == Mark::Plain },
            FileType::RegularFile => {
                CurrentEntry::File(&|| tree::open_regular(entry.directory, entry.name, Owner::ThisProgram))
            }
            FileType::Symlink => CurrentEntry::Link(entry.target().map_err(failed)?),
            other => CurrentEntry::Special(findings::special(other)),
        };
        let descends = matches!(now, CurrentEntry::Directory { .. });
        self.comparison.compare(met, now)?;
        Ok(descends)
    }

    /// Refuses an entry with forged attributes, or below a directory with forged attributes, because it may differ from
    /// the entry that the stage saw.
    fn refuse(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        let findings = &mut self.comparison.findings;
        let op = match entry.kind() {
            FileType::Directory => FoundEntry::new(entry).make_directory(),
            FileType::RegularFile => {
                findings.count_bytes(FoundEntry::new(entry))?;
                FoundEntry::new(entry).write()
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

/// Returns true for a whiteout, the kernel's mark of a removed file.
fn is_whiteout(entry: &WalkEntry<'_>) -> bool {
    entry.kind() == FileType::CharacterDevice && entry.stat.st_rdev == 0
}
