//! The settings of all jails of one attempt: of its own commands, hooks, tool servers and program under test.

use super::AttemptError;
use super::paths::AttemptPaths;
use glovebox_jail::jail::{Bind, ExecPolicy, JailSetting};
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::{Network, Tier};
use glovebox_workspace::cache::Caches;
use std::path::{Path, PathBuf};

/// Returns the settings of a stage's jail, without a network and without mounts inside the workspace.
pub(super) fn setting(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> JailSetting {
    JailSetting {
        tier: env.tier.unwrap_or(Tier::Full),
        policy: policy(env, binding),
        network: Network::None,
        limits: binding.limits,
        inside: env.inside().to_path_buf(),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: hidden(env, paths),
        folder: paths.folder.clone(),
        pulse: paths.pulse.clone(),
    }
}

/// Returns the paths that no bind mount may show: this run and the other runs of the project, the project, and the user's
/// private folders.
fn hidden(env: &SandboxEnv, paths: &AttemptPaths) -> Vec<PathBuf> {
    let runs = paths.run.parent().unwrap_or(&paths.run);
    let private = env.private.iter().map(PathBuf::as_path);
    [&paths.run, runs, &env.project].into_iter().chain(private).map(Path::to_path_buf).collect()
}

/// Returns the folders below HOME that are kept between stages: those of toolchains, and compiled modules of the
/// virtual environment. Compiled modules of the project's own sources are not kept: Python recognizes a changed source
/// by its length and its modification time in whole seconds, which may be the same after two quick changes.
pub(super) fn tools(env: &SandboxEnv) -> Vec<PathBuf> {
    let compiled = env.policy.compiled.as_ref().zip(env.environment.as_ref()).map(|(compiled, environment)| {
        let inside = env.inside().strip_prefix("/").unwrap_or(env.inside());
        compiled.join(inside).join(environment.path().as_str())
    });
    env.policy.kept.iter().cloned().chain(compiled).collect()
}

/// Returns the mounts of the caches of toolchains.
pub(super) fn tool_binds(env: &SandboxEnv, caches: Option<&Caches>) -> Result<Vec<Bind>, AttemptError> {
    let binds = caches.map(|caches| caches.tool_binds(env.tier.unwrap_or(Tier::Full))).transpose()?;
    Ok(binds.unwrap_or_default())
}

/// Returns the operator's policy with the output limit of the stage.
fn policy(env: &SandboxEnv, binding: &Binding) -> ExecPolicy {
    let output_bytes_max = env.policy.output_bytes_max.min(binding.limits.command_output_bytes);
    let mut policy = ExecPolicy { output_bytes_max, ..env.policy.clone() };
    let folders = binding.program.iter().flat_map(|program| &program.folders);
    policy.binds.extend(folders.map(|folder| Bind::read_only(folder.0.as_str().into(), folder.0.as_str().into())));
    policy
}
