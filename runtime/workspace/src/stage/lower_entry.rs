//! Looks up a path in the workspace and its layers as a stage with an overlay saw it.
//!
//! The initial files are not recorded when a stage starts. They are looked up when the stage has ended, so the
//! workspace must not change during the stage. The change time of a file (ctime) reveals a concurrent change. Lookups
//! only read, and are cached.

use super::decide::{Baseline, LowerKind};
use crate::change::Op;
use crate::lower::{self, LowerFolders, access, is_visible};
use crate::overlay::mask;
use crate::tree::{self, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use rustix::fs::{FileType, Stat};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The lower entry of one path.
#[derive(Clone, Copy)]
pub(super) struct LowerEntry {
    /// The kind that the stage saw.
    pub(super) kind: Option<LowerKind>,
    /// The metadata that the stage saw; `None` for entries that exist only because the jail mounts something there.
    pub(super) stat: Option<Stat>,
    /// True if the workspace has an entry at the path that the stage could not see.
    is_left_out: bool,
    /// True if the visible entry comes from the workspace.
    is_workspace: bool,
}

impl LowerEntry {
    const NOTHING: Self = Self { kind: None, stat: None, is_left_out: false, is_workspace: false };
    const LEFT_OUT: Self = Self { is_left_out: true, ..Self::NOTHING };
}

/// Looks up paths in the folders below a stage's changes.
pub(super) struct Lookup<'o> {
    lower: &'o LowerFolders,
    known: RefCell<HashMap<PathBuf, LowerEntry>>,
    partial: RefCell<HashMap<PathBuf, bool>>,
    /// The directory of the workspace that was opened last.
    parent: RefCell<Option<(PathBuf, Option<OwnedFd>)>>,
}

impl<'o> Lookup<'o> {
    pub(super) fn new(lower: &'o LowerFolders) -> Self {
        Self { lower, known: RefCell::default(), partial: RefCell::default(), parent: RefCell::default() }
    }

    /// Returns the entry at a path.
    pub(super) fn entry(&self, path: &Path) -> io::Result<LowerEntry> {
        if let Some(known) = self.known.borrow().get(path) {
            return Ok(*known);
        }
        let found = self.look(path)?;
        self.known.borrow_mut().insert(path.to_owned(), found);
        Ok(found)
    }

