//! Files and jail of a program beside the stage's own commands: a tool hook, a tool server.
//!
//! The files are the workspace as the stage found it, as far as a scope shows it. Both are made when they are first needed, and what is
//! written is dropped.

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

/// Name of the files in the folder of the jail.
const FILES_DIR: &str = "files";

/// Files and jail, not made before they are needed.
pub(super) struct SideFiles {
    jail: Arc<LazyJail>,
    view: Arc<OnceLock<WorkspaceView>>,
}

impl SideFiles {
    /// Offers them.
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

    /// The jail.
    pub(super) fn jail(&self) -> Arc<LazyJail> {
        Arc::clone(&self.jail)
    }

    /// Ends everything in the jail, drops the files, and returns what was used.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        let in_use =
            || AttemptError::Thread("the sandbox of its tool hooks or of a tool server is still in use".to_owned());
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
        // The view outlives the jail: it is removed once nothing can write to it.
        let _first = made.set(view);
        Ok(jail)
    }
}
