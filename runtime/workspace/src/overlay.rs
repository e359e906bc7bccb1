//! The overlay for a stage: a mask and layers over the run's workspace, and a folder for the stage's changes.
//!
//! This module mounts nothing: a process with a mount namespace mounts the overlay from [`Overlay::source`]. The cost
//! does not depend on the number of files. The stage's own folder contains `mask`, `upper` and `work`, which are not
//! visible inside the overlay.

pub(crate) mod attributes;
pub(crate) mod mask;

use crate::change::{ChangedFiles, FoundChange};
use crate::lower::{self, LowerFolders, ViewOverrides, open_all};
use crate::stage_error::StageError;
use crate::tree::{self, Tree};
use glovebox_jail_helper::policy::Source;
use glovebox_record::scope::Scope;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A workspace seen through a scope. Changes are written to a separate folder.
#[derive(Debug)]
pub struct Overlay {
    at: PathBuf,
    source: Source,
    pub(crate) upper: Tree,
    /// Device number of the file system that contains the changes.
    pub(crate) device: u64,
    pub(crate) lower: LowerFolders,
}

impl Overlay {
    pub(crate) fn create(
        workspace: &Path,
        at: &Path,
        scope: &Scope,
        overrides: &ViewOverrides,
    ) -> Result<Self, StageError> {
        let failed = |source| StageError::io(at, source);
        let source = Tree::open(workspace).map_err(|source| StageError::io(workspace, source))?;
        let layers = open_all(&overrides.layers)?;
        let below = open_all(overrides.below.as_slice())?.pop();
        drop(Tree::create(at).map_err(failed)?);
        let mask = Tree::create(&at.join("mask")).map_err(failed)?;
        mask::fill(&mask, &source, below.as_ref(), scope, overrides).map_err(failed)?;
        let upper = Tree::create(&at.join("upper")).map_err(failed)?;
        let top = upper.directory(Path::new("")).map_err(failed)?;
        rustix::fs::fchmod(&top, tree::DIRECTORY_MODE).map_err(|error| failed(error.into()))?;
        drop(Tree::create(&at.join("work")).map_err(failed)?);
        let begun = lower::begun(&top).map_err(failed)?;
        let device = upper.inode().map_err(failed)?.0;
        let lower = LowerFolders {
            workspace: source,
            layers,
            below,
            mount_points: overrides.mount_points.clone(),
            scope: scope.clone(),
            begun,
        };
        let source = layered(workspace, at, overrides);
        Ok(Self { at: at.to_owned(), source, upper, device, lower })
    }

    /// Returns the folders to mount, with unresolved paths. A jail resolves them when it is opened.
    pub fn source(&self) -> Source {
        self.source.clone()
    }

    /// Removes the changes and the folders of the mount. The overlay cannot be used afterwards.
    pub(crate) fn clear(&self) -> Result<(), StageError> {
        ["upper", "work", "mask"].into_iter().try_for_each(|name| {
            let folder = self.at.join(name);
            tree::remove_all(&folder).map_err(|source| StageError::io(&folder, source))
        })
    }

    /// Removes the stage's own folder.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses.
    pub fn remove(self) -> Result<(), StageError> {
        tree::remove_all(&self.at).map_err(|source| StageError::io(&self.at, source))
    }
}

impl ChangedFiles for Overlay {
    fn open(&self, change: &FoundChange) -> io::Result<File> {
        self.upper.file(&change.raw)
    }
}

fn layered(workspace: &Path, at: &Path, overrides: &ViewOverrides) -> Source {
    let mask = at.join("mask");
    let above = overrides.layers.iter().map(PathBuf::as_path);
    let below = above.chain([workspace]).chain(overrides.below.as_deref());
    let lower = [mask.as_path()].into_iter().chain(below).map(Path::to_owned).collect();
    Source::Overlay { lower, upper: at.join("upper"), work: at.join("work") }
}

/// Returns a path of the host in the form that a jail needs: absolute, without links, valid UTF-8.
pub(crate) fn resolved(path: &Path) -> Result<PathBuf, StageError> {
    let whole = crate::canonical::canonical(path).map_err(|source| StageError::io(path, source))?;
    if whole.to_str().is_some() {
        return Ok(whole);
    }
    Err(StageError::io(path, io::Error::new(io::ErrorKind::InvalidInput, "the path is not valid UTF-8")))
}

/// Returns true if the workspace belongs to this user and group. In a user namespace that maps a single id, files of
/// other users cannot be copied up.
pub(crate) fn is_owned_by_user(workspace: &Path) -> Result<bool, StageError> {
    let stat = rustix::fs::stat(workspace).map_err(|error| StageError::io(workspace, error.into()))?;
    let ours = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Ok((stat.st_uid, stat.st_gid) == ours)
}
