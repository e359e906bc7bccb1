//! The files of a stage: a private copy, an overlay over the run's workspace, or a layer over it. After a program ran in it, the content
//! is untrusted.
//!
//! All have the same interface: the files for a jail, the list of changes, the content of a changed file. So one engine
//! decides about changes, stores, applies and quarantines them. Paths that the stage may not see exist in none of them.

mod compare;
mod copy;
mod copy_changes;
mod decide;
pub(crate) mod findings;

mod layer_changes;
mod lower_entry;
mod upper_changes;

pub use crate::change::{ChangeLimits, ChangedFiles, FoundChange, Op, Verdict};
pub use crate::lower::ViewOverrides;
pub use crate::overlay::Overlay;
pub use crate::stage_error::StageError;
pub use copy::Copy;

use crate::ignored::{IgnoreMatcher, IgnoredChanges};
use crate::layer::Layer;
use crate::overlay;
use crate::protect::Protected;
use crate::repository_shape;
use crate::tree::Tree;
use glovebox_jail_helper::policy::Source;
use glovebox_record::scope::Scope;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Rules for the changes of a stage, beside its scope.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRules<'r> {
    /// Caps.
    pub limits: &'r ChangeLimits,
    /// Paths that no stage may change.
    pub protected: &'r Protected,
    /// Ignored paths: neither committed nor a violation.
    pub ignored: &'r IgnoreMatcher,
}

/// Changes of a stage.
#[derive(Debug)]
pub struct StageChanges {
    /// Changes with their verdicts, by path.
    pub found: Vec<FoundChange>,
    /// Changes at paths that git ignores.
    pub ignored: IgnoredChanges,
}

/// The files of one stage.
#[derive(Debug)]
pub enum WorkspaceView {
    /// A private copy.
    Copy(Copy),
    /// An overlay. A process with its own mount namespace mounts it.
    Overlay(Overlay),
    /// A layer, which becomes an overlay when something mounts it.
    Layer(Arc<Layer>),
}

impl WorkspaceView {
    /// Copies what `scope` lets a stage see to the new folder `at`. Denied: everything hidden or not granted does not exist.
    ///
    /// # Errors
    /// [`StageError::Io`] when `at` exists already or the system refuses.
    pub fn copy(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Copy::with_overrides(workspace, at, scope, overrides).map(Self::Copy)
    }

    /// Prepares an overlay in the new folder `at`. Denied: everything hidden or not granted does not exist; the workspace is
    /// only read. It must not change until the changes have been found: a file that did is not committed.
    ///
    /// # Errors
    /// [`StageError::Io`] when `at` exists already or the system refuses.
    pub fn overlay(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Overlay::create(workspace, at, scope, overrides).map(Self::Overlay)
    }

    /// Makes a layer for a component; `at` is made when the stage changes something. Denied: as for an overlay.
    ///
    /// # Errors
    /// [`StageError::Io`] when the system refuses.
    pub fn layer(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Layer::open(workspace, at, scope, overrides).map(Self::Layer)
    }

    /// Makes a layer for a component that may run commands: it becomes an overlay with the first one. Makes a copy if files of the
    /// workspace belong to other users, because an overlay cannot copy those up.
    ///
    /// # Errors
    /// As [`WorkspaceView::copy`] and [`WorkspaceView::layer`].
    pub fn layer_to_mount(
        workspace: &Path,
        at: &Path,
        scope: &Scope,
        overrides: &ViewOverrides,
    ) -> Result<Self, StageError> {
        match overlay::is_ours(workspace)? {
            true => Self::layer(workspace, at, scope, overrides),
            false => Self::copy(workspace, at, scope, overrides),
        }
    }

    /// Prepares an overlay. Makes a copy if files of the workspace belong to other users, because an overlay cannot copy those up.
    ///
    /// # Errors
    /// As [`WorkspaceView::copy`] and [`WorkspaceView::overlay`].
    pub fn choose(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        match overlay::is_ours(workspace)? {
            true => Self::overlay(workspace, at, scope, overrides),
            false => Self::copy(workspace, at, scope, overrides),
        }
    }

