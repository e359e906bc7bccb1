//! The private copy a stage works on.
//!
//! Only what the scope lets the stage see exists in the copy. For every file its stamp (size, times, inode, mode) is
//! remembered, so that an untouched one need not be read again, unless it was copied in the clock tick in which the stage
//! could already begin. The copy is hostile from the moment a program ran in it.

use crate::found;
pub use crate::found::{Found, Limits, Op, Verdict};
use crate::link;
use crate::path::ScopePath;
use crate::protect::Protected;
use crate::scope::{Access, Scope};
use crate::tree::{self, Met, Owner, Stamp, Tree, WalkError};
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Why a copy could not be made or examined.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The stage left more than a limit allows.
    #[error("the stage reached `limits.{limit}` ({max}) at `{path}`")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
        /// Where it was reached, unprintable characters escaped.
        path: String,
    },
    /// The operating system refused.
    #[error("could not read the stage's copy at `{path}`: {source}")]
    Io {
        /// Path at which it happened.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl StageError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: tree::shown(path), source }
    }
}

impl From<WalkError> for StageError {
    fn from(error: WalkError) -> Self {
        Self::io(&error.path, error.source)
    }
}

/// What one path of the copy was when the stage began.
#[derive(Debug)]
pub(crate) enum Fact {
    /// A directory; `partial` when it holds something the stage must not see.
    Directory { partial: bool },
    /// A regular file.
    File { stamp: Stamp, bytes: u64, executable: bool },
    /// A link.
    Link { target: OsString },
}

/// A private copy of what a stage may see.
#[derive(Debug)]
pub struct Copy {
    at: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) workspace: Tree,
    pub(crate) scope: Scope,
    pub(crate) facts: HashMap<PathBuf, Fact>,
    /// What stands in the workspace and not in the copy; nothing below it is listed.
    pub(crate) left_out: HashSet<PathBuf>,
    /// The file system the copy is on.
    pub(crate) device: u64,
    /// The clock of file stamps when the copy was complete. A stamp of this tick or later proves nothing: a program could change
    /// the file within the tick, set its times back, and leave the stamp as it was.
    pub(crate) complete: (i64, i64),
}

impl Copy {
    /// Copies what `scope` lets a stage see of `workspace` to the new folder `at`. Denied: everything hidden or not granted
    /// does not exist in it, links that leave the workspace or lead to something hidden are left out.
    ///
    /// # Errors
    /// [`StageError::Io`] when `at` exists already or the system refuses.
    pub fn create(workspace: &Path, at: &Path, scope: &Scope) -> Result<Self, StageError> {
        let failed = |source| StageError::io(at, source);
        let source = Tree::open(workspace).map_err(|source| StageError::io(workspace, source))?;
        let tree = Tree::create(at).map_err(failed)?;
        let device = tree.inode().map_err(failed)?.0;
        let (facts, left_out) = (HashMap::new(), HashSet::new());
        let mut filling = Filling { copy: &tree, scope, facts, left_out, into: None };
        tree::walk(&source, &mut |met| filling.take(met))?;
        let Filling { facts, left_out, .. } = filling;
        let complete = file_clock();
        Ok(Self { at: at.to_owned(), tree, workspace: source, scope: scope.clone(), facts, left_out, device, complete })
    }

    /// Returns the folder of the copy.
    pub fn root(&self) -> &Path {
        &self.at
    }

    /// Finds what differs from what was copied, by path, each with its verdict: protected paths first, then the scope.
    ///
    /// An untouched file costs one stat; one copied in the last clock tick is read too. To be called when no program of the stage is alive any more.
    ///
    /// # Errors
    /// [`StageError::Limit`] when the stage left more than `limits` allow.
    pub fn changes(&self, limits: &Limits, protected: &Protected) -> Result<Vec<Found>, StageError> {
        found::changes(self, limits, protected)
    }

