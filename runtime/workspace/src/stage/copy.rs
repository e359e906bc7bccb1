//! The private copy for a stage.
//!
//! The copy contains only files that the scope shows. A stamp (size, times, inode, mode) of every file is recorded, so
//! that unchanged files are not read again. Only files that were copied in the last clock tick are read.

use super::{ChangeRules, copy_changes};
use crate::change::{ChangeLimits, ChangedFiles, FoundChange};
use crate::ignored::IgnoreMatcher;
use crate::link;
use crate::lower::{ViewOverrides, access, is_visible, open, open_all};
use crate::protect::Protected;
use crate::sparse_copy;
use crate::stage_error::StageError;
use crate::tree::{self, Owner, Stamp, Tree, WalkEntry};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// An initial entry of the copy.
#[derive(Debug)]
pub(super) enum CopiedEntry {
    /// A directory. `partial` is true if the workspace's directory contains an entry that the stage must not see.
    Directory { partial: bool },
    /// A regular file. `origin` is the stamp of the workspace's file, or `None` for a file of a layer.
    File { stamp: Stamp, bytes: u64, executable: bool, origin: Option<Stamp> },
    /// A link.
    Link { target: OsString, origin: Option<Stamp> },
}

/// A private copy of the files that a stage may see.
#[derive(Debug)]
pub struct Copy {
    at: PathBuf,
    pub(super) tree: Tree,
    pub(super) workspace: Tree,
    layers: Vec<Tree>,
    /// The folder below the workspace, with files of earlier stages at ignored paths.
    below: Option<Tree>,
    mount_points: Vec<ScopePath>,
    /// Permissions of directories that their owner may not read, change and enter.
    closed: BTreeMap<String, u32>,
    pub(super) scope: Scope,
    pub(super) facts: HashMap<PathBuf, CopiedEntry>,
    /// Entries of the workspace that are not in the copy. Nothing below them is listed.
    pub(super) left_out: HashSet<PathBuf>,
    /// Device number of the file system that contains the copy.
    pub(super) device: u64,
    /// The time, by the clock of file stamps, when the copy was complete. A stamp with this time or a later one does
    /// not prove that a file is unchanged: a program could change the file within the clock tick and reset its times,
    /// so that the stamp stays the same.
    pub(super) complete: (i64, i64),
}

impl Copy {
    /// Copies the files of `workspace` that `scope` shows to the new folder `at`. Paths that are hidden or not granted
    /// do not exist in the copy. Symbolic links to a hidden path are omitted.
    ///
    /// # Errors
    /// [`StageError::Io`] if `at` exists or the system refuses.
    pub fn create(workspace: &Path, at: &Path, scope: &Scope) -> Result<Self, StageError> {
        Self::with_overrides(workspace, at, scope, &ViewOverrides::default())
    }

    pub(super) fn with_overrides(
        workspace: &Path,
        at: &Path,
        scope: &Scope,
        overrides: &ViewOverrides,
    ) -> Result<Self, StageError> {
        let failed = |source| StageError::io(at, source);
        let (source, layers) = (open(workspace)?, open_all(&overrides.layers)?);
        let tree = Tree::create(at).map_err(failed)?;
        let device = tree.inode().map_err(failed)?.0;
        let below = overrides.below.as_deref().map(open).transpose()?;
        let (facts, left_out, complete) = (HashMap::new(), HashSet::new(), (0, 0));
        let ViewOverrides { mount_points, closed, .. } = overrides.clone();
        let (at, scope, workspace) = (at.to_owned(), scope.clone(), source);
        let mut copy =
            Self { at, tree, workspace, layers, below, mount_points, closed, scope, facts, left_out, device, complete };
        copy.fill()?;
        Ok(copy)
    }

    /// Copies all files into the empty folder.
    fn fill(&mut self) -> Result<(), StageError> {
        let mut filling = CopyBuilder::new(&self.tree, &self.scope);
        filling.all(&self.workspace, &self.layers, &self.mount_points)?;
        self.below.iter().try_for_each(|below| filling.below(below))?;
        filling.close(&self.closed)?;
        let CopyBuilder { facts, left_out, .. } = filling;
        (self.facts, self.left_out, self.complete) = (facts, left_out, file_clock());
        Ok(())
    }

    /// Drops the stage's changes and copies all files again. The folder itself stays the same.
    pub(super) fn reset(&mut self) -> Result<(), StageError> {
        tree::clear(&self.tree).map_err(|source| StageError::io(&self.at, source))?;
        self.fill()
    }

