//! Decides whether a change may be committed.
//!
//! The verdict depends on the path and on the files at and above it. The order: deceptive names, then protected paths,
//! then scratch, then the scope, last concurrent changes of the same file. It does not know copies and overlays.

use crate::found::Op;
use crate::link;
use crate::protect::Protected;
use glovebox_names::visible::{self, is_deceptive};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the stage could see at a path when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
}

/// The workspace before the stage, as the stage could see it.
pub(crate) trait Before {
    fn scope(&self) -> &Scope;
    /// What stood there; nothing also when the stage could not see it.
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>>;
    /// True when something stands in the workspace that the stage could not see.
    fn is_left_out(&self, path: &Path) -> io::Result<bool>;
    /// True for a directory that holds, at any depth, something the stage could not see.
    fn is_partial(&self, path: &Path) -> io::Result<bool>;
    /// True when the workspace no longer is there what the stage saw.
    fn is_stale(&self, path: &Path, op: &Op) -> io::Result<bool>;
}

/// The decision about a change.
pub(crate) enum Decision {
    Allowed,
    /// It is in scratch: dropped without a violation.
    Dropped,
    Disallowed(String),
}

/// Why a check ended early.
enum Stop {
    Scratch,
    Reason(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn refused<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Reason(reason.into()))
}

/// What forbids changes below a directory, there or above.
#[derive(Clone, Default)]
struct Above {
    /// The stage could not see one of them.
    is_left_out: bool,
    /// One of them is not a directory.
    file: Option<PathBuf>,
}

/// Decides about the changes of one stage.
pub(crate) struct Decider<'s> {
    pub(crate) before: &'s dyn Before,
    protected: &'s Protected,
    /// A cache, so that a deep tree is not climbed again for every change in it.
    above: RefCell<HashMap<PathBuf, Above>>,
}

impl<'s> Decider<'s> {
    pub(crate) fn new(before: &'s dyn Before, protected: &'s Protected) -> Self {
        Self { before, protected, above: RefCell::default() }
    }

    /// Decides whether a change may be committed.
    pub(crate) fn decide(&self, raw: &Path, op: &Op) -> io::Result<Decision> {
        match self.check(raw, op) {
            Ok(()) => Ok(Decision::Allowed),
            Err(Stop::Scratch) => Ok(Decision::Dropped),
            Err(Stop::Reason(reason)) => Ok(Decision::Disallowed(reason)),
            Err(Stop::Io(error)) => Err(error),
        }
    }

    fn check(&self, raw: &Path, op: &Op) -> Result<(), Stop> {
        let Some(text) = raw.to_str() else { return refused("its name is not valid UTF-8") };
        if let Some(character) = text.chars().find(|character| is_deceptive(*character)) {
            let shown = visible::line(character.encode_utf8(&mut [0; 4])).into_owned();
            return refused(format!("its name has the character `{shown}`, which could deceive a reader"));
        }
        let path = ScopePath::parse(text).map_err(|problem| Stop::Reason(problem.to_string()))?;
        if let Some(reason) = self.protected.reason(text) {
            return refused(reason);
        }
        let scope = self.before.scope();
        if scope.is_hidden(&path) {
            return refused("it is hidden from the stage");
        }
        if scope.is_scratch(&path) {
            return Err(Stop::Scratch);
        }
        self.check_neighbours(raw, op)?;
        self.check_grant(raw, &path, op)?;
        if let Op::Link { target } = op {
            self.check_target(&path, Path::new(target))?;
        }
        self.check_stale(raw, op)
    }

    fn check_grant(&self, raw: &Path, path: &ScopePath, op: &Op) -> Result<(), Stop> {
        let scope = self.before.scope();
        match op {
            Op::MakeDir if self.before.kind(raw)?.is_none() => {
                if scope.commits_as_directory(path) {
                    return Ok(());
                }
                if scope.leads_to_scratch(path) {
                    return Err(Stop::Scratch);
                }
            }
            // The directory of a grant stays, for it and for what the stage could not see in it.
            Op::RemoveDir if scope.commits_directory(path) || self.before.is_partial(raw)? => return Ok(()),
            _ => {}
        }
        self.check_scope(path)?;
        if matches!(op, Op::MakeDir) && !scope.commits_as_directory(path) {
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
        refused(format!("not in the write scope; allowed_write_paths=\"{path}\" would grant it"))
    }

    /// Refuses a change that would also affect something which the change does not name.
    fn check_neighbours(&self, raw: &Path, op: &Op) -> Result<(), Stop> {
        if let Op::Special { kind } = op {
            return refused(format!("it is a {kind}"));
        }
        let above = self.above(raw.parent().unwrap_or(Path::new("")))?;
        if above.is_left_out || self.before.is_left_out(raw)? {
            return refused("the path exists outside the stage's scope");
        }
        if matches!(op, Op::Write { .. } | Op::Link { .. })
            && self.before.kind(raw)? == Some(Kind::Directory)
            && self.before.is_partial(raw)?
        {
            return refused("the directory at this path has content outside the stage's scope");
        }
        if let Some(file) = &above.file {
            // What was a file has become a directory: allowed only where the file might be removed.
            self.check_scope(&ScopePath::parse_bytes(file.as_os_str().as_bytes()).unwrap_or_default())?;
            self.check_stale(file, &Op::Delete)?;
        }
        Ok(())
    }

    fn above(&self, directory: &Path) -> io::Result<Above> {
        let mut known = self.above.borrow_mut();
        let unknown: Vec<&Path> = directory.ancestors().take_while(|path| !known.contains_key(*path)).collect();
        for path in unknown.into_iter().rev() {
            let mut above = path.parent().and_then(|parent| known.get(parent)).cloned().unwrap_or_default();
            above.is_left_out = above.is_left_out || self.before.is_left_out(path)?;
            if matches!(self.before.kind(path)?, Some(Kind::File | Kind::Link)) {
                above.file = Some(path.to_owned());
            }
            known.insert(path.to_owned(), above);
        }
        Ok(known.get(directory).cloned().unwrap_or_default())
    }

    fn check_target(&self, path: &ScopePath, target: &Path) -> Result<(), Stop> {
        let leads_to = link::destination(path, target).map_err(|reason| Stop::Reason(reason.to_owned()))?;
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
            refused("the workspace changed here since the stage began")
        } else {
            Ok(())
        }
    }
}
