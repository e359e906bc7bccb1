//! What a stage changed in its copy, and whether it may be committed.
//!
//! Found by a walk that follows no link and reads no untouched file. The verdict goes by the path alone: first names that
//! could deceive, then protected paths, then the scope. Nothing is changed here.

use crate::link;
use crate::path::ScopePath;
use crate::protect::Protected;
use crate::scope::{Access, Scope};
use crate::stage::{Copy, Fact, StageError};
use crate::tree::{self, Met, Stamp};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Caps of what a stage may change; reaching one fails the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes in changed files, counted by length; limit `write_bytes`.
    pub write_bytes: u64,
    /// Changed entries; limit `write_entries`.
    pub write_entries: u64,
    /// Levels of directories; limit `depth`.
    pub depth: u32,
    /// Bytes in one name; limit `name_bytes`.
    pub name_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { write_bytes: 256 << 20, write_entries: 10_000, depth: 128, name_bytes: 255 }
    }
}

/// What happened to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Op {
    /// A regular file is new, has other content or another executable bit.
    Write {
        /// Length in bytes.
        bytes: u64,
        /// True when the owner may execute it.
        executable: bool,
    },
    /// A file or link is gone.
    Delete,
    /// A directory is new.
    MakeDir,
    /// A directory is gone.
    RemoveDir,
    /// A symbolic link is new or points elsewhere.
    Link {
        /// Its target, unprintable characters escaped.
        target: String,
    },
    /// Something that is never committed: `fifo`, `socket`, `block device`, `character device`.
    Special {
        /// Which.
        kind: &'static str,
    },
}

impl Op {
    /// Returns the name used in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Write { .. } => "write",
            Self::Delete => "delete",
            Self::MakeDir => "mkdir",
            Self::RemoveDir => "rmdir",
            Self::Link { .. } => "symlink",
            Self::Special { .. } => "special",
        }
    }

    fn removes(&self) -> bool {
        matches!(self, Self::Delete | Self::RemoveDir)
    }
}

/// Whether a change may be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "lowercase")]
pub enum Verdict {
    /// Inside the write scope.
    Allowed,
    /// Not to be committed, and why, naming the grant where one would help.
    Disallowed(String),
}

/// One change found in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Path relative to the workspace, unprintable characters escaped.
    pub path: String,
    /// What happened to it.
    #[serde(flatten)]
    pub op: Op,
    /// Whether it may be committed.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The path as the system has it.
    #[serde(skip)]
    pub(crate) raw: PathBuf,
}

impl Found {
    /// True when it may be committed.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }
}

/// Finds what differs from what was copied, sorted by path, what was removed first.
pub(crate) fn changes(copy: &Copy, limits: &Limits, protected: &Protected) -> Result<Vec<Found>, StageError> {
    let mut search = Search { copy, limits, protected, seen: HashSet::new(), found: Vec::new(), bytes: 0, paths: 0 };
    tree::walk(&copy.tree, &mut |met| search.compare(met))?;
    search.find_removed()?;
    let mut found = search.found;
    found.sort_by(|a, b| (&a.raw, !a.op.removes()).cmp(&(&b.raw, !b.op.removes())));
    Ok(without_redundant_directories(found, &copy.scope))
}

struct Search<'s> {
    copy: &'s Copy,
    limits: &'s Limits,
    protected: &'s Protected,
    /// Known paths that are still what they were, or were replaced by something of the same place.
    seen: HashSet<PathBuf>,
    found: Vec<Found>,
    bytes: u64,
    paths: u64,
}