    /// Returns the folder of the copy.
    pub fn root(&self) -> &Path {
        &self.at
    }

    /// Lists the differences from the copied files by path, each with its verdict.
    ///
    /// An unchanged file costs one `stat`. A file that was copied in the last clock tick is also read. No program of
    /// the stage may be running.
    ///
    /// # Errors
    /// [`StageError::Limit`] if the changes exceed `limits`.
    pub fn changes(&self, limits: &ChangeLimits, protected: &Protected) -> Result<Vec<FoundChange>, StageError> {
        let ignored = &IgnoreMatcher::default();
        copy_changes::changes(self, ChangeRules { limits, protected, ignored }).map(|examined| examined.found)
    }

    /// Removes the copy, even if it is very deep or has no permissions.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses.
    pub fn remove(self) -> Result<(), StageError> {
        tree::remove_all(&self.at).map_err(|source| StageError::io(&self.at, source))
    }

    /// Opens the original of a file of the copy.
    pub(super) fn original(&self, path: &Path) -> io::Result<File> {
        let from_layer = self.layers.iter().find_map(|layer| layer.file(path).ok());
        if let Some(file) = from_layer {
            return Ok(file);
        }
        match (self.workspace.file(path), &self.below) {
            (Err(error), Some(below)) if tree::is_absent(&error) => below.file(path),
            (other, _) => other,
        }
    }
}

impl ChangedFiles for Copy {
    fn open(&self, change: &FoundChange) -> io::Result<File> {
        self.tree.file(&change.raw)
    }
}

/// Source of a copied entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopySource {
    /// A layer. The scope does not apply to it.
    Layer,
    /// The workspace. The scope applies to it.
    Workspace,
    /// The folder below the workspace. Only its hidden paths are omitted.
    Below,
}

/// A copy in progress.
struct CopyBuilder<'c> {
    copy: &'c Tree,
    scope: &'c Scope,
    facts: HashMap<PathBuf, CopiedEntry>,
    left_out: HashSet<PathBuf>,
    /// The source that is being copied.
    origin: CopySource,
    /// The directory of the copy that was opened last.
    into: Option<(PathBuf, OwnedFd)>,
}

impl<'c> CopyBuilder<'c> {
    fn new(copy: &'c Tree, scope: &'c Scope) -> Self {
        let (facts, left_out) = (HashMap::new(), HashSet::new());
        Self { copy, scope, facts, left_out, origin: CopySource::Layer, into: None }
    }

    /// Copies the layers, and then the entries of the workspace at paths that do not exist yet.
    fn all(&mut self, workspace: &Tree, layers: &[Tree], mount_points: &[ScopePath]) -> Result<(), StageError> {
        for layer in layers {
            tree::walk(layer, &mut |entry| self.add(entry))?;
        }
        for path in mount_points {
            self.make_mount_point(path)?;
        }
        self.origin = CopySource::Workspace;
        tree::walk(workspace, &mut |entry| self.add(entry))
    }

    /// Copies the entries of the folder below the workspace at paths that do not exist yet and are not hidden.
    fn below(&mut self, below: &Tree) -> Result<(), StageError> {
        self.origin = CopySource::Below;
        tree::walk(below, &mut |entry| self.add(entry))
    }

    /// Sets the permissions of copied directories that their owner may not change, after their content was copied.
    fn close(&self, closed: &BTreeMap<String, u32>) -> Result<(), StageError> {
        for (path, mode) in closed.iter().rev() {
            let path = Path::new(path);
            if matches!(self.facts.get(path), Some(CopiedEntry::Directory { .. })) {
                let directory = self.copy.directory(path);
                let closed = directory.and_then(|at| Ok(rustix::fs::fchmod(&at, Mode::from_raw_mode(*mode))?));
                closed.map_err(|source| StageError::io(path, source))?;
            }
        }
        Ok(())
    }

