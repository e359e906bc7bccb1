//! Compares the entries of a stage with the initial ones, for the upper folder of an overlay and for a layer.
//!
//! If a directory is removed or replaced by an opaque one, only entries that the stage could see are reported as
//! removed. Hidden files stay.

use super::decide::LowerKind;
use super::findings::{self, Findings, FoundEntry, same_content};
use super::lower_entry::{Lookup, LowerEntry};
use super::{ChangeRules, StageChanges, StageError};
use crate::change::Op;
use crate::tree;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The current entry at a path of the stage.
pub(super) enum CurrentEntry<'n> {
    /// A directory.
    Directory {
        /// True if lower entries show in it.
        shows_lower: bool,
    },
    /// A file, with a function that opens it for the comparison.
    File(&'n dyn Fn() -> io::Result<File>),
    /// A link.
    Link(OsString),
    /// An entry that is never committed.
    Special(Op),
}

/// A comparison in progress. Directories come before their content.
pub(super) struct Comparison<'s> {
    lookup: &'s Lookup<'s>,
    pub(super) findings: Findings<'s>,
    /// Removed paths, and directories that hide the lower entries below them. Lower entries at and below these paths
    /// are reported as removed, unless the stage has an entry at the same path.
    gone: Vec<PathBuf>,
    /// Directories in which no lower entries show.
    pure: HashSet<PathBuf>,
}

impl<'s> Comparison<'s> {
    pub(super) fn new(lookup: &'s Lookup<'s>, rules: ChangeRules<'s>) -> Self {
        Self { lookup, findings: Findings::new(lookup, rules, None), gone: Vec::new(), pure: HashSet::new() }
    }

    /// Records that a path was removed.
    pub(super) fn removed(&mut self, path: &Path) {
        self.gone.push(path.to_owned());
    }

    /// Compares the entry at a path. Its size must have been checked.
    pub(super) fn compare(&mut self, met: FoundEntry<'_>, now: CurrentEntry<'_>) -> Result<(), StageError> {
        self.findings.seen.insert(met.path.to_owned());
        let failed = |source: io::Error| StageError::io(met.path, source);
        let lower = self.lookup.entry(met.path).map_err(failed)?;
        match now {
            CurrentEntry::Directory { shows_lower } => self.directory(met, lower, shows_lower),
            CurrentEntry::File(open) => {
                if self.is_same_file(met, lower, open).map_err(failed)? {
                    return Ok(());
                }
                self.findings.count_bytes(met)?;
                self.replace(met.path, lower, met.write())
            }
            CurrentEntry::Link(target) => {
                let is_same =
                    lower.kind == Some(LowerKind::Link) && self.lookup.target(met.path).map_err(failed)? == target;
                if is_same { Ok(()) } else { self.replace(met.path, lower, findings::link(&target)) }
            }
            CurrentEntry::Special(op) => self.replace(met.path, lower, op),
        }
    }

    fn directory(&mut self, met: FoundEntry<'_>, lower: LowerEntry, shows_lower: bool) -> Result<(), StageError> {
        let path = met.path;
        let is_pure_above = self.pure.contains(path.parent().unwrap_or(Path::new("")));
        match lower.kind {
            Some(LowerKind::Directory) if !is_pure_above && shows_lower => return Ok(()),
            Some(LowerKind::Directory) if is_pure_above => {}
            Some(LowerKind::Directory) => self.gone.push(path.to_owned()),
            Some(_) => {
                self.findings.add(path, Op::Delete)?;
                self.findings.add(path, met.make_directory())?;
            }
            None => self.findings.add(path, met.make_directory())?,
        }
        self.pure.insert(path.to_owned());
        Ok(())
    }

    fn is_same_file(
        &self,
        met: FoundEntry<'_>,
        lower: LowerEntry,
        open: &dyn Fn() -> io::Result<File>,
    ) -> io::Result<bool> {
        let (Some(LowerKind::File), Some(then)) = (lower.kind, lower.stat) else { return Ok(false) };
        if tree::length(&then) != met.bytes || tree::is_executable(&then) != met.executable {
            return Ok(false);
        }
        same_content(open()?, self.lookup.open(met.path)?)
    }

    /// Adds the new entry at a path, and the removal of a directory that it replaced.
    fn replace(&mut self, path: &Path, lower: LowerEntry, op: Op) -> Result<(), StageError> {
        if lower.kind == Some(LowerKind::Directory) {
            self.findings.add(path, Op::RemoveDir)?;
            self.gone.push(path.to_owned());
        }
        self.findings.add(path, op)
    }

    /// Adds the removals of entries that the stage could see, and returns all changes.
    pub(super) fn finish(mut self) -> Result<StageChanges, StageError> {
        for start in std::mem::take(&mut self.gone) {
            self.add_gone(start)?;
        }
        Ok(self.findings.finish())
    }

    fn add_gone(&mut self, start: PathBuf) -> Result<(), StageError> {
        let lower = self.lookup.entry(&start).map_err(|source| StageError::io(&start, source))?;
        let Some(kind) = lower.kind else { return Ok(()) };
        let mut listed = Vec::new();
        if kind == LowerKind::Directory {
            let each = self.lookup.each_below(&start, &mut |path, kind| {
                listed.push((path.to_owned(), kind));
                Ok::<_, io::Error>(())
            });
            each.map_err(|source| StageError::io(&start, source))?;
        }
        for (path, kind) in [(start, kind)].into_iter().chain(listed) {
            if !self.findings.seen.contains(&path) {
                let op = if kind == LowerKind::Directory { Op::RemoveDir } else { Op::Delete };
                self.findings.add(&path, op)?;
                self.findings.seen.insert(path);
            }
        }
        Ok(())
    }
}
