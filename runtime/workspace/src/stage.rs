//! The files of a stage: a private copy, an overlay over the run's workspace, or a layer over it. After a program ran
//! in them, their content is untrusted.
//!
//! All three have the same interface: the files for a jail, the list of changes, and the content of a changed file. So
//! the same code decides about changes, stores, applies and quarantines them. Paths that the stage may not see do not
//! exist in any of them.

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
pub(crate) use decide::{HIDDEN, out_of_scope};

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

/// Rules for the changes of a stage, in addition to its scope.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRules<'r> {
    /// Limits on the changes.
    pub limits: &'r ChangeLimits,
    /// Paths that no stage may change.
    pub protected: &'r Protected,
    /// Ignored paths. Changes of them are neither committed nor a violation.
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
    /// A layer, which becomes an overlay when a jail first mounts it.
    Layer(Arc<Layer>),
}

impl WorkspaceView {
    /// Copies the files that `scope` shows to the new folder `at`. Paths that are hidden or not granted do not exist in the copy.
    ///
    /// # Errors
    /// [`StageError::Io`] if `at` exists or the system refuses.
    pub fn copy(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Copy::with_overrides(workspace, at, scope, overrides).map(Self::Copy)
    }

    /// Prepares an overlay in the new folder `at`. Paths that are hidden or not granted do not exist in it. The
    /// workspace is only read, and must not change until the stage's changes have been listed: if a file changed in the
    /// workspace, the stage's change of that file is not committed.
    ///
    /// # Errors
    /// [`StageError::Io`] if `at` exists or the system refuses.
    pub fn overlay(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Overlay::create(workspace, at, scope, overrides).map(Self::Overlay)
    }

    /// Creates a layer for a component. The folder `at` is created when it is first needed. As for an overlay, paths
    /// that are hidden or not granted do not exist in it.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses.
    pub fn layer(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        Layer::open(workspace, at, scope, overrides).map(Self::Layer)
    }

    /// Creates a layer for a component that may run commands. The layer becomes an overlay with the first command. If
    /// files of the workspace belong to other users, a copy is created instead, because an overlay cannot copy up such
    /// files.
    ///
    /// # Errors
    /// As [`WorkspaceView::copy`] and [`WorkspaceView::layer`].
    pub fn layer_to_mount(
        workspace: &Path,
        at: &Path,
        scope: &Scope,
        overrides: &ViewOverrides,
    ) -> Result<Self, StageError> {
        match overlay::is_owned_by_user(workspace)? {
            true => Self::layer(workspace, at, scope, overrides),
            false => Self::copy(workspace, at, scope, overrides),
        }
    }

    /// Prepares an overlay. If files of the workspace belong to other users, a copy is created instead, because an
    /// overlay cannot copy up such files.
    ///
    /// # Errors
    /// As [`WorkspaceView::copy`] and [`WorkspaceView::overlay`].
    pub fn choose(workspace: &Path, at: &Path, scope: &Scope, overrides: &ViewOverrides) -> Result<Self, StageError> {
        match overlay::is_owned_by_user(workspace)? {
            true => Self::overlay(workspace, at, scope, overrides),
            false => Self::copy(workspace, at, scope, overrides),
        }
    }

    /// Returns the files for a jail.
    ///
    /// # Errors
    /// [`StageError::Io`] if the path of a copy is not UTF-8.
    pub fn source(&self) -> Result<Source, StageError> {
        match self {
            Self::Copy(copy) => overlay::resolved(copy.root()).map(Source::Directory),
            Self::Overlay(overlay) => Ok(overlay.source()),
            Self::Layer(layer) => layer.source(),
        }
    }

    /// Returns the folder with the files. Returns `None` for an overlay, whose merged folder exists only in the jail,
    /// and for a layer.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Copy(copy) => Some(copy.root()),
            Self::Overlay(_) | Self::Layer(_) => None,
        }
    }

    /// Returns true if the stage has a folder of its own.
    pub fn has_folder(&self) -> bool {
        match self {
            Self::Copy(_) | Self::Overlay(_) => true,
            Self::Layer(layer) => layer.has_folder(),
        }
    }

    /// Returns the layer, or `None` for a copy or an overlay.
    pub fn as_layer(&self) -> Option<&Arc<Layer>> {
        match self {
            Self::Layer(layer) => Some(layer),
            Self::Copy(_) | Self::Overlay(_) => None,
        }
    }

    /// Lists the stage's changes by path, each with its verdict. These rules are checked: deceptive names, protected
    /// paths, scratch (changes in it are not listed), the scope, concurrent changes, and folders that would become
    /// repositories. No program of the stage may be running.
    ///
    /// # Errors
    /// [`StageError::Limit`] if the changes exceed `limits`.
    pub fn changes(&self, limits: &ChangeLimits, protected: &Protected) -> Result<Vec<FoundChange>, StageError> {
        let ignored = &IgnoreMatcher::default();
        self.examine(ChangeRules { limits, protected, ignored }).map(|examined| examined.found)
    }

    /// As [`WorkspaceView::changes`], but also returns the changes at ignored paths.
    ///
    /// # Errors
    /// As [`WorkspaceView::changes`].
    pub fn examine(&self, rules: ChangeRules<'_>) -> Result<StageChanges, StageError> {
        let mut examined = match self {
            Self::Copy(copy) => copy_changes::changes(copy, rules)?,
            Self::Overlay(overlay) => upper_changes::changes(overlay, rules)?,
            Self::Layer(layer) => layer_changes::changes(layer, rules)?,
        };
        let refused = repository_shape::refuse(&mut examined.found, self.workspace(), self);
        refused.map_err(|source| StageError::io(Path::new(""), source))?;
        Ok(examined)
    }

    /// Returns the workspace from which the stage began.
    pub(crate) fn workspace(&self) -> &Tree {
        match self {
            Self::Copy(copy) => &copy.workspace,
            Self::Overlay(overlay) => &overlay.lower.workspace,
            Self::Layer(layer) => &layer.lower.workspace,
        }
    }

    /// Returns the folder that contains the stage's changes. The content of a layer is first moved or copied to files.
    pub(crate) fn changed_tree(&self) -> Result<&Tree, StageError> {
        match self {
            Self::Copy(copy) => Ok(&copy.tree),
            Self::Overlay(overlay) => Ok(&overlay.upper),
            Self::Layer(layer) => layer.changed_tree(),
        }
    }

    /// Restores the initial files of the stage. All changes of the component and of commands are dropped, also for open
    /// views of the component. No program of the stage may be running.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses, and for an overlay, because only the jail could mount it again.
    pub fn reset(&mut self) -> Result<(), StageError> {
        match self {
            Self::Copy(copy) => copy.reset(),
            Self::Layer(layer) => layer.reset(),
            Self::Overlay(_) => Err(StageError::io(Path::new(""), io::ErrorKind::Unsupported.into())),
        }
    }

    /// Removes the stage's own folder, even if it is very deep or has no permissions. The workspace is not changed.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses.
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