    /// Removes the copy, however deep and unreadable the stage made it.
    ///
    /// # Errors
    /// [`StageError::Io`] when the system refuses.
    pub fn remove(self) -> Result<(), StageError> {
        tree::remove_all(&self.at).map_err(|source| StageError::io(&self.at, source))
    }
}

/// The copying in progress.
struct Filling<'c> {
    copy: &'c Tree,
    scope: &'c Scope,
    facts: HashMap<PathBuf, Fact>,
    left_out: HashSet<PathBuf>,
    /// The directory of the copy that is being filled.
    into: Option<(PathBuf, OwnedFd)>,
}

impl Filling<'_> {
    /// Takes one entry of the workspace over, or leaves it out; says whether to go into it.
    fn take(&mut self, met: &Met<'_>) -> Result<bool, StageError> {
        let failed = |source: io::Error| StageError::io(met.path, source);
        let access = ScopePath::parse_bytes(met.path.as_os_str().as_encoded_bytes())
            .map_or(Access::Absent, |path| self.scope.access(&path));
        let fact = match (met.kind(), access) {
            (_, Access::Hidden | Access::Absent) => None,
            (FileType::Directory, _) => {
                let into = self.into(met).map_err(failed)?;
                rustix::fs::mkdirat(into, met.name, tree::DIRECTORY_MODE).map_err(|error| failed(error.into()))?;
                Some(Fact::Directory { partial: false })
            }
            (FileType::RegularFile, Access::Read | Access::Write) => Some(self.take_file(met).map_err(failed)?),
            (FileType::Symlink, Access::Read | Access::Write) => self.take_link(met).map_err(failed)?,
            _ => None,
        };
        let is_directory = matches!(fact, Some(Fact::Directory { .. }));
        match fact {
            Some(fact) => drop(self.facts.insert(met.path.to_owned(), fact)),
            None => self.note_left_out(met.path),
        }
        Ok(is_directory)
    }

    fn take_file(&mut self, met: &Met<'_>) -> io::Result<Fact> {
        let mut source = tree::open_regular(met.directory, met.name, Owner::Somebody)?;
        let executable = tree::is_executable(&met.stat);
        let mut target = tree::create_file(self.into(met)?, met.name, tree::file_mode(executable))?;
        io::copy(&mut source, &mut target)?;
        tree::keep_times(&target, &met.stat)?;
        let stat = rustix::fs::fstat(&target)?;
        let stamp = Stamp::of(&stat);
        Ok(Fact::File { stamp, bytes: tree::length(&stat), executable: tree::is_executable(&stat) })
    }

    fn take_link(&mut self, met: &Met<'_>) -> io::Result<Option<Fact>> {
        let target = met.target()?;
        let path = ScopePath::parse_bytes(met.path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        match link::destination(&path, Path::new(&target)) {
            Ok(leads_to) if !self.scope.is_hidden(&leads_to) => {}
            _ => return Ok(None),
        }
        rustix::fs::symlinkat(&target, self.into(met)?, met.name)?;
        Ok(Some(Fact::Link { target }))
    }

    /// Opens the directory of the copy that corresponds to the entry's, unless it is open already.
    fn into(&mut self, met: &Met<'_>) -> io::Result<&OwnedFd> {
        let parent = met.path.parent().unwrap_or(Path::new(""));
        if self.into.as_ref().is_none_or(|(path, _)| path != parent) {
            self.into = Some((parent.to_owned(), self.copy.directory(parent)?));
        }
        match &self.into {
            Some((_, directory)) => Ok(directory),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Remembers for every directory above that it holds more than the stage sees.
    fn note_left_out(&mut self, path: &Path) {
        self.left_out.insert(path.to_owned());
        for above in path.ancestors().skip(1) {
            if let Some(Fact::Directory { partial }) = self.facts.get_mut(above) {
                *partial = true;
            }
        }
    }
}

/// Reads the clock from which file systems take their stamps, in seconds and nanoseconds.
fn file_clock() -> (i64, i64) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}
