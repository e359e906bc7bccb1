//! The build caches that a run takes over from an earlier run of the project, and offers to later ones.
//!
//! Only caches of verifiers without hold-outs in reach are reused, and only those in which no code of builders ran. The
//! commands of all these stages must be fixed by the pipeline, and be the same in both runs. A run without reusable
//! caches begins with empty ones: an error here never stops a run.

use super::{OWNER_FILE, RunDir, WORKSPACE_DIR};
use crate::attempt;
use crate::driver::RunError;
use glovebox_journal::event::RunId;
use glovebox_journal::sqlite::Owner;
use glovebox_plan::plan::{Binding, Plan};
use glovebox_plan::prepare::executor::{Executor, SandboxEnv};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use glovebox_record::{Digest, Tier};
use glovebox_state::evidence::RunSummary;
use glovebox_workspace::cache;
use glovebox_workspace::cache_reuse::{self, CacheReuse, Transfer, has_all_files, keep_times};
use glovebox_workspace::project::Base;
use glovebox_workspace::tree;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Files that name the versions of dependencies.
const LOCK_FILES: [&str; 22] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "requirements.txt",
    "go.mod",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "pom.xml",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
    "rust-toolchain",
    "rust-toolchain.toml",
];

fn is_lock_file(path: &str) -> bool {
    LOCK_FILES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// A run of the same project that has ended.
#[derive(Debug, Clone)]
pub struct EarlierRun {
    /// Its id.
    pub id: RunId,
    /// The absolute path of its folder.
    pub path: PathBuf,
    /// True if a resume may still need its caches.
    pub can_be_resumed: bool,
}

/// Takes over the caches of the newest run that offers some. Returns the id of that run.
pub(super) fn take(dir: &RunDir, executor: &Executor, base: &Base, earlier: &[EarlierRun]) -> Option<RunId> {
    let (user_key, folders) = (dir.key.as_ref()?, executor.plan.folders.reuse.as_deref()?);
    // Computing the key examines every program in PATH.
    if earlier.is_empty() {
        return None;
    }
    let key = key(&executor.plan, &executor.sandbox_env, base)?;
    let reuse = CacheReuse { key: &key, folders, user_key, bytes_max: cache::BYTES_MAX };
    for run in earlier {
        if !reuse.is_offered_by(&run.path) {
            continue;
        }
        let Ok(_owner) = Owner::acquire(&run.path.join(OWNER_FILE)) else { continue };
        // A lock file that the earlier run was given is part of the key. One that it wrote itself, and that the user has not
        // applied, is written again.
        if !has_all_files(&run.path.join(WORKSPACE_DIR), base, is_lock_file).unwrap_or(false) {
            continue;
        }
        let transfer = if run.can_be_resumed { Transfer::Copy } else { Transfer::Move };
        match reuse.take(&run.path, &dir.path, transfer) {
            Ok(true) => return keep_file_times(dir, executor, base, run).then(|| run.id.clone()),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "could not take over build caches; the run begins without them"),
        }
    }
    None
}

/// Gives unchanged files the modification times of the earlier run. If this fails, removes the caches, which are
/// useless or wrong without these times, and returns false.
fn keep_file_times(dir: &RunDir, executor: &Executor, base: &Base, earlier: &EarlierRun) -> bool {
    let writers: Vec<&Binding> = checkers(&executor.plan).collect();
    // Build output may have been made from a version of such a file that was never committed.
    let may_change = |path: &str| match ScopePath::parse(path) {
        Ok(path) => writers.iter().any(|binding| binding.scope.access(&path) == Access::Write),
        Err(_) => true,
    };
    let kept = keep_times(&earlier.path.join(WORKSPACE_DIR), &dir.workspace(), base, may_change);
    if let Err(error) = &kept {
        tracing::warn!(%error, "could not compare with the earlier run; the run begins without its build caches");
        let _removed_with_the_run = tree::remove_all(&dir.path.join(cache::FOLDER));
    }
    kept.is_ok()
}

/// Withdraws the caches that an ended run offered to later runs, because the run is driven again.
pub(super) fn withdraw(dir: &RunDir) -> Result<(), RunError> {
    cache_reuse::withdraw(&dir.path).map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Offers the caches of a run that has ended to later runs.
pub(super) fn offer(dir: &RunDir, executor: &Executor, base: &Base, summary: &RunSummary) {
    // Files that a stage wrote outside of its scope are dropped, but build output may have been made from them.
    let (Some(user_key), true) = (&dir.key, summary.files.quarantined.is_empty()) else { return };
    let Some(folders) = executor.plan.folders.reuse.as_deref() else { return };
    // Caches may contain what was made from a file that the run has removed since then.
    let keeps_base = || cache_reuse::keeps_base(&dir.workspace(), base).unwrap_or(false);
    if !cache_reuse::has_caches(&dir.path) || !keeps_base() {
        return;
    }
    let Some(key) = key(&executor.plan, &executor.sandbox_env, base) else { return };
    let reuse = CacheReuse { key: &key, folders, user_key, bytes_max: cache::BYTES_MAX };
    if let Err(error) = reuse.offer(&dir.path) {
        tracing::warn!(%error, "could not offer the build caches to later runs");
    }
}

fn checkers(plan: &Plan) -> impl Iterator<Item = &Binding> {
    let all = plan.bindings.values().map(Arc::as_ref);
    all.filter(|binding| binding.runs_commands() && attempt::is_checker(binding))
}

/// Returns the digest of everything that decides what the caches of checkers may contain. `None` if they cannot be
/// reused: without a sandbox, or without stages that use them.
fn key(plan: &Plan, env: &SandboxEnv, base: &Base) -> Option<Digest> {
    let tier = env.tier.filter(|tier| *tier != Tier::Unconfined)?;
    // A command that a model or a component chooses could leave anything in the caches.
    let is_fixed =
        |binding: &Binding| !binding.model && !binding.commands.any && binding.commands.argv_prefixes.is_empty();
    if !checkers(plan).all(is_fixed) {
        return None;
    }
    let stage = |binding: &Binding| {
        let Binding { scope, command_access, commands, handler, digest, .. } = binding;
        format!("{handler} {digest} {scope:?} {command_access:?} {:?}", commands.shell_texts)
    };
    let stages: BTreeSet<String> = checkers(plan).map(stage).collect();
    if stages.is_empty() {
        return None;
    }
    let (policy, folders) = (&env.policy, &plan.folders);
    let mut text = format!(
        "{} {tier} {} {} {:?} {} {:?}\n",
        env!("CARGO_PKG_VERSION"),
        env.can_mount,
        env.copies_files,
        env.project,
        folders.shows_history,
        env.environment
    );
    let settings = (&policy.path, &policy.env, &policy.binds, &policy.configuration, &policy.kept, &policy.compiled);
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{settings:?}\n{stages:?}");
    let _ = writeln!(
        text,
        "{:?} {:?} {:?} {:?} {:?}",
        folders.include, folders.sealed, folders.dependencies, folders.stores, folders.reuse
    );
    for (path, fact) in &base.files {
        if is_lock_file(path) {
            let _ = writeln!(text, "{path:?} {}", fact.digest);
        }
    }
    // Programs see a symbolic link with the modification time of its target, so another target would not be noticed.
    let _ = writeln!(text, "{:?}", base.symlinks);
    for program in policy.path.iter().flat_map(|folder| cache_reuse::programs(folder)) {
        text.push_str(&program);
    }
    Some(Digest::hash(text.as_bytes()))
}
