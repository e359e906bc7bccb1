//! Collects the changes of a stage during a search, and enforces the limits.
//!
//! Searches differ only in the files that they compare. Counting, verdicts and the order of changes are the same for all.

use super::decide::{Baseline, Decider, Decision};
use super::{ChangeRules, StageChanges, StageError};
use crate::change::{ChangeLimits, FoundChange, Op, Verdict};
use crate::ignored::IgnoredChanges;
use crate::tree::{self, WalkEntry};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// A file is charged by its size on disk, and not by its length, if its allocated blocks exceed twice the length by
/// more than this number of bytes. Less is tolerated, because file systems preallocate.
const AHEAD_BYTES: u64 = 1 << 20;

/// The reason for refusing a change with an attribute that only the kernel may set.
const FORGED: &str = "it has an overlay attribute that only the kernel may set";
/// Maximum number of entries that are not changes: entries in scratch, and entries that were written without a difference.
const UNCHANGED_MAX: u64 = 1_000_000;

/// An entry that a search found.
#[derive(Clone, Copy)]
pub(crate) struct FoundEntry<'m> {
    pub(crate) path: &'m Path,
    /// Depth of the entry; 1 for entries directly in the searched folder.
    pub(crate) depth: u32,
    /// Length of a file, and its size on disk, in bytes.
    pub(crate) bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) executable: bool,
    /// Permissions of a file or directory that a command made; `None` for the usual ones.
    mode: Option<u32>,
}

impl<'m> FoundEntry<'m> {
    /// Creates the entry for an entry of a walk. Must be called before the walk opens it, because that can add permissions.
    pub(crate) fn new(entry: &WalkEntry<'m>) -> Self {
        let found = Self::file(entry.path, entry.depth, &entry.stat, tree::is_executable(&entry.stat));
        Self { mode: tree::unusual_mode(&entry.stat), ..found }
    }

    /// Creates the entry of a file with this status.
    pub(crate) fn file(path: &'m Path, depth: u32, stat: &Stat, executable: bool) -> Self {
        let disk_bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        Self { path, depth, bytes: tree::length(stat), disk_bytes, executable, mode: None }
    }

    /// Creates the entry of a directory, link or special file.
    pub(crate) fn other(path: &'m Path, depth: u32) -> Self {
        Self { path, depth, bytes: 0, disk_bytes: 0, executable: false, mode: None }
    }

    /// Returns the change that writes this file.
    pub(crate) fn write(self) -> Op {
        Op::Write { bytes: self.bytes, executable: self.executable, mode: self.mode }
    }

    /// Returns the change that creates this directory.
    pub(crate) fn make_directory(self) -> Op {
        Op::MakeDir { mode: self.mode }
    }
}

/// The changes that a search has collected.
pub(crate) struct Findings<'s> {
    decider: Decider<'s>,
    limits: &'s ChangeLimits,
    /// Paths at which the search found an entry.
    pub(crate) seen: HashSet<PathBuf>,
    found: Vec<FoundChange>,
    left_out: IgnoredChanges,
    /// Removed paths that must stay in the workspace.
    kept: BTreeSet<PathBuf>,
    bytes: u64,
    paths: u64,
    unchanged_max: u64,
}

impl<'s> Findings<'s> {
    /// Starts a search. `known` is the number of initial entries; if it is `None`, a fixed limit bounds the number of entries.
    pub(crate) fn new(before: &'s dyn Baseline, rules: ChangeRules<'s>, known: Option<usize>) -> Self {
        let decider = Decider::new(before, rules);
        let (seen, found, kept) = (HashSet::new(), Vec::new(), BTreeSet::new());
        let unchanged_max = match known {
            Some(known) if before.scope().scratch.is_empty() && rules.ignored.is_empty() => known as u64,
            Some(known) => (known as u64).saturating_add(UNCHANGED_MAX),
            None => UNCHANGED_MAX,
        };
        let (limits, left_out) = (rules.limits, IgnoredChanges::default());
        Self { decider, limits, seen, found, left_out, kept, bytes: 0, paths: 0, unchanged_max }
    }

    /// Adds a change with its verdict. A change in scratch is dropped.
    pub(crate) fn add(&mut self, path: &Path, op: Op) -> Result<(), StageError> {
        let decision = self.decider.decide(path, &op).map_err(|source| StageError::io(path, source))?;
        if op.removes() && !matches!(decision, Decision::Allowed | Decision::Ignored(_)) {
            self.kept.insert(path.to_owned());
        }
        match decision {
            Decision::Allowed => self.push(path, op, Verdict::Allowed, false),
            Decision::Dropped => Ok(()),
            Decision::Ignored(left_out) => {
                let most = self.limits.stage.ignored_entries;
                if self.left_out.entries() >= most && !op.removes() {
                    return Err(limit("ignored_entries", most, path));
                }
                self.left_out.add(path, op, left_out);
                Ok(())
            }
            Decision::Disallowed(reason) => self.push(path, op, Verdict::Disallowed(reason), false),
            Decision::SetAside(reason) => self.push(path, op, Verdict::SetAside(reason), false),
            Decision::OutOfScope(reason) => self.push(path, op, Verdict::Disallowed(reason), true),
        }
    }

    /// Adds a change with a forged overlay attribute. It is refused at any path.
    pub(crate) fn refuse_forged(&mut self, path: &Path, op: Op) -> Result<(), StageError> {
        self.push(path, op, Verdict::Disallowed(FORGED.to_owned()), false)
    }