    /// Copies or omits one entry. Returns whether to descend into it.
    fn add(&mut self, entry: &WalkEntry<'_>) -> Result<bool, StageError> {
        let failed = |source: io::Error| StageError::io(entry.path, source);
        let is_seen = match self.origin {
            CopySource::Layer => true,
            CopySource::Workspace => is_visible(entry.kind(), access(self.scope, entry.path)),
            CopySource::Below => access(self.scope, entry.path) != Access::Hidden,
        };
        if self.left_out.contains(entry.path) || !is_seen {
            if self.origin != CopySource::Below {
                self.note_left_out(entry.path);
            }
            return Ok(false);
        }
        if let Some(known) = self.facts.get(entry.path) {
            return Ok(matches!(known, CopiedEntry::Directory { .. }) && entry.kind() == FileType::Directory);
        }
        let fact = match entry.kind() {
            FileType::Directory => Some(self.add_directory(entry).map_err(failed)?),
            FileType::RegularFile => Some(self.add_file(entry).map_err(failed)?),
            FileType::Symlink => self.add_link(entry).map_err(failed)?,
            _ => None,
        };
        let is_directory = matches!(fact, Some(CopiedEntry::Directory { .. }));
        match fact {
            Some(fact) => drop(self.facts.insert(entry.path.to_owned(), fact)),
            None => self.note_left_out(entry.path),
        }
        Ok(is_directory)
    }

    fn is_workspace(&self) -> bool {
        self.origin == CopySource::Workspace
    }

    fn add_directory(&mut self, entry: &WalkEntry<'_>) -> io::Result<CopiedEntry> {
        rustix::fs::mkdirat(self.into(entry)?, entry.name, tree::copied_directory_mode(&entry.stat))?;
        Ok(CopiedEntry::Directory { partial: false })
    }

    fn add_file(&mut self, entry: &WalkEntry<'_>) -> io::Result<CopiedEntry> {
        let source = tree::open_regular(entry.directory, entry.name, Owner::Other)?;
        let origin =
            self.is_workspace().then(|| rustix::fs::fstat(&source).map(|stat| Stamp::from_stat(&stat))).transpose()?;
        let target = tree::create_file(self.into(entry)?, entry.name, tree::copied_mode(&entry.stat))?;
        match sparse_copy::any(&entry.stat) {
            true => sparse_copy::copy(&source, &target, u64::MAX)?,
            false => io::copy(&mut &source, &mut &target)?,
        };
        tree::keep_times(&target, &entry.stat)?;
        let stat = rustix::fs::fstat(&target)?;
        let (stamp, executable) = (Stamp::from_stat(&stat), tree::is_executable(&stat));
        Ok(CopiedEntry::File { stamp, bytes: tree::length(&stat), executable, origin })
    }

    fn add_link(&mut self, entry: &WalkEntry<'_>) -> io::Result<Option<CopiedEntry>> {
        let target = entry.target()?;
        let path = ScopePath::parse_bytes(entry.path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        // A link to a hidden path would reveal its name. Links in the folder below the workspace were made by a stage,
        // which may make any link in its copy.
        let leads_to = link::destination(&path, Path::new(&target));
        if leads_to.is_ok_and(|leads_to| self.scope.is_hidden(&leads_to)) && self.origin != CopySource::Below {
            return Ok(None);
        }
        rustix::fs::symlinkat(&target, self.into(entry)?, entry.name)?;
        let origin = self.is_workspace().then(|| Stamp::from_stat(&entry.stat));
        Ok(Some(CopiedEntry::Link { target, origin }))
    }

    /// Creates an empty directory and its parents. No entry of the workspace is copied into it.
    fn make_mount_point(&mut self, path: &ScopePath) -> Result<(), StageError> {
        let mut at = PathBuf::new();
        for name in path.names() {
            at.push(name);
            let (parent, name) = self.copy.parent(&at).map_err(|source| StageError::io(&at, source))?;
            match rustix::fs::mkdirat(&parent, name, tree::DIRECTORY_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(StageError::io(&at, error.into())),
            }
            self.facts.entry(at.clone()).or_insert(CopiedEntry::Directory { partial: false });
        }
        self.left_out.insert(at);
        Ok(())
    }

    /// Returns the directory of the copy that corresponds to the entry's parent. It stays open for the next entry.
    fn into(&mut self, entry: &WalkEntry<'_>) -> io::Result<&OwnedFd> {
        let parent = entry.path.parent().unwrap_or(Path::new(""));
        if self.into.as_ref().is_none_or(|(path, _)| path != parent) {
            self.into = Some((parent.to_owned(), self.copy.directory(parent)?));
        }
        match &self.into {
            Some((_, directory)) => Ok(directory),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Records that an entry was omitted, and marks the directories above it as partial.
    fn note_left_out(&mut self, path: &Path) {
        self.left_out.insert(path.to_owned());
        for above in path.ancestors().skip(1) {
            if let Some(CopiedEntry::Directory { partial }) = self.facts.get_mut(above) {
                *partial = true;
            }
        }
    }
}

/// Returns the time of the clock that file systems use for stamps, in seconds and nanoseconds.
fn file_clock() -> (i64, i64) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}
