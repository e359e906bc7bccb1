//! The sandbox of the hooks around an attempt's tool calls.
//!
//! It is apart from that of the stage's own commands, so that no process of the stage can reach a hook. Its files are the workspace as
//! the stage found it, within what the stage may read and without hold-outs. What a hook writes is dropped, and it reaches no network.

use super::AttemptError;
use super::sandbox::{AttemptPaths, SandboxEnv, setting};
use crate::plan::Binding;
use glovebox_host::call::HookSetting;
use glovebox_record::Tier;
use glovebox_record::scope::Scope;
use glovebox_sandbox::exec::Program;
use glovebox_sandbox::jail::{Jail, JailSetting, ResourceUsage};
use glovebox_sandbox::lazy_jail::{LazyJail, OpenError};
use glovebox_sandbox::stage::{ViewOverrides, WorkspaceView};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Folder of the hooks in the attempt's folder.
const HOOKS_DIR: &str = "hooks";

/// The deepest folder that an attempt needs before anything is mounted: its own, or that of its hooks in it.
pub(super) fn folders(binding: &Binding, attempt: &str) -> PathBuf {
    let own = PathBuf::from(attempt);
    if binding.hooks.is_empty() { own } else { own.join(HOOKS_DIR) }
}

/// What the hooks of one attempt run in; made for the first of them.
pub(super) struct HookSandbox {
    jail: Arc<LazyJail>,
    view: Arc<OnceLock<WorkspaceView>>,
}

impl HookSandbox {
    /// Offers it to a stage that has hooks.
    pub(super) fn offer(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Option<Self> {
        if binding.hooks.is_empty() {
            return None;
        }
        let folder = paths.folder.join(HOOKS_DIR);
        let sealed = paths.plan.sealed.iter().chain(&binding.scope.hidden);
        let seen = binding.scope.read.iter().chain(&binding.scope.write);
        let scope = Scope { read: seen.cloned().collect(), hidden: sealed.cloned().collect(), ..Scope::default() };
        let files = HookFiles {
            workspace: paths.workspace.clone(),
            at: folder.join("files"),
            scope,
            mounts: env.tier.map_or(env.can_mount, |tier| tier == Tier::Full),
        };
        let jail = JailSetting { folder, ..setting(env, binding, paths) };
        let view = Arc::new(OnceLock::new());
        let made = Arc::clone(&view);
        let open = move || files.open(&jail, &made);
        Some(Self { jail: Arc::new(LazyJail::new(open)), view })
    }

    /// What the host needs to run them.
    pub(super) fn setting(&self, binding: &Binding) -> HookSetting {
        let program = |text: &Option<String>| text.clone().map(Program::Shell);
        HookSetting {
            pre: program(&binding.hooks.pre),
            post: program(&binding.hooks.post),
            jail: Arc::clone(&self.jail),
            workdir: binding.command_access.workdir.clone(),
        }
    }

    /// Ends every hook, drops what they wrote, and returns what they used.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        let in_use = || AttemptError::Thread("the sandbox of its tool hooks is still in use".to_owned());
        let jail = Arc::into_inner(self.jail).ok_or_else(in_use)?;
        let used = jail.into_jail().map_err(AttemptError::Commands)?.map(Jail::end).transpose()?;
        if let Some(Err(error)) = Arc::into_inner(self.view).and_then(OnceLock::into_inner).map(WorkspaceView::remove) {
            tracing::warn!(%error, "the files of the tool hooks were not removed");
        }
        Ok(used)
    }
}

/// The files of the hooks, not yet made.
struct HookFiles {
    workspace: PathBuf,
    at: PathBuf,
    scope: Scope,
    mounts: bool,
}

impl HookFiles {
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
