//! The sandbox of the hooks before and after an attempt's tool calls.
//!
//! It is separate from the sandbox of the stage's own commands, so that no process of the stage can reach a hook. Its files
//! are the workspace as it was when the stage began, limited to what the stage may read and without hold-outs. The writes of
//! a hook are discarded, and it reaches no network.

use super::AttemptError;
use super::jail_setting::setting;
use super::paths::AttemptPaths;
use super::side_files::SideFiles;
use glovebox_host::call::HookSetting;
use glovebox_jail::exec::Program;
use glovebox_jail::jail::{JailSetting, ResourceUsage};
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::scope::Scope;
use std::path::PathBuf;

/// The folder of the hooks in the attempt's folder.
const HOOKS_DIR: &str = "hooks";

/// Returns the deepest folder that must exist before something is mounted: the attempt's folder, or the folder of its hooks.
pub(super) fn folders(binding: &Binding, attempt: &str) -> PathBuf {
    let own = PathBuf::from(attempt);
    if binding.hooks.is_empty() { own } else { own.join(HOOKS_DIR) }
}

/// The sandbox of an attempt's hooks, created for the first hook.
pub(super) struct HookSandbox(SideFiles);

impl HookSandbox {
    /// Returns the sandbox of the stage's hooks, which is not created yet. `None` if the stage has no hooks.
    pub(super) fn offer(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Option<Self> {
        if binding.hooks.is_empty() {
            return None;
        }
        let sealed = paths.plan.folders.sealed.iter().chain(&binding.scope.hidden);
        let seen = binding.scope.read.iter().chain(&binding.scope.write);
        let scope = Scope { read: seen.cloned().collect(), hidden: sealed.cloned().collect(), ..Scope::default() };
        let jail = JailSetting { folder: paths.folder.join(HOOKS_DIR), ..setting(env, binding, paths) };
        Some(Self(SideFiles::offer(env, paths, jail, scope)))
    }

    /// Returns the setting with which the host runs the hooks.
    pub(super) fn setting(&self, binding: &Binding) -> HookSetting {
        let program = |text: &Option<String>| text.clone().map(Program::Shell);
        HookSetting {
            pre: program(&binding.hooks.pre),
            post: program(&binding.hooks.post),
            jail: self.0.jail(),
            workdir: binding.command_access.workdir.clone(),
        }
    }

    /// Ends every hook, discards their writes, and returns their resource usage.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        self.0.end()
    }
}