    fn push(&mut self, path: &Path, op: Op, verdict: Verdict, is_only_out_of_scope: bool) -> Result<(), StageError> {
        if self.found.len() as u64 >= self.limits.stage.write_entries {
            return Err(limit("write_entries", self.limits.stage.write_entries, path));
        }
        self.found.push(FoundChange {
            path: tree::shown(path),
            op,
            verdict,
            is_only_out_of_scope,
            raw: path.to_owned(),
        });
        Ok(())
    }

    /// Returns an error if there are too many entries, or if the entry is too deep or its name or path is too long.
    pub(crate) fn check_size(&mut self, entry: FoundEntry<'_>) -> Result<(), StageError> {
        self.paths += 1;
        if self.paths > self.unchanged_max.saturating_add(self.limits.stage.write_entries) {
            return Err(limit("write_entries", self.limits.stage.write_entries, entry.path));
        }
        if entry.depth > self.limits.depth {
            return Err(limit("depth", self.limits.depth.into(), entry.path));
        }
        if entry.path.file_name().is_some_and(|name| name.len() > self.limits.name_bytes as usize) {
            return Err(limit("name_bytes", self.limits.name_bytes.into(), entry.path));
        }
        if entry.path.as_os_str().len() as u64 > tree::PATH_BYTES_MAX {
            return Err(limit("path_bytes", tree::PATH_BYTES_MAX, entry.path));
        }
        Ok(())
    }

    /// Counts the bytes of a changed file: its length, or its size on disk if that is much larger. Scratch and ignored
    /// changes are not counted.
    pub(crate) fn count_bytes(&mut self, entry: FoundEntry<'_>) -> Result<(), StageError> {
        let path = ScopePath::parse_bytes(entry.path.as_os_str().as_encoded_bytes());
        if path.is_ok_and(|path| self.decider.before.scope().is_scratch(&path)) {
            return Ok(());
        }
        let left_out = self.decider.left_out(entry.path, &entry.write());
        if left_out.map_err(|source| StageError::io(entry.path, source))?.is_some() {
            return Ok(());
        }
        let (length, taken) = (entry.bytes, entry.disk_bytes);
        let is_ahead = taken <= length.saturating_mul(2).saturating_add(AHEAD_BYTES);
        self.bytes = self.bytes.saturating_add(if is_ahead { length } else { taken });
        if self.bytes > self.limits.stage.write_bytes {
            return Err(limit("write_bytes", self.limits.stage.write_bytes, entry.path));
        }
        Ok(())
    }

    /// Returns the changes sorted by path. At equal paths, removals are first.
    pub(crate) fn finish(self) -> StageChanges {
        let mut found = self.left_out.without_folders_for_it(self.found);
        for change in &mut found {
            let takes_along = matches!(change.op, Op::Write { .. } | Op::Link { .. })
                && self
                    .kept
                    .range::<Path, _>((Bound::Included(change.raw.as_path()), Bound::Unbounded))
                    .take_while(|path| path.starts_with(&change.raw))
                    .next()
                    .is_some();
            change.is_only_out_of_scope &= !takes_along;
            if takes_along && change.is_allowed() {
                let reason = "replacing this directory would delete files outside the write scope";
                change.verdict = Verdict::Disallowed(reason.to_owned());
            }
        }
        found.sort_by(|a, b| (&a.raw, !a.op.removes()).cmp(&(&b.raw, !b.op.removes())));
        let found = without_redundant_directories(found, self.decider.before.scope());
        StageChanges { found, ignored: self.left_out }
    }
}

fn limit(limit: &'static str, max: u64, path: &Path) -> StageError {
    let mut path = tree::shown(path);
    // The path is shortened, because it can have thousands of levels.
    if path.len() > 200 {
        path.truncate(path.floor_char_boundary(200));
        path.push('…');
    }
    StageError::Limit { limit, max, path }
}

/// Omits redundant changes: a new directory outside of the scope that contains other changes, and a removed directory
/// that stays in the workspace because it belongs to a grant or has hidden content.
fn without_redundant_directories(found: Vec<FoundChange>, scope: &Scope) -> Vec<FoundChange> {
    let filled: BTreeSet<PathBuf> =
        found.iter().flat_map(|change| change.raw.ancestors().skip(1)).map(Path::to_owned).collect();
    let stays = |change: &FoundChange| {
        ScopePath::parse(&change.path).is_ok_and(|path| !scope.commits(&path)) && change.is_allowed()
    };
    let keep = |change: &FoundChange| match change.op {
        Op::MakeDir { .. } => change.is_allowed() || !filled.contains(&change.raw),
        Op::RemoveDir => !stays(change),
        _ => true,
    };
    found.into_iter().filter(keep).collect()
}

/// Returns the change that creates a link to this target.
pub(crate) fn link(target: &std::ffi::OsStr) -> Op {
    Op::Link { target: tree::shown(Path::new(target)) }
}

/// Kinds of special files that programs leave behind. They have no content.
pub(super) const FIFO: &str = "fifo";
pub(super) const SOCKET: &str = "socket";

/// Returns the change for a special file, which is never committed.
pub(crate) fn special(kind: FileType) -> Op {
    let kind = match kind {
        FileType::Fifo => FIFO,
        FileType::Socket => SOCKET,
        FileType::BlockDevice => "block device",
        FileType::CharacterDevice => "character device",
        _ => "file of an unknown kind",
    };
    Op::Special { kind }
}

/// Returns true if two files contain the same bytes.
pub(crate) fn same_content(mut a: impl Read, mut b: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let got = tree::read_full(&mut a, &mut left)?;
        if got != tree::read_full(&mut b, &mut right)? || left[..got] != right[..got] {
            return Ok(false);
        }
        if got == 0 {
            return Ok(true);
        }
    }
}