impl Search<'_> {
    /// Compares one entry of the copy with what was copied; says whether to go into it.
    fn compare(&mut self, met: &Met<'_>) -> Result<bool, StageError> {
        self.check_size(met)?;
        let known = self.copy.facts.get(met.path);
        if known.is_some() {
            self.seen.insert(met.path.to_owned());
        }
        let failed = |source: io::Error| StageError::io(met.path, source);
        match met.kind() {
            FileType::Directory if met.stat.st_dev != self.copy.device => {
                self.replace(met, known, Op::Special { kind: "mount point" })?;
            }
            FileType::Directory => {
                if !matches!(known, Some(Fact::Directory { .. })) {
                    if known.is_some() {
                        self.add(met.path, Op::Delete)?;
                    }
                    self.add(met.path, Op::MakeDir)?;
                }
                return Ok(true);
            }
            FileType::RegularFile => {
                if !self.is_untouched(met, known).map_err(failed)? {
                    self.count_bytes(met)?;
                    self.replace(met, known, file_op(met))?;
                }
            }
            FileType::Symlink => {
                let now = met.target().map_err(failed)?;
                if !matches!(known, Some(Fact::Link { target }) if *target == now) {
                    self.replace(met, known, Op::Link { target: tree::shown(Path::new(&now)) })?;
                }
            }
            other => self.replace(met, known, Op::Special { kind: special(other) })?,
        }
        Ok(false)
    }

    /// Adds what now stands at a path, and the removal of a directory that stood there.
    fn replace(&mut self, met: &Met<'_>, known: Option<&Fact>, op: Op) -> Result<(), StageError> {
        if matches!(known, Some(Fact::Directory { .. })) {
            self.add(met.path, Op::RemoveDir)?;
        }
        self.add(met.path, op)
    }

    fn find_removed(&mut self) -> Result<(), StageError> {
        let copy = self.copy;
        for (path, fact) in &copy.facts {
            if !self.seen.contains(path) {
                self.add(path, if matches!(fact, Fact::Directory { .. }) { Op::RemoveDir } else { Op::Delete })?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, op: Op) -> Result<(), StageError> {
        if self.found.len() as u64 >= self.limits.write_entries {
            return Err(limit("write_entries", self.limits.write_entries, path));
        }
        let verdict = self.judge(path, &op).map_or_else(Verdict::Disallowed, |()| Verdict::Allowed);
        self.found.push(Found { path: tree::shown(path), op, verdict, raw: path.to_owned() });
        Ok(())
    }

    /// Says why a change must not be committed.
    fn judge(&self, raw: &Path, op: &Op) -> Result<(), String> {
        let text = raw.to_str().ok_or("its name is not valid UTF-8")?;
        if text.chars().any(tree::acts) {
            return Err("its name has control characters".to_owned());
        }
        let path = ScopePath::parse(text).map_err(|problem| problem.to_string())?;
        if let Some(reason) = self.protected.reason(text) {
            return Err(reason);
        }
        self.judge_place(raw, op)?;
        let scope = &self.copy.scope;
        let known = self.copy.facts.get(raw);
        match op {
            Op::MakeDir if known.is_none() && scope.may_create_directory(&path) => return Ok(()),
            // The directory of a grant stays, for it and for what the stage could not see in it.
            Op::RemoveDir if is_partial(known) || scope.may_create_directory(&path) => return Ok(()),
            _ => self.judge_scope(&path)?,
        }
        if let Op::Link { target } = op {
            let leads_to = link::destination(&path, Path::new(target))?;
            if let Some(reason) = self.protected.reason(leads_to.as_str()) {
                return Err(format!("it links to a protected path: {reason}"));
            }
            if scope.is_hidden(&leads_to) {
                return Err("it links to something outside the stage's scope".to_owned());
            }
        }
        Ok(())
    }

    /// Says whether committing at this place would take something along that the change does not name.
    fn judge_place(&self, raw: &Path, op: &Op) -> Result<(), String> {
        if let Op::Special { kind } = op {
            return Err(format!("it is a {kind}"));
        }
        if raw.ancestors().any(|path| self.copy.left_out.contains(path)) {
            return Err("something outside the stage's scope stands there".to_owned());
        }
        if matches!(op, Op::Write { .. } | Op::Link { .. }) && is_partial(self.copy.facts.get(raw)) {
            return Err("a directory with content outside the stage's scope stands there".to_owned());
        }
        for above in raw.ancestors().skip(1) {
            if matches!(self.copy.facts.get(above), Some(Fact::File { .. } | Fact::Link { .. })) {
                // What was a file has become a directory: allowed only where the file might be removed.
                self.judge_scope(&ScopePath::parse_bytes(above.as_os_str().as_bytes()).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    fn judge_scope(&self, path: &ScopePath) -> Result<(), String> {
        match self.copy.scope.access(path) {
            Access::Write => Ok(()),
            _ => Err(format!("not in the write scope; allowed_write_paths=\"{path}\" would grant it")),
        }
    }

    fn is_untouched(&self, met: &Met<'_>, known: Option<&Fact>) -> io::Result<bool> {
        let Some(Fact::File { stamp, bytes, executable }) = known else { return Ok(false) };
        if *stamp == Stamp::of(&met.stat) && stamp.changed() < self.copy.complete {
            return Ok(true);
        }
        if *bytes != tree::length(&met.stat) || *executable != tree::is_executable(&met.stat) {
            return Ok(false);
        }
        let now = tree::open_regular(met.directory, met.name, self.copy.tree.owner)?;
        match self.copy.workspace.file(met.path) {
            Ok(then) => same_content(now, then),
            Err(error) if tree::is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn check_size(&mut self, met: &Met<'_>) -> Result<(), StageError> {
        self.paths += 1;
        let paths_max = (self.copy.facts.len() as u64).saturating_add(self.limits.write_entries);
        if self.paths > paths_max {
            return Err(limit("write_entries", self.limits.write_entries, met.path));
        }
        if met.depth > self.limits.depth {
            return Err(limit("depth", self.limits.depth.into(), met.path));
        }
        if met.name.len() > self.limits.name_bytes as usize {
            return Err(limit("name_bytes", self.limits.name_bytes.into(), met.path));
        }
        if met.path.as_os_str().len() as u64 > tree::PATH_BYTES_MAX {
            return Err(limit("path_bytes", tree::PATH_BYTES_MAX, met.path));
        }
        Ok(())
    }

    fn count_bytes(&mut self, met: &Met<'_>) -> Result<(), StageError> {
        self.bytes = self.bytes.saturating_add(tree::length(&met.stat));
        if self.bytes > self.limits.write_bytes {
            return Err(limit("write_bytes", self.limits.write_bytes, met.path));
        }
        Ok(())
    }
}

fn is_partial(fact: Option<&Fact>) -> bool {
    matches!(fact, Some(Fact::Directory { partial: true }))
}

fn file_op(met: &Met<'_>) -> Op {
    Op::Write { bytes: tree::length(&met.stat), executable: tree::is_executable(&met.stat) }
}

fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::BlockDevice => "block device",
        FileType::CharacterDevice => "character device",
        _ => "file of an unknown kind",
    }
}

fn limit(limit: &'static str, max: u64, path: &Path) -> StageError {
    let mut path = tree::shown(path);
    // A path of thousands of levels helps nobody.
    if path.len() > 200 {
        path.truncate(path.floor_char_boundary(200));
        path.push('…');
    }
    StageError::Limit { limit, max, path }
}

fn same_content(mut a: impl Read, mut b: impl Read) -> io::Result<bool> {
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

/// Leaves out what says nothing of its own: a new directory outside the scope in which something else was found, and a
/// removed one that stays in the workspace because it belongs to a grant or holds what the stage could not see.
fn without_redundant_directories(found: Vec<Found>, scope: &Scope) -> Vec<Found> {
    let filled: BTreeSet<PathBuf> =
        found.iter().flat_map(|change| change.raw.ancestors().skip(1)).map(Path::to_owned).collect();
    let stays = |change: &Found| {
        ScopePath::parse(&change.path).is_ok_and(|path| scope.access(&path) != Access::Write) && change.is_allowed()
    };
    let keep = |change: &Found| match change.op {
        Op::MakeDir => change.is_allowed() || !filled.contains(&change.raw),
        Op::RemoveDir => !stays(change),
        _ => true,
    };
    found.into_iter().filter(keep).collect()
}