    /// Returns where a jail takes the files from.
    ///
    /// # Errors
    /// [`StageError::Io`] when the path of a copy is not UTF-8.
    pub fn source(&self) -> Result<Source, StageError> {
        match self {
            Self::Copy(copy) => overlay::resolved(copy.root()).map(Source::Directory),
            Self::Overlay(overlay) => Ok(overlay.source()),
            Self::Layer(layer) => layer.source(),
        }
    }

    /// Returns the folder with the files; none for an overlay, whose merged folder only the jail has, and for a layer.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Copy(copy) => Some(copy.root()),
            Self::Overlay(_) | Self::Layer(_) => None,
        }
    }

    /// True when the stage has its own folder.
    pub fn has_folder(&self) -> bool {
        match self {
            Self::Copy(_) | Self::Overlay(_) => true,
            Self::Layer(layer) => layer.has_folder(),
        }
    }

    /// Returns the layer, if it is one.
    pub fn as_layer(&self) -> Option<&Arc<Layer>> {
        match self {
            Self::Layer(layer) => Some(layer),
            Self::Copy(_) | Self::Overlay(_) => None,
        }
    }

    /// Lists the stage's changes, by path, each with its verdict: deceiving names, protected paths, scratch (left out
    /// silently), the scope, concurrent changes, folders that would be repositories. Call it when no program of the stage is alive.
    ///
    /// # Errors
    /// [`StageError::Limit`] when the changes exceed `limits`.
    pub fn changes(&self, limits: &ChangeLimits, protected: &Protected) -> Result<Vec<FoundChange>, StageError> {
        let ignored = &IgnoreMatcher::default();
        self.examine(ChangeRules { limits, protected, ignored }).map(|examined| examined.found)
    }

    /// The same, and the changes at ignored paths.
    ///
    /// # Errors
    /// As [`WorkspaceView::changes`].
    pub fn examine(&self, rules: ChangeRules<'_>) -> Result<StageChanges, StageError> {
        let (mut examined, workspace) = match self {
            Self::Copy(copy) => (copy_changes::changes(copy, rules)?, &copy.workspace),
            Self::Overlay(overlay) => (upper_changes::changes(overlay, rules)?, &overlay.lower.workspace),
            Self::Layer(layer) => (layer_changes::changes(layer, rules)?, &layer.lower.workspace),
        };
        let refused = repository_shape::refuse(&mut examined.found, workspace, self);
        refused.map_err(|source| StageError::io(Path::new(""), source))?;
        Ok(examined)
    }

    /// The folder in which the stage's changes lie; a layer is laid out for it.
    pub(crate) fn changed_tree(&self) -> Result<&Tree, StageError> {
        match self {
            Self::Copy(copy) => Ok(&copy.tree),
            Self::Overlay(overlay) => Ok(&overlay.upper),
            Self::Layer(layer) => layer.changed_tree(),
        }
    }

    /// Restores the files of the stage's beginning: all changes of its component and its commands are dropped, also
    /// for a view of the component. Call it when no program of the stage is alive.
    ///
    /// # Errors
    /// [`StageError::Io`] when the system refuses, and for an overlay, which only the jail could mount again.
    pub fn start_over(&mut self) -> Result<(), StageError> {
        match self {
            Self::Copy(copy) => copy.start_over(),
            Self::Layer(layer) => layer.start_over(),
            Self::Overlay(_) => Err(StageError::io(Path::new(""), io::ErrorKind::Unsupported.into())),
        }
    }

    /// Removes the stage's own folder, however deep and unreadable the stage made it. The workspace is not touched.
    ///
    /// # Errors
    /// [`StageError::Io`] when the system refuses.
    pub fn remove(self) -> Result<(), StageError> {
        match self {
            Self::Copy(copy) => copy.remove(),
            Self::Overlay(overlay) => overlay.remove(),
            Self::Layer(layer) => layer.remove_folder(),
        }
    }
}

impl ChangedFiles for WorkspaceView {
    fn open(&self, change: &FoundChange) -> io::Result<File> {
        match self {
            Self::Copy(copy) => copy.open(change),
            Self::Overlay(overlay) => overlay.open(change),
            Self::Layer(layer) => layer.open_changed(&change.raw),
        }
    }
}
