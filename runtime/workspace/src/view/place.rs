//! The place of a path in a view: its entry, and the directory through which it is opened or changed.
//!
//! On a folder it holds the path's directory open, so that the examined entry is the changed one. With a layer it
//! holds the directory below it in which the entry was found; changes go to the layer.

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

/// The place of a path.
pub(super) struct Place<'v> {
    /// The entry; none if it could be created.
    pub(super) found: Option<Metadata>,
    pub(super) holder: Holder<'v>,
}

/// The holder of a path's entry.
pub(super) enum Holder<'v> {
    /// A directory in which the view changes entries.
    Disk(&'v Root, Directory<'v>),
    /// A layer.
    Layer(&'v LayerStack, Origin<'v>),
}

/// Source of an entry in a view with a layer.
pub(super) enum Origin<'v> {
    /// Nothing is there.
    Nowhere,
    /// A file of the layer.
    Content(Arc<Content>),
    /// A directory or a link of the layer.
    Layer,
    /// In this directory below the layer.
    Lower(&'v Root, Directory<'v>),
}

/// An entry below a layer.
pub(super) struct EntryBelow<'v> {
    pub(super) root: &'v Root,
    pub(super) directory: Directory<'v>,
    pub(super) metadata: Metadata,
}

/// The last name of a path, for calls that take a name in a directory; the root itself is `.`.
pub(super) fn last_name(path: &ScopePath) -> &Path {
    Path::new(path.name().unwrap_or("."))
}

impl Files {
    /// The folder it works on; an error with the layer where it works on that.
    pub(super) fn on_disk(&self) -> Result<&Root, &LayerStack> {
        match self {
            Self::Root(root) => Ok(root),
            Self::Layer(layered) => layered.merged().ok_or(layered),
        }
    }
}

impl View {
    /// Finds a path without opening or following it. The directory it lies in must exist.
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

    /// As [`View::find`], for a path at which something must be.
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

    /// True when the layer itself has the directory a path lies in.
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

    /// Finds the entry of a path below a layer: in the first folder that has it. Not found when no folder has the directory of the path.
    /// An entry that is not a directory hides the entries of the folders below it.
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

    /// True when something would show at a path if the layer had nothing there.
    pub(super) fn shows_below(&self, layered: &LayerStack, operation: Operation, path: &ScopePath) -> bool {
        !matches!(
            self.find_below(layered, operation, path),
            Ok(None) | Err(ViewError::NotFound | ViewError::NotADirectory)
        )
    }
}

impl Place<'_> {
    /// Makes a directory where nothing is.
    pub(super) fn make_directory(&self, path: &ScopePath) -> Result<(), Errno> {
        match &self.holder {
            Holder::Disk(_, directory) => {
                rustix::fs::mkdirat(directory, last_name(path), rustix::fs::Mode::from_raw_mode(0o777))
            }
            Holder::Layer(layered, _) => layered.layer().make_directory(path),
        }
    }
}
