//! The files and the jail of a program that runs in addition to the stage's own commands: a tool hook or a tool server.
//!
//! The files are the workspace as it was when the stage began, limited to a scope. Files and jail are created at the first
//! use, and all writes are discarded.

use super::AttemptError;
use super::paths::AttemptPaths;
use glovebox_jail::jail::{Jail, JailSetting, ResourceUsage};
use glovebox_jail::lazy_jail::{LazyJail, OpenError};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::Tier;
use glovebox_record::scope::Scope;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The folder of the files in the jail's folder.
const FILES_DIR: &str = "files";

/// Files and jail, created at the first use.
pub(super) struct SideFiles {
    jail: Arc<LazyJail>,
    view: Arc<OnceLock<WorkspaceView>>,
}

impl SideFiles {
    /// Creates the description of files and jail. Nothing is made on disk yet.
    pub(super) fn offer(env: &SandboxEnv, paths: &AttemptPaths, setting: JailSetting, scope: Scope) -> Self {
        let files = Waiting {
            workspace: paths.workspace.clone(),
            at: setting.folder.join(FILES_DIR),
            scope,
            mounts: env.tier.map_or(env.can_mount, |tier| tier == Tier::Full),
        };
        let view = Arc::new(OnceLock::new());
        let made = Arc::clone(&view);
        Self { jail: Arc::new(LazyJail::new(move || files.open(&setting, &made))), view }
    }

    /// Returns the jail.
    pub(super) fn jail(&self) -> Arc<LazyJail> {
        Arc::clone(&self.jail)
    }

    /// Ends everything in the jail, removes the files, and returns the resource usage.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        let in_use =
            || AttemptError::Thread("the sandbox of tool hooks or of a tool server is still in use".to_owned());
        let jail = Arc::into_inner(self.jail).ok_or_else(in_use)?;
        let used = jail.into_jail().map_err(AttemptError::Commands)?.map(Jail::end).transpose()?;
        if let Some(Err(error)) = Arc::into_inner(self.view).and_then(OnceLock::into_inner).map(WorkspaceView::remove) {
            tracing::warn!(%error, "the files of tool hooks or of a tool server were not removed");
        }
        Ok(used)
    }
}

/// The inputs from which the files are made.
struct Waiting {
    workspace: PathBuf,
    at: PathBuf,
    scope: Scope,
    mounts: bool,
}

impl Waiting {
    fn open(self, setting: &JailSetting, made: &OnceLock<WorkspaceView>) -> Result<Jail, OpenError> {
        let overrides = ViewOverrides::default();
        let view = match self.mounts {
            true => WorkspaceView::choose(&self.workspace, &self.at, &self.scope, &overrides)?,
            false => WorkspaceView::copy(&self.workspace, &self.at, &self.scope, &overrides)?,
        };
        let jail = Jail::open(setting, view.source()?)?;
        // The view outlives the jail, and is removed after nothing can write to it.
        let _first = made.set(view);
        Ok(jail)
    }
}
