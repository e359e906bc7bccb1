//! The location of a path in a view: its entry, and the directory through which the entry is opened or changed.
//!
//! In a view of a folder, the parent directory stays open, so that the examined entry is the one that is changed. In a
//! view with a layer, the lower directory in which the entry was found stays open; changes are made in the layer.

use super::error::ViewError;
use super::layer_stack::LayerStack;
use super::metadata::{Kind, Metadata};
use super::refuse::Operation;
use super::{Files, View};
use crate::layer::content::Content;
use crate::layer::nodes::{DirectoryState, PathState};
use crate::root::{Directory, Root};
use glovebox_record::path::ScopePath;
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;

/// The location of a path.
pub(super) struct Place<'v> {
    /// The entry; `None` if it does not exist and could be created.
    pub(super) found: Option<Metadata>,
    pub(super) holder: Holder<'v>,
}

/// The directory or layer in which an entry is changed.
pub(super) enum Holder<'v> {
    /// An open directory, in which the view changes entries.
    Disk(&'v Root, Directory<'v>),
    /// A layer.
    Layer(&'v LayerStack, Origin<'v>),
}

/// Where an entry was found in a view with a layer.
pub(super) enum Origin<'v> {
    /// Nothing exists at the path.
    Nowhere,
    /// A file of the layer.
    Content(Arc<Content>),
    /// A directory or a link of the layer.
    Layer,
    /// An entry in this directory of a lower folder.
    Lower(&'v Root, Directory<'v>),
}

/// An entry of a folder below a layer.
pub(super) struct EntryBelow<'v> {
    pub(super) root: &'v Root,
    pub(super) directory: Directory<'v>,
    pub(super) metadata: Metadata,
}

/// Returns the last component of a path, for calls that take a name in a directory. For the root, it is `.`.
pub(super) fn last_name(path: &ScopePath) -> &Path {
    Path::new(path.name().unwrap_or("."))
}

impl Files {
    /// Returns the folder that the view works on, or the layer as an error if the view works on a layer.
    pub(super) fn on_disk(&self) -> Result<&Root, &LayerStack> {
        match self {
            Self::Root(root) => Ok(root),
            Self::Layer(layered) => layered.merged().ok_or(layered),
        }
    }
}

impl View {
    /// Finds a path without opening or following it. The parent directory must exist.
    pub(super) fn find(&self, operation: Operation, path: &ScopePath) -> Result<Place<'_>, ViewError> {
        match self.files.on_disk() {
            Ok(root) => {
                let directory = self.parent(root, operation, path)?;
                let found = self.lstat(operation, &directory, path)?.map(|stat| Metadata::from_stat(&stat));
                Ok(Place { found, holder: Holder::Disk(root, directory) })
            }
            Err(layered) => self.find_in_layer(layered, operation, path),
        }
    }

    /// As [`View::find`], but a path where nothing exists is [`ViewError::NotFound`].
    pub(super) fn look(&self, operation: Operation, path: &ScopePath) -> Result<(Place<'_>, Metadata), ViewError> {
        let place = self.find(operation, path)?;
        let found = place.found.ok_or(ViewError::NotFound)?;
        Ok((place, found))
    }

    fn find_in_layer<'v>(
        &'v self,
        layered: &'v LayerStack,
        operation: Operation,
        path: &ScopePath,
    ) -> Result<Place<'v>, ViewError> {
        let place = |found, origin| Ok(Place { found, holder: Holder::Layer(layered, origin) });
        let seen = layered.layer().seen(path).map_err(|errno| self.denied(operation, path, errno))?;
        match seen {
            PathState::File(content) => place(Some(Metadata::for_content(&content)?), Origin::Content(content)),
            PathState::Link => place(Some(Metadata::for_link()), Origin::Layer),
            PathState::Directory(seen) => {
                place(Some(self.directory_in_layer(layered, operation, path, seen)?), Origin::Layer)
            }
            PathState::Lower => match self.find_below(layered, operation, path) {
                Ok(Some(EntryBelow { root, directory, metadata })) => {
                    place(Some(metadata), Origin::Lower(root, directory))
                }
                Err(ViewError::NotFound) if !self.has_directory(layered, path) => Err(ViewError::NotFound),
                Ok(None) | Err(ViewError::NotFound) => place(None, Origin::Nowhere),
                Err(denied) => Err(denied),
            },
            PathState::Nothing if self.has_directory(layered, path) => place(None, Origin::Nowhere),
            PathState::Nothing => Err(ViewError::NotFound),
        }
    }

    /// Returns true if the layer itself has the parent directory of a path.
    fn has_directory(&self, layered: &LayerStack, path: &ScopePath) -> bool {
        let parent = path.parent().unwrap_or_default();
        matches!(layered.layer().seen(&parent), Ok(PathState::Directory(_)))
    }

    fn directory_in_layer(
        &self,
        layered: &LayerStack,
        operation: Operation,
        path: &ScopePath,
        seen: DirectoryState,
    ) -> Result<Metadata, ViewError> {
        if !seen.shows_lower {
            return Ok(Metadata::for_directory(seen));
        }
        match self.find_below(layered, operation, path) {
            Ok(Some(EntryBelow { metadata, .. })) if metadata.kind == Kind::Directory => Ok(metadata.changed_by(seen)),
            Ok(_) | Err(ViewError::NotFound) => Ok(Metadata::for_directory(seen)),
            Err(denied) => Err(denied),
        }
    }

    /// Finds the entry of a path in the folders below a layer. The entry of the first folder that has one is returned.
    /// Returns [`ViewError::NotFound`] if no folder has the parent directory. An entry that is not a directory hides
    /// the entries of lower folders.
    pub(super) fn find_below<'v>(
        &'v self,
        layered: &'v LayerStack,
        operation: Operation,
        path: &ScopePath,
    ) -> Result<Option<EntryBelow<'v>>, ViewError> {
        let mut missing = Err(ViewError::NotFound);
        for root in layered.lower() {
            match self.parent(root, operation, path) {
                Ok(directory) => {
                    if let Some(stat) = self.lstat(operation, &directory, path)? {
                        return Ok(Some(EntryBelow { root, directory, metadata: Metadata::from_stat(&stat) }));
                    }
                    missing = Ok(None);
                }
                Err(ViewError::NotFound) => {}
                Err(denied) => return Err(denied),
            }
        }
        missing
    }

    /// Returns true if a lower entry would show at a path without the layer.
    pub(super) fn shows_below(&self, layered: &LayerStack, operation: Operation, path: &ScopePath) -> bool {
        !matches!(
            self.find_below(layered, operation, path),
            Ok(None) | Err(ViewError::NotFound | ViewError::NotADirectory)
        )
    }
}

impl Place<'_> {
    /// Creates a directory at a path where nothing exists.
    pub(super) fn make_directory(&self, path: &ScopePath) -> Result<(), Errno> {
        match &self.holder {
            Holder::Disk(_, directory) => {
                rustix::fs::mkdirat(directory, last_name(path), rustix::fs::Mode::from_raw_mode(0o777))
            }
            Holder::Layer(layered, _) => layered.layer().make_directory(path),
        }
    }
}
