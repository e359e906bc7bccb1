//! Decides whether a change may be committed.
//!
//! The verdict depends on the path and on the files at and above it. The rules are checked in this order: deceptive
//! names, protected paths, scratch, the scope, and concurrent changes of the same file. Git's ignore rules are checked
//! before all of them, but never apply to protected paths. This module does not know copies and overlays.

use super::ChangeRules;
use super::findings::{FIFO, SOCKET};
use crate::change::Op;
use crate::ignored::{self, IgnoreMatcher, IgnoredChange};
use crate::link;
use crate::protect::Protected;
use glovebox_names::protected;
use glovebox_names::visible::{self, is_deceptive};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The reason for refusing a change at a path that is hidden from the stage.
pub(crate) const HIDDEN: &str = "it is hidden from the stage";

/// Returns the reason for refusing a change that only the write scope forbids.
pub(crate) fn out_of_scope(path: &ScopePath) -> String {
    format!("not in the write scope; allowed_write_paths=\"{path}\" would grant it")
}

/// Kind of an initial entry that the stage could see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LowerKind {
    Directory,
    File,
    Link,
}

/// The initial workspace, as the stage could see it.
pub(crate) trait Baseline {
    fn scope(&self) -> &Scope;
    /// Returns the kind of the entry, or `None` if it does not exist or the stage could not see it.
    fn kind(&self, path: &Path) -> io::Result<Option<LowerKind>>;
    /// Returns true if the workspace has an entry that the stage could not see.
    fn is_left_out(&self, path: &Path) -> io::Result<bool>;
    /// Returns true for a directory that contains, at any depth, an entry that the stage could not see.
    fn is_partial(&self, path: &Path) -> io::Result<bool>;
    /// Returns true if the workspace has an entry at the path, whether the stage could see it or not.
    fn workspace_has(&self, path: &Path) -> io::Result<bool>;
    /// Returns true if the workspace's entry differs from the one that the stage saw.
    fn is_stale(&self, path: &Path, op: &Op) -> io::Result<bool>;
}

/// The decision about a change.
pub(crate) enum Decision {
    Allowed,
    /// The path is in scratch. The change is dropped and is not a violation.
    Dropped,
    /// Git ignores the path. The change is not committed and is not a violation.
    Ignored(IgnoredChange),
    Disallowed(String),
    /// The change cannot be committed, and is not a violation.
    SetAside(String),
    /// Only the write scope forbids the change.
    OutOfScope(String),
}

/// Why a check ended early.
enum Stop {
    Scratch,
    Reason(String),
    SetAside(String),
    /// The path is not in the write scope.
    OutOfScope(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Stop {
    /// Converts `OutOfScope` to a permanent refusal, for changes that a wider scope alone would not allow.
    fn for_good(self) -> Self {
        match self {
            Stop::OutOfScope(reason) => Stop::Reason(reason),
            other => other,
        }
    }
}

fn refused<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Reason(reason.into()))
}

fn set_aside<T>(reason: impl std::fmt::Display) -> Result<T, Stop> {
    Err(Stop::SetAside(format!("set aside: {reason}")))
}

/// A reason, at a directory or above it, that forbids changes below the directory.
#[derive(Clone, Default)]
struct DirectoryRestriction {
    /// True if the stage could not see one of the directories.
    is_left_out: bool,
    /// A path among them that is not a directory.
    file: Option<PathBuf>,
}

/// Decides about the changes of one stage.
pub(crate) struct Decider<'s> {
    pub(crate) before: &'s dyn Baseline,
    protected: &'s Protected,
    pub(crate) ignored: &'s IgnoreMatcher,
    /// Ignored folders, with whether the workspace has them.
    ignored_folders: RefCell<HashMap<String, bool>>,
    /// A cache, so that the parents in a deep tree are not checked again for every change.
    above: RefCell<HashMap<PathBuf, DirectoryRestriction>>,
}

impl<'s> Decider<'s> {
    pub(crate) fn new(before: &'s dyn Baseline, rules: ChangeRules<'s>) -> Self {
        let ChangeRules { protected, ignored, .. } = rules;
        Self { before, protected, ignored, ignored_folders: RefCell::default(), above: RefCell::default() }
    }

    /// Decides whether a change may be committed.
    pub(crate) fn decide(&self, raw: &Path, op: &Op) -> io::Result<Decision> {
        if let Some(left_out) = self.left_out(raw, op)? {
            return Ok(Decision::Ignored(left_out));
        }
        match self.check(raw, op) {
            Ok(()) => Ok(Decision::Allowed),
            Err(Stop::Scratch) => Ok(Decision::Dropped),
            Err(Stop::Reason(reason)) => Ok(Decision::Disallowed(reason)),
            Err(Stop::SetAside(reason)) => Ok(Decision::SetAside(reason)),
            Err(Stop::OutOfScope(reason)) => Ok(Decision::OutOfScope(reason)),
            Err(Stop::Io(error)) => Err(error),
        }
    }