    fn look(&self, path: &Path) -> io::Result<LowerEntry> {
        if path.as_os_str().is_empty() {
            return Ok(LowerEntry { kind: Some(LowerKind::Directory), ..LowerEntry::NOTHING });
        }
        let scope_path = ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).ok();
        let mounts = |is: &dyn Fn(&ScopePath, &ScopePath) -> bool| {
            scope_path.as_ref().is_some_and(|path| self.lower.mount_points.iter().any(|mount| is(path, mount)))
        };
        if mounts(&|path, mount| path == mount) {
            return Ok(LowerEntry { kind: Some(LowerKind::Directory), ..LowerEntry::LEFT_OUT });
        }
        if mounts(&|path, mount| path.is_below(mount)) {
            return Ok(LowerEntry::LEFT_OUT);
        }
        let found = self.look_through(path)?;
        if found.kind.is_none() && mounts(&|path, mount| mount.is_below(path)) {
            return Ok(LowerEntry { kind: Some(LowerKind::Directory), ..found });
        }
        Ok(found)
    }

    /// Looks up a path in the layers, from top to bottom, and then in the workspace.
    fn look_through(&self, path: &Path) -> io::Result<LowerEntry> {
        for layer in &self.lower.layers {
            if let Some(stat) = layer.stat_below_folders(path)? {
                return Ok(LowerEntry { kind: kind(&stat), stat: Some(stat), ..LowerEntry::NOTHING });
            }
        }
        let Some(stat) = self.stat_workspace(path)? else { return self.look_below(path) };
        if is_visible(FileType::from_raw_mode(stat.st_mode), access(&self.lower.scope, path)) {
            return Ok(LowerEntry { kind: kind(&stat), stat: Some(stat), is_left_out: false, is_workspace: true });
        }
        Ok(LowerEntry::LEFT_OUT)
    }

    /// Looks up a path in the folder below the workspace. Its entry shows only if all parents are directories for the stage.
    fn look_below(&self, path: &Path) -> io::Result<LowerEntry> {
        let Some(below) = &self.lower.below else { return Ok(LowerEntry::NOTHING) };
        let above = path.parent().unwrap_or(Path::new(""));
        if self.entry(above)?.kind != Some(LowerKind::Directory) || access(&self.lower.scope, path) == Access::Hidden {
            return Ok(LowerEntry::NOTHING);
        }
        let found = below.stat_below_folders(path)?;
        Ok(found.map_or(LowerEntry::NOTHING, |stat| LowerEntry {
            kind: kind(&stat),
            stat: Some(stat),
            ..LowerEntry::NOTHING
        }))
    }

    fn stat_workspace(&self, path: &Path) -> io::Result<Option<Stat>> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        let mut parent = self.parent.borrow_mut();
        if parent.as_ref().is_none_or(|(at, _)| at != above) {
            let opened = match self.lower.workspace.directory(above) {
                Err(error) if tree::is_unreachable(&error) => None,
                other => Some(other?),
            };
            *parent = Some((above.to_owned(), opened));
        }
        match parent.as_ref() {
            Some((_, Some(directory))) => tree::stat_at(directory, name),
            _ => Ok(None),
        }
    }

    /// Opens the file that the stage saw.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let from_layer = self.lower.layers.iter().find_map(|layer| layer.file(path).ok());
        if let Some(file) = from_layer {
            return Ok(file);
        }
        match (self.lower.workspace.file(path), &self.lower.below) {
            (Err(error), Some(below)) if tree::is_absent(&error) => below.file(path),
            (other, _) => other,
        }
    }

    /// Returns the target of the link that the stage saw.
    pub(super) fn target(&self, path: &Path) -> io::Result<OsString> {
        for tree in self.lower.trees() {
            if tree.stat_below_folders(path)?.is_some() {
                let (parent, name) = tree.parent(path)?;
                return tree::read_link(&parent, name);
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Visits all entries below a directory that the stage saw.
    pub(super) fn each_below<E: From<io::Error>>(
        &self,
        start: &Path,
        visit: &mut dyn FnMut(&Path, LowerKind) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pending = vec![start.to_owned()];
        while let Some(at) = pending.pop() {
            for name in self.names(&at)? {
                let path = at.join(name);
                let Some(kind) = self.entry(&path)?.kind else { continue };
                visit(&path, kind)?;
                if kind == LowerKind::Directory {
                    pending.push(path);
                }
            }
        }
        Ok(())
    }

    fn names(&self, at: &Path) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for tree in self.lower.trees() {
            names.extend(names_in(tree, at)?);
        }
        Ok(names)
    }
}

impl Baseline for Lookup<'_> {
    fn scope(&self) -> &Scope {
        &self.lower.scope
    }

    fn workspace_has(&self, path: &Path) -> io::Result<bool> {
        Ok(self.stat_workspace(path)?.is_some())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<LowerKind>> {
        Ok(self.entry(path)?.kind)
    }

    fn is_left_out(&self, path: &Path) -> io::Result<bool> {
        Ok(self.entry(path)?.is_left_out)
    }

    fn is_partial(&self, path: &Path) -> io::Result<bool> {
        if let Some(known) = self.partial.borrow().get(path) {
            return Ok(*known);
        }
        let mut partial = false;
        if self.entry(path)?.kind == Some(LowerKind::Directory) {
            mask::unseen(&self.lower.workspace, &self.lower.scope, path, &mut |_| {
                partial = true;
                Ok(false)
            })?;
        }
        self.partial.borrow_mut().insert(path.to_owned(), partial);
        Ok(partial)
    }

    /// Compares the change time (ctime). If it is later than the start of the view, there was a concurrent change. A
    /// change in the same clock tick as the start is treated as an earlier change, because the previous stage may have
    /// made it. A removed file is not detected.
    fn is_stale(&self, path: &Path, op: &Op) -> io::Result<bool> {
        let LowerEntry { kind: Some(kind), stat: Some(stat), is_workspace: true, .. } = self.entry(path)? else {
            return Ok(false);
        };
        let is_same_use = kind == LowerKind::Directory && matches!(op, Op::MakeDir { .. } | Op::RemoveDir);
        let changed = tree::Stamp::from_stat(&stat).changed();
        Ok(!is_same_use && lower::is_between(changed, self.lower.begun, lower::now()))
    }
}

fn kind(stat: &Stat) -> Option<LowerKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Some(LowerKind::Directory),
        FileType::RegularFile => Some(LowerKind::File),
        FileType::Symlink => Some(LowerKind::Link),
        _ => None,
    }
}

fn names_in(tree: &Tree, at: &Path) -> io::Result<Vec<OsString>> {
    match tree.directory(at) {
        Ok(directory) => tree::names(&directory),
        Err(error) if tree::is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
