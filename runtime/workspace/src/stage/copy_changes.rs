//! Finds the changes of a stage in its copy.
//!
//! The walk follows no symbolic link, reads no unchanged file and changes nothing.

use super::StageError;
use super::copy::{CopiedEntry, Copy};
use super::decide::{Baseline, LowerKind};
use super::findings::{self, Findings, FoundEntry};
use super::{ChangeRules, StageChanges};
use crate::change::Op;
use crate::tree::{self, Stamp, WalkEntry};
use glovebox_record::scope::Scope;
use rustix::fs::FileType;
use std::io;
use std::path::Path;

impl Baseline for Copy {
    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn kind(&self, path: &Path) -> io::Result<Option<LowerKind>> {
        Ok(self.facts.get(path).map(|fact| match fact {
            CopiedEntry::Directory { .. } => LowerKind::Directory,
            CopiedEntry::File { .. } => LowerKind::File,
            CopiedEntry::Link { .. } => LowerKind::Link,
        }))
    }

    fn is_left_out(&self, path: &Path) -> io::Result<bool> {
        Ok(self.left_out.contains(path))
    }

    fn is_partial(&self, path: &Path) -> io::Result<bool> {
        Ok(matches!(self.facts.get(path), Some(CopiedEntry::Directory { partial: true })))
    }

    fn workspace_has(&self, path: &Path) -> io::Result<bool> {
        Ok(self.workspace.stat_below_folders(path)?.is_some())
    }

    /// Compares the stamp of a file with the one at the time of the copy. At a path that did not exist, any entry is a
    /// concurrent change.
    fn is_stale(&self, path: &Path, op: &Op) -> io::Result<bool> {
        let now = self.workspace.stat_below_folders(path)?;
        let is_directory = now.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        Ok(match (self.facts.get(path), op) {
            (_, Op::RemoveDir) => false,
            (
                Some(CopiedEntry::File { origin: Some(origin), .. } | CopiedEntry::Link { origin: Some(origin), .. }),
                _,
            ) => now.is_some_and(|stat| Stamp::from_stat(&stat) != *origin) || (now.is_none() && !op.removes()),
            (Some(CopiedEntry::File { origin: None, .. } | CopiedEntry::Link { origin: None, .. }), _) => false,
            (Some(CopiedEntry::Directory { .. }), _) => now.is_some() && !is_directory,
            (None, Op::MakeDir { .. }) => now.is_some() && !is_directory,
            (None, _) => now.is_some(),
        })
    }
}

/// Lists the differences from the copied files, sorted by path. At equal paths, removals are first.
pub(super) fn changes(copy: &Copy, rules: ChangeRules<'_>) -> Result<StageChanges, StageError> {
    let mut search = CopySearch { copy, findings: Findings::new(copy, rules, Some(copy.facts.len())) };
    tree::walk(&copy.tree, &mut |entry| search.compare(entry))?;
    search.find_removed()?;
    Ok(search.findings.finish())
}

struct CopySearch<'s> {
    copy: &'s Copy,
    findings: Findings<'s>,
}

impl CopySearch<'_> {
    /// Compares one entry of the copy with the initial one. Returns whether to descend into it.
    fn compare(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        self.findings.check_size(FoundEntry::new(entry))?;
        let known = self.copy.facts.get(entry.path);
        if known.is_some() {
            self.findings.seen.insert(entry.path.to_owned());
        }
        let failed = |source: io::Error| StageError::io(entry.path, source);
        match entry.kind() {
            FileType::Directory if entry.stat.st_dev != self.copy.device => {
                self.replace(entry, known, Op::Special { kind: "mount point" })?;
            }
            FileType::Directory => {
                if !matches!(known, Some(CopiedEntry::Directory { .. })) {
                    if known.is_some() {
                        self.findings.add(entry.path, Op::Delete)?;
                    }
                    self.findings.add(entry.path, FoundEntry::new(entry).make_directory())?;
                }
                return Ok(true);
            }
            FileType::RegularFile => {
                if !self.is_untouched(entry, known).map_err(failed)? {
                    self.findings.count_bytes(FoundEntry::new(entry))?;
                    self.replace(entry, known, FoundEntry::new(entry).write())?;
                }
            }
            FileType::Symlink => {
                let now = entry.target().map_err(failed)?;
                if !matches!(known, Some(CopiedEntry::Link { target, .. }) if *target == now) {
                    self.replace(entry, known, findings::link(&now))?;
                }
            }
            other => self.replace(entry, known, findings::special(other))?,
        }
        Ok(false)
    }

    /// Adds the new entry at a path, and the removal of a directory that it replaced.
    fn replace(&mut self, entry: &WalkEntry<'_>, known: Option<&CopiedEntry>, op: Op) -> Result<(), StageError> {
        if matches!(known, Some(CopiedEntry::Directory { .. })) {
            self.findings.add(entry.path, Op::RemoveDir)?;
        }
        self.findings.add(entry.path, op)
    }

    fn find_removed(&mut self) -> Result<(), StageError> {
        let copy = self.copy;
        for (path, fact) in &copy.facts {
            if !self.findings.seen.contains(path) {
                self.findings.add(
                    path,
                    if matches!(fact, CopiedEntry::Directory { .. }) { Op::RemoveDir } else { Op::Delete },
                )?;
            }
        }
        Ok(())
    }

    fn is_untouched(&self, entry: &WalkEntry<'_>, known: Option<&CopiedEntry>) -> io::Result<bool> {
        let Some(CopiedEntry::File { stamp, bytes, executable, .. }) = known else { return Ok(false) };
        if *stamp == Stamp::from_stat(&entry.stat) && stamp.changed() < self.copy.complete {
            return Ok(true);
        }
        if *bytes != tree::length(&entry.stat) || *executable != tree::is_executable(&entry.stat) {
            return Ok(false);
        }
        let now = tree::open_regular(entry.directory, entry.name, self.copy.tree.owner)?;
        match self.copy.original(entry.path) {
            Ok(then) => findings::same_content(now, then),
            Err(error) if tree::is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
