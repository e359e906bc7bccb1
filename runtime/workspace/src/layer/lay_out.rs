//! Turns a layer into the upper folder of an overlay, for the commands of a stage and for storing its files.
//!
//! Contents in the stage's folder are moved, and contents in memory are copied. A removed entry becomes a whiteout, and
//! a directory that hides the lower one becomes opaque. Files that the component has open stay open, and work on the
//! mounted folder afterwards.

use super::Layer;
use super::content::{self, Content};
use super::nodes::{Folder, Node};
use crate::overlay::Overlay;
use crate::overlay::attributes::set_opaque;
use crate::root::Root;
use crate::stage_error::StageError;
use crate::tree::{self, Tree};
use glovebox_jail_helper::policy::Source;
use glovebox_record::path::ScopePath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that the component has open.
struct OpenFile {
    path: PathBuf,
    content: Arc<Content>,
}

impl Layer {
    /// Returns the folders that a jail mounts. The layer must not be changed until [`Layer::work_on`] is called.
    ///
    /// # Errors
    /// [`StageError::Io`] if the files cannot be moved or copied.
    pub(crate) fn source(&self) -> Result<Source, StageError> {
        self.laid_out().map(Overlay::source)
    }

    /// Makes views work on the folder at which the overlay is mounted, as the commands do.
    ///
    /// # Errors
    /// [`StageError::Io`] if the folder cannot be opened.
    pub fn work_on(&self, mounted: &Path) -> Result<(), StageError> {
        let failed = |source: io::Error| StageError::io(mounted, source);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(mounted, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let root = Root::new(fd);
        for OpenFile { path, content } in self.in_use() {
            let scope_path = ScopePath::parse_bytes(path.as_os_str().as_encoded_bytes()).unwrap_or_default();
            content.replace(root.file(&scope_path, OFlags::RDWR).map_err(|error| failed(error.into()))?);
        }
        self.read_merged(&root);
        // Before another jail of the same stage mounts the layer, `reset` is called.
        self.mounted.last().merged.set(root).map_err(|_| failed(Errno::BUSY.into()))
    }

    /// Returns the layer's files as a tree. If the layer was not turned into an overlay, the tree has no whiteouts, and
    /// the layer must not be read afterwards.
    ///
    /// # Errors
    /// [`StageError::Io`] if the files cannot be moved or copied.
    pub(crate) fn changed_tree(&self) -> Result<&Tree, StageError> {
        if let Some(overlay) = self.overlay() {
            return Ok(&overlay.upper);
        }
        if let Some(kept) = self.kept.get() {
            return Ok(kept);
        }
        let failed = |source| StageError::io(&self.at, source);
        self.store.folder().map_err(failed)?;
        let kept = Tree::create(&self.at.join("kept")).map_err(failed)?;
        self.top().each(&mut |path, _, node| match node {
            Node::Removed => Ok(()),
            _ => lay_out_one(&kept, path, node).map_err(|source| StageError::io(path, source)),
        })?;
        Ok(self.kept.get_or_init(|| kept))
    }

    /// Returns the layer as an overlay on disk. Creates it if necessary.
    pub(super) fn laid_out(&self) -> Result<&Overlay, StageError> {
        let mounted = self.mounted.last();
        if let Some(overlay) = mounted.overlay.get() {
            return Ok(overlay);
        }
        // Most stages have no folder yet. The folder of the overlay then becomes the stage's own folder.
        let failed = |source| StageError::io(&self.at, source);
        let is_own = !self.store.has_folder();
        let at = if is_own { self.at.to_owned() } else { self.at.join(format!("overlay-{}", self.store.number())) };
        self.store.make_above().map_err(failed)?;
        let mut overlay = Overlay::create(&self.workspace, &at, &self.lower.scope, &self.overrides)?;
        if is_own {
            self.store.adopt(Tree::open(&at).map_err(failed)?);
        }
        overlay.lower.begun = self.lower.begun;
        let top = self.top();
        let mut folders = Vec::new();
        top.each(&mut |path, _, node| {
            if let Node::Folder(folder) = node {
                folders.push((path.to_owned(), folder));
            }
            lay_out_one(&overlay.upper, path, node).map_err(|source| StageError::io(path, source))
        })?;
        for (path, folder) in folders.into_iter().rev() {
            self.keep_attributes(&overlay.upper, &path, folder).map_err(|source| StageError::io(&path, source))?;
        }
        drop(top);
        Ok(mounted.overlay.get_or_init(|| overlay))
    }

    /// Sets the opaque attribute, the permissions and the times of a directory to those that the stage sees.
    fn keep_attributes(&self, upper: &Tree, path: &Path, folder: &Folder) -> io::Result<()> {
        let directory = upper.directory(path)?;
        if !folder.shows_lower {
            set_opaque(&directory)?;
        }
        let below = if folder.shows_lower { self.lower.stat(path)? } else { None };
        match below.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            Some(stat) => {
                rustix::fs::fchmod(directory.as_fd(), tree::copied_directory_mode(&stat))?;
                tree::keep_times(&directory, &stat)?;
            }
            None => rustix::fs::fchmod(directory.as_fd(), tree::DIRECTORY_MODE)?,
        }
        folder.times.map_or(Ok(()), |times| content::set_times(&directory, times))
    }

    fn in_use(&self) -> Vec<OpenFile> {
        let mut found = Vec::new();
        let each = self.each(&mut |path, _, node| {
            if let Node::File(content) = node
                && content.is_in_use()
            {
                found.push(OpenFile { path: path.to_owned(), content: Arc::clone(content) });
            }
            Ok::<_, std::convert::Infallible>(())
        });
        match each {
            Ok(()) => found,
        }
    }
}

fn lay_out_one(into: &Tree, path: &Path, node: &Node) -> io::Result<()> {
    let (directory, name) = into.parent(path)?;
    match node {
        Node::Removed => rustix::fs::mknodat(&directory, name, FileType::CharacterDevice, Mode::empty(), 0)?,
        Node::File(content) => content.lay_out(&directory, name)?,
        Node::Link(target) => rustix::fs::symlinkat(target, &directory, name)?,
        Node::Folder(_) => rustix::fs::mkdirat(&directory, name, tree::DIRECTORY_MODE)?,
    }
    Ok(())
}
