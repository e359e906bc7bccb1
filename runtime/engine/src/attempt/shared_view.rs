//! What an attempt and its jail share: the files, which the jail can reset, and the programs under test.

use glovebox_jail::subject::Subjects;
use glovebox_workspace::stage::WorkspaceView;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The programs under test. They start with the jail and end with it.
pub(super) type SharedSubjects = Arc<Mutex<Subjects>>;

/// The files of an attempt, which the jail can reset.
pub(super) struct SharedView(Arc<Mutex<WorkspaceView>>);

impl SharedView {
    pub(super) fn new(view: WorkspaceView) -> Self {
        Self(Arc::new(Mutex::new(view)))
    }

    pub(super) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Locks the files and returns them in their current state.
    pub(super) fn locked(&self) -> MutexGuard<'_, WorkspaceView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns the files. `None` while the jail still uses them.
    pub(super) fn into_view(self) -> Option<WorkspaceView> {
        Some(Arc::into_inner(self.0)?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