    /// Returns the ignored change of a path, or `None` if the path is not ignored. A path is never ignored if this run
    /// protects it, if it is hidden, if the workspace has it, or if its topmost ignored folder has a protected name.
    pub(crate) fn left_out(&self, raw: &Path, op: &Op) -> io::Result<Option<IgnoredChange>> {
        if self.ignored.is_empty() {
            return Ok(None);
        }
        let is_folder = matches!(op, Op::MakeDir { .. } | Op::RemoveDir);
        let Some((path, is_whole)) = plain(raw) else { return Ok(None) };
        let kind = if is_folder || !is_whole { ignored::EntryKind::Directory } else { ignored::EntryKind::File };
        let Some(end) = self.ignored.covers(&path, kind) else {
            return if *op == Op::RemoveDir { self.left_out_folder(raw, &path) } else { Ok(None) };
        };
        let (text, scope) = (path.as_str(), self.before.scope());
        let top = &text[..end];
        let is_other = scope.is_hidden(&path)
            || scope.is_scratch(&path)
            || self.protected.reason(top).is_some()
            || self.protected.is_of_run(text)
            || self.is_granted_by_name(&path);
        if is_other || self.is_in_workspace(top, raw)? {
            return Ok(None);
        }
        let name = top.rsplit('/').next().unwrap_or(top);
        let slash = if end < text.len() || kind == ignored::EntryKind::Directory { "/" } else { "" };
        let lasts = is_whole && self.protected.reason(text).is_none();
        Ok(Some(IgnoredChange { name: format!("{name}{slash}"), lasts }))
    }

    /// Returns the ignored change for a removed folder that git does not ignore, if the folder contained only ignored files.
    fn left_out_folder(&self, raw: &Path, path: &ScopePath) -> io::Result<Option<IgnoredChange>> {
        let is_other = self.before.scope().is_hidden(path) || self.protected.reason(path.as_str()).is_some();
        let is_only_for_it = !is_other && !self.before.workspace_has(raw)?;
        Ok(is_only_for_it.then(|| IgnoredChange { name: String::new(), lasts: true }))
    }

    /// Returns true if an entry of the write scope itself is ignored. The author then wants its files to be committed.
    fn is_granted_by_name(&self, path: &ScopePath) -> bool {
        let kind =
            |entry: &Entry| if entry.is_subtree() { ignored::EntryKind::Directory } else { ignored::EntryKind::File };
        let mut granting = self.before.scope().write.iter().filter(|entry| entry.contains(path));
        granting.any(|entry| !entry.path().is_root() && self.ignored.covers(entry.path(), kind(entry)).is_some())
    }

    fn is_in_workspace(&self, top: &str, raw: &Path) -> io::Result<bool> {
        let mut known = self.ignored_folders.borrow_mut();
        let has_top = match known.get(top) {
            Some(has) => *has,
            None => *known.entry(top.to_owned()).or_insert(self.before.workspace_has(Path::new(top))?),
        };
        Ok(has_top && self.before.workspace_has(raw)?)
    }

    fn check(&self, raw: &Path, op: &Op) -> Result<(), Stop> {
        let path = self.check_name(raw)?;
        if let Some(reason) = self.protected.reason(path.as_str()) {
            return if self.only_formats(raw, &path, op)? { set_aside(reason) } else { refused(reason) };
        }
        let scope = self.before.scope();
        if scope.is_hidden(&path) {
            return refused(HIDDEN);
        }
        if scope.is_scratch(&path) {
            return Err(Stop::Scratch);
        }
        if let Op::Special { kind: kind @ (FIFO | SOCKET) } = op {
            return set_aside(format_args!("it is a {kind}"));
        }
        self.check_neighbours(raw, op).map_err(Stop::for_good)?;
        let of_scope = self.check_grant(raw, &path, op);
        let of_rest = || {
            if let Op::Link { target } = op {
                self.check_target(&path, Path::new(target))?;
            }
            self.check_stale(raw, op)
        };
        match of_scope {
            Err(Stop::OutOfScope(reason)) => match of_rest() {
                Err(Stop::Io(error)) => Err(error.into()),
                Err(_) => refused(reason),
                Ok(()) => Err(Stop::OutOfScope(reason)),
            },
            Err(other) => Err(other),
            Ok(()) => of_rest(),
        }
    }

    /// Returns true if a change edits an existing file with settings of an editor, in a folder that the stage may write.
    /// Formatters do that with every file of a project. The file stays as it was; a new file there is a violation.
    fn only_formats(&self, raw: &Path, path: &ScopePath, op: &Op) -> io::Result<bool> {
        let scope = self.before.scope();
        Ok(matches!(op, Op::Write { .. })
            && protected::is_of_editor(path.as_str())
            && !self.protected.is_of_run(path.as_str())
            && scope.commits(path)
            && !scope.is_hidden(path)
            && self.before.kind(raw)? == Some(LowerKind::File))
    }

