//! The folders below the changes of a stage, and the part of them that a scope shows.
//!
//! From top to bottom: layers, the run's workspace, and files of earlier stages at ignored paths. All of them are only read.

use crate::stage_error::StageError;
use crate::tree::{Stamp, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Parts of a stage's workspace that do not come from the run's workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewOverrides {
    /// Folders whose content overrides the workspace's, the first on top. The scope does not hide their entries, but
    /// changes of them are still checked. If a layer and the workspace have the same path, either both have a directory
    /// or the layer has a file.
    pub layers: Vec<PathBuf>,
    /// Paths at which the jail mounts something. Each one is an empty directory, created with its parents. Nothing of
    /// the workspace shows in it, and nothing in it is ever committed.
    pub mount_points: Vec<ScopePath>,
    /// Folders of the workspace that commands see with other permissions than it has, such as a read-only folder.
    pub closed: BTreeMap<String, u32>,
    /// Folder below the workspace with files of earlier stages at ignored paths. Paths that the scope hides do not show through.
    pub below: Option<PathBuf>,
}

/// The folders below the folder or layer that takes the changes.
#[derive(Debug)]
pub(crate) struct LowerFolders {
    pub(crate) workspace: Tree,
    pub(crate) layers: Vec<Tree>,
    /// The folder below the workspace.
    pub(crate) below: Option<Tree>,
    pub(crate) mount_points: Vec<ScopePath>,
    pub(crate) scope: Scope,
    /// Time when the stage began, in seconds and nanoseconds. It is not read from the coarse clock: a file that was
    /// examined before it was changed has a more precise time than that clock.
    pub(crate) begun: (i64, i64),
}

impl LowerFolders {
    /// Opens all folders for a stage that begins now.
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

    /// Returns every tree, the first on top.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.layers.iter().chain([&self.workspace]).chain(&self.below)
    }

    /// Returns the status of a path in the first tree that has it.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        self.trees().find_map(|tree| tree.stat_below_folders(path).transpose()).transpose()
    }
}

/// A file whose change time is further in the future was changed before the clock was set back. Clocks of a machine and of a
/// file server differ less.
const AHEAD_SECONDS_MAX: i64 = 3_600;

/// Returns true if a file with this change time was changed after `begun`. All times are in seconds and nanoseconds.
pub(crate) fn is_between(changed: (i64, i64), begun: (i64, i64), now: (i64, i64)) -> bool {
    changed > begun && changed.0.saturating_sub(now.0) <= AHEAD_SECONDS_MAX
}

/// Returns the current time of this machine's clock.
pub(crate) fn now() -> (i64, i64) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    (now.tv_sec, now.tv_nsec)
}

/// Returns the current time of this machine's clock, or that of the file system if it is later.
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

/// Returns true if new files in the folder get their times from this machine's clock.
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

/// Returns true if a stage with this scope sees the entry at the path.
pub(crate) fn is_seen(kind: FileType, scope: &Scope, path: &Path) -> bool {
    is_visible(kind, access(scope, path))
}

/// Returns true if an entry of this kind exists for a stage. A path that the stage may only traverse must be a directory.
pub(crate) fn is_visible(kind: FileType, access: Access) -> bool {
    match kind {
        FileType::Directory => access >= Access::Traverse,
        FileType::RegularFile | FileType::Symlink => access >= Access::Read,
        _ => false,
    }
}

/// Returns the access to a path. A path that is not a valid scope path is absent.
pub(crate) fn access(scope: &Scope, path: &Path) -> Access {
    ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).map_or(Access::Absent, |path| scope.access(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_time_from_before_the_clock_was_set_back_is_no_change() {
        let (begun, now) = ((1_000_000, 5), (1_000_060, 0));
        for (changed, expected) in [
            ((999_999, 0), false),
            (begun, false),
            ((1_000_000, 6), true),
            (now, true),
            // A file server whose clock is ahead.
            ((1_000_090, 0), true),
            // The clock showed a day more when the file was written.
            ((1_086_400, 0), false),
        ] {
            assert_eq!(is_between(changed, begun, now), expected, "{changed:?}");
        }
    }
}
