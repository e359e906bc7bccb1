//! The folders under the changes of a stage, and the part of them that a scope shows.
//!
//! From the top: layers, the run's workspace, and files of earlier stages at ignored paths. They are only read.

use crate::stage_error::StageError;
use crate::tree::{Stamp, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use rustix::fs::{FileType, Stat};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Parts of a stage's workspace that do not come from the run's workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewOverrides {
    /// Folders whose content lies over the workspace's, the first on top. The scope does not apply to them, the verdict about
    /// changes does. Where a layer and the workspace have the same path, both have a directory or the layer has a file.
    pub layers: Vec<PathBuf>,
    /// Paths at which the jail mounts something: empty directories, made with those above them, in which nothing of the
    /// workspace shows and nothing is ever committed.
    pub mount_points: Vec<ScopePath>,
    /// Folder below the workspace: files of earlier stages at ignored paths. Paths that the scope hides do
    /// not show through.
    pub below: Option<PathBuf>,
}

/// The folders under the one, or under the layer, that takes the changes.
#[derive(Debug)]
pub(crate) struct LowerFolders {
    pub(crate) workspace: Tree,
    pub(crate) layers: Vec<Tree>,
    /// The folder below the workspace.
    pub(crate) below: Option<Tree>,
    pub(crate) mount_points: Vec<ScopePath>,
    pub(crate) scope: Scope,
    /// Time when the stage began, in seconds and nanoseconds. Not the coarse clock: a file that was examined before it was
    /// changed has a finer time than that.
    pub(crate) begun: (i64, i64),
}

impl LowerFolders {
    /// Opens everything, for a stage that begins now.
    pub(crate) fn open(workspace: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        let layers = open_all(&overrides.layers)?;
        let below = open_all(overrides.below.as_slice())?.pop();
        let workspace_tree = Tree::open(workspace).map_err(|source| StageError::io(workspace, source))?;
        Ok(Self {
            workspace: workspace_tree,
            layers,
            below,
            mount_points: overrides.mount_points.clone(),
            scope: scope.clone(),
            begun: now(),
        })
    }

    /// Every tree, the first on top.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.layers.iter().chain([&self.workspace]).chain(&self.below)
    }

    /// Returns the status of a path in the first tree that has it.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        self.trees().find_map(|tree| tree.stat_below_folders(path).transpose()).transpose()
    }
}

fn now() -> (i64, i64) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    (now.tv_sec, now.tv_nsec)
}

/// Returns now, by this machine's clock or by that of the file system if it is ahead.
pub(crate) fn begun(fresh: &impl AsFd) -> io::Result<(i64, i64)> {
    Ok(now().max(Stamp::from_stat(&rustix::fs::fstat(fresh)?).changed()))
}

/// Types of file systems that take times from this machine's clock.
const LOCAL: [u64; 8] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0xca45_1a4e, // bcachefs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
];

/// True when times of new files in the folder are those of this machine's clock.
#[expect(clippy::cast_sign_loss, reason = "the type differs between architectures")]
pub(crate) fn has_local_clock(folder: &Tree) -> io::Result<bool> {
    Ok(LOCAL.contains(&(rustix::fs::fstatfs(folder)?.f_type as u64 & 0xffff_ffff)))
}

/// Opens a folder of the host.
pub(crate) fn open(path: &Path) -> Result<Tree, StageError> {
    Tree::open(path).map_err(|source| StageError::io(path, source))
}

/// Opens folders of the host.
pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Vec<Tree>, StageError> {
    paths.iter().map(|path| open(path)).collect()
}

/// True when a stage with this scope sees the entry at the path.
pub(crate) fn is_seen(kind: FileType, scope: &Scope, path: &Path) -> bool {
    is_visible(kind, access(scope, path))
}

/// True when an entry of this kind exists for a stage: a path that the stage may only pass through must be a directory.
pub(crate) fn is_visible(kind: FileType, access: Access) -> bool {
    match kind {
        FileType::Directory => access >= Access::Traverse,
        FileType::RegularFile | FileType::Symlink => access >= Access::Read,
        _ => false,
    }
}

/// Returns the access to a path; one that is not a valid scope path does not exist.
pub(crate) fn access(scope: &Scope, path: &Path) -> Access {
    ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).map_or(Access::Absent, |path| scope.access(&path))
}