    /// Returns the path of a change. A name that no record can contain is set aside if the stage may write the folder
    /// that contains it.
    fn check_name(&self, raw: &Path) -> Result<ScopePath, Stop> {
        let problem = match raw.to_str() {
            None => "its name is not valid UTF-8".to_owned(),
            Some(text) => match text.chars().find(|character| is_deceptive(*character)) {
                Some(character) => {
                    let shown = visible::line(character.encode_utf8(&mut [0; 4])).into_owned();
                    format!("its name has the character `{shown}`, which could deceive a reader")
                }
                None => match ScopePath::parse(text) {
                    Ok(path) => return Ok(path),
                    Err(problem) => problem.to_string(),
                },
            },
        };
        let above = plain(raw).map_or_else(ScopePath::root, |(path, _)| path);
        let scope = self.before.scope();
        let is_writable = above.join("name").is_ok_and(|path| scope.commits(&path) && !scope.is_hidden(&path));
        let is_protected = !above.is_root() && self.protected.reason(above.as_str()).is_some();
        if is_writable && !is_protected { set_aside(problem) } else { refused(problem) }
    }

    fn check_grant(&self, raw: &Path, path: &ScopePath, op: &Op) -> Result<(), Stop> {
        let scope = self.before.scope();
        match op {
            Op::MakeDir { .. } if self.before.kind(raw)?.is_none() => {
                if scope.commits_as_directory(path) {
                    return Ok(());
                }
                if scope.leads_to_scratch(path) {
                    return Err(Stop::Scratch);
                }
            }
            // The removal is allowed. The directory stays in the workspace if a grant or a hidden entry needs it.
            Op::RemoveDir if scope.commits_directory(path) || self.before.is_partial(raw)? => return Ok(()),
            _ => {}
        }
        self.check_scope(path)?;
        if matches!(op, Op::MakeDir { .. }) && !scope.commits_as_directory(path) {
            return refused(format!(
                "a directory at a path that is granted as a file; allowed_write_paths=\"{path}/\" would grant it"
            ));
        }
        Ok(())
    }

    fn check_scope(&self, path: &ScopePath) -> Result<(), Stop> {
        if self.before.scope().commits(path) {
            return Ok(());
        }
        Err(Stop::OutOfScope(out_of_scope(path)))
    }

    /// Refuses a change that would also affect other paths than its own.
    fn check_neighbours(&self, raw: &Path, op: &Op) -> Result<(), Stop> {
        if let Op::Special { kind } = op {
            return refused(format!("it is a {kind}"));
        }
        let above = self.above(raw.parent().unwrap_or(Path::new("")))?;
        if above.is_left_out || self.before.is_left_out(raw)? {
            return refused("the path exists outside the stage's scope");
        }
        if matches!(op, Op::Write { .. } | Op::Link { .. })
            && self.before.kind(raw)? == Some(LowerKind::Directory)
            && self.before.is_partial(raw)?
        {
            return refused("the directory at this path has content outside the stage's scope");
        }
        if let Some(file) = &above.file {
            // A file was replaced by a directory. This is allowed only if the file may be removed.
            self.check_scope(&ScopePath::parse_bytes(file.as_os_str().as_bytes()).unwrap_or_default())?;
            self.check_stale(file, &Op::Delete)?;
        }
        Ok(())
    }

    fn above(&self, directory: &Path) -> io::Result<DirectoryRestriction> {
        let mut known = self.above.borrow_mut();
        let unknown: Vec<&Path> = directory.ancestors().take_while(|path| !known.contains_key(*path)).collect();
        for path in unknown.into_iter().rev() {
            let mut above = path.parent().and_then(|parent| known.get(parent)).cloned().unwrap_or_default();
            above.is_left_out = above.is_left_out || self.before.is_left_out(path)?;
            if matches!(self.before.kind(path)?, Some(LowerKind::File | LowerKind::Link)) {
                above.file = Some(path.to_owned());
            }
            known.insert(path.to_owned(), above);
        }
        Ok(known.get(directory).cloned().unwrap_or_default())
    }

    fn check_target(&self, path: &ScopePath, target: &Path) -> Result<(), Stop> {
        let leads_to = match link::destination(path, target) {
            Ok(leads_to) => leads_to,
            Err(reason) => return set_aside(reason),
        };
        if let Some(reason) = self.protected.reason(leads_to.as_str()) {
            return refused(format!("it links to a protected path: {reason}"));
        }
        if self.before.scope().is_hidden(&leads_to) {
            return refused("it links to a path outside the stage's scope");
        }
        Ok(())
    }

    fn check_stale(&self, raw: &Path, op: &Op) -> Result<(), Stop> {
        if self.before.is_stale(raw, op)? {
            refused("the workspace changed at this path after the stage began")
        } else {
            Ok(())
        }
    }
}

/// Returns the path as a scope path, and true if that is the whole path. If a name is deceptive or not UTF-8, the path
/// of the folder above it is returned.
fn plain(raw: &Path) -> Option<(ScopePath, bool)> {
    let parse = |path: &Path| {
        let text = path.to_str().filter(|text| !text.chars().any(is_deceptive))?;
        ScopePath::parse(text).ok().filter(|path| !path.is_root())
    };
    let mut found = raw.ancestors().map(parse).enumerate();
    found.find_map(|(above, path)| Some((path?, above == 0)))
}
