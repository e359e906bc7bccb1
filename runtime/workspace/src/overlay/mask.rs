//! The overlay layer that hides entries that a stage must not see.
//!
//! A whiteout hides a name completely: in lookups, in listings and as a mount point. Directories that the scope grants
//! as a whole are not listed, so the cost depends on the entries of the scope and not on the number of files.

use super::attributes::set_opaque;
use crate::lower::{ViewOverrides, access, is_visible};
use crate::tree::{self, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Visits the topmost hidden paths of the workspace at or below the directory `start`. `visit` returns whether to
/// continue. Names that are not UTF-8 are not visited in a subtree that the scope grants as a whole; a run's workspace
/// has no such names.
pub(crate) fn unseen(
    workspace: &Tree,
    scope: &Scope,
    start: &Path,
    visit: &mut dyn FnMut(&Path) -> io::Result<bool>,
) -> io::Result<()> {
    let mut pending = vec![start.to_owned()];
    while let Some(at) = pending.pop() {
        let Ok(path) = ScopePath::parse_bytes(at.as_os_str().as_encoded_bytes()) else { continue };
        if scope.grants_all_below(&path) {
            for hidden in scope.hidden.iter().map(|entry| entry.path()).filter(|hidden| hidden.is_below(&path)) {
                let is_topmost = !hidden.parent().is_some_and(|above| scope.is_hidden(&above));
                let hidden = Path::new(hidden.as_str());
                if is_topmost && workspace.stat(hidden)?.is_some() && !visit(hidden)? {
                    return Ok(());
                }
            }
            continue;
        }
        let directory = match workspace.directory(&at) {
            Err(error) if tree::is_absent(&error) => continue,
            other => other?,
        };
        for name in tree::names(&directory)? {
            let Some(stat) = tree::stat_at(&directory, &name)? else { continue };
            let (path, kind) = (at.join(&name), FileType::from_raw_mode(stat.st_mode));
            if !is_visible(kind, access(scope, &path)) {
                if !visit(&path)? {
                    return Ok(());
                }
            } else if kind == FileType::Directory {
                pending.push(path);
            }
        }
    }
    Ok(())
}

/// Fills the new folder `mask` with whiteouts for hidden entries and with directories for mount points.
pub(super) fn fill(
    mask: &Tree,
    workspace: &Tree,
    below: Option<&Tree>,
    scope: &Scope,
    overrides: &ViewOverrides,
) -> io::Result<()> {
    let mut filling = MaskBuilder { mask, workspace, made: BTreeSet::new(), node: None };
    for path in &overrides.mount_points {
        filling.make_mount_point(Path::new(path.as_str()))?;
    }
    let mut hidden = BTreeSet::new();
    unseen(workspace, scope, Path::new(""), &mut |path| {
        hidden.insert(path.to_owned());
        filling.hide(path).map(|()| true)
    })?;
    for path in below.iter().flat_map(|_| &scope.hidden).map(|entry| Path::new(entry.path().as_str())) {
        // The folder below the workspace may have entries that the workspace does not have.
        let is_hidden = path.ancestors().any(|above| hidden.contains(above));
        if !is_hidden && below.map(|below| below.stat(path)).transpose()?.flatten().is_some() {
            hidden.insert(path.to_owned());
            filling.hide(path)?;
        }
    }
    filling.close(overrides, scope)?;
    filling.keep_attributes(overrides)
}

struct MaskBuilder<'m> {
    mask: &'m Tree,
    workspace: &'m Tree,
    made: BTreeSet<PathBuf>,
    /// An existing whiteout, for hard links.
    node: Option<(OwnedFd, OsString)>,
}

impl MaskBuilder<'_> {
    /// Creates a directory in which no lower entries show.
    fn make_mount_point(&mut self, path: &Path) -> io::Result<()> {
        self.make_directories(path)?;
        if self.workspace.stat(path)?.is_some() { set_opaque(&self.mask.directory(path)?) } else { Ok(()) }
    }

    /// Hides a path with a whiteout, or with an opaque directory if a mount needs a directory there.
    fn hide(&mut self, path: &Path) -> io::Result<()> {
        if self.made.contains(path) {
            return set_opaque(&self.mask.directory(path)?);
        }
        self.make_directories(path.parent().unwrap_or(Path::new("")))?;
        let (parent, name) = self.mask.parent(path)?;
        // All whiteouts are hard links to one node, as the kernel does it: a link costs a tenth of a node. The link
        // count of a node is limited.
        let linked = self.node.as_ref().is_some_and(|(directory, node)| {
            let linked = rustix::fs::linkat(directory, node, &parent, name, AtFlags::empty());
            matches!(linked, Ok(()) | Err(Errno::EXIST))
        });
        if !linked {
            rustix::fs::mknodat(&parent, name, FileType::CharacterDevice, Mode::empty(), 0)?;
            self.node = Some((parent, name.to_owned()));
        }
        Ok(())
    }

    fn make_directories(&mut self, path: &Path) -> io::Result<()> {
        let mut at = PathBuf::new();
        for name in path.components() {
            at.push(name);
            if self.made.insert(at.clone()) {
                let (parent, name) = self.mask.parent(&at)?;
                rustix::fs::mkdirat(&parent, name, tree::DIRECTORY_MODE)?;
            }
        }
        Ok(())
    }

    /// Creates the directories that the stage sees with other permissions. A directory that is hidden from the stage stays
    /// hidden, and one that is no longer in the workspace is left out.
    fn close(&mut self, overrides: &ViewOverrides, scope: &Scope) -> io::Result<()> {
        for path in overrides.closed.keys().map(Path::new) {
            let is_seen = path.ancestors().all(|above| access(scope, above) >= Access::Traverse);
            let stat = self.workspace.stat_below_folders(path)?;
            let is_there = stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            if is_seen && is_there {
                self.make_directories(path)?;
            }
        }
        Ok(())
    }

    /// Sets the permissions and times of each directory to those of the workspace, because the merged directory shows
    /// those of the mask.
    fn keep_attributes(&self, overrides: &ViewOverrides) -> io::Result<()> {
        for path in self.made.iter().rev() {
            let directory = self.mask.directory(path)?;
            let known =
                self.workspace.stat(path)?.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            match known {
                Some(stat) => {
                    let closed = path.to_str().and_then(|path| overrides.closed.get(path));
                    let mode = closed.map_or(tree::copied_directory_mode(&stat), |mode| Mode::from_raw_mode(*mode));
                    tree::keep_times(&directory, &stat)?;
                    rustix::fs::fchmod(&directory, mode)?;
                }
                None => rustix::fs::fchmod(&directory, tree::DIRECTORY_MODE)?,
            }
        }
        Ok(())
    }
}
