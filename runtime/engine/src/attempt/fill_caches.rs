//! Fills caches from the base, which is the project as it was when the run began. Caches are filled once, before any
//! stage changes a file. Each visit gets a copy of the filled caches.
//!
//! A judging stage keeps no cache between visits, because builders' code may have run in it. So its own command fills the
//! cache from the files that the run began with, before any builder runs. The verdict of that command is ignored.

use super::paths::AttemptPaths;
use super::sandbox::AttemptSandbox;
use super::subject::CacheOwner;
use super::{AttemptError, Workbench, subject};
use crate::run_dir::RunDir;
use crate::run_dir::STAGE_DIR;
use glovebox_jail::exec::{Command, Program};
use glovebox_jail::pulse::Pulse;
use glovebox_jail::subject::SubjectCall;
use glovebox_journal::event::{CacheFilled, Receipt};
use glovebox_journal::ports::BlobStore;
use glovebox_pipeline::ir::NodeId;
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::{CommandEnding, GitHead};
use glovebox_state::run_state::RunState;
use glovebox_workspace::cache;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The folder of filled caches, in the run directory.
const BASE: &str = "cache/base";

/// Returns the folder of a node's filled caches.
pub(super) fn base(run: &RunDir, node: &NodeId) -> PathBuf {
    run.path.join(BASE).join(name(node))
}

/// Returns a folder name for a node that is valid for every id.
fn name(node: &NodeId) -> String {
    blake3::hash(node.as_str().as_bytes()).to_hex()[..16].to_owned()
}

impl<B: BlobStore + 'static> Workbench<B> {
    /// Fills the caches of every node that asks for filled caches and has none yet. After a stage has changed a file of
    /// the workspace, no more caches are filled, and the remaining ones begin empty.
    ///
    /// # Errors
    ///
    /// Returns the node, and why its command could not run. A command that fails is not an error.
    pub async fn fill_caches(
        &self,
        state: &RunState,
        canceled: Arc<AtomicBool>,
    ) -> Result<Vec<CacheFilled>, (NodeId, AttemptError)> {
        let mut filled = Vec::new();
        if !state.main().changes.is_empty() || !self.sandbox_env.tier.is_some_and(|tier| tier.can_mount()) {
            return Ok(filled);
        }
        let git = state.run.as_ref().map(|run| run.workspace.git.clone()).unwrap_or_default();
        for (id, binding) in &self.plan.bindings {
            let is_wanted = binding.command_access.cache_from_base;
            // Filled caches were removed if a killed attempt could have changed them.
            let is_done = state.caches_filled.contains(id) && base(&self.run, id).is_dir();
            if !is_wanted || is_done || binding.command_access.cache.is_empty() || canceled.load(Ordering::Relaxed) {
                continue;
            }
            let node = id.clone();
            let one = match self.fill(id, binding, &git, Arc::clone(&canceled)).await {
                Ok(receipts) => CacheFilled { node, receipts },
                Err(error) => return Err((node, error)),
            };
            if canceled.load(Ordering::Relaxed) {
                // The run was canceled. The cache is filled when the run is resumed.
                break;
            }
            filled.push(one);
        }
        Ok(filled)
    }

    async fn fill(
        &self,
        id: &NodeId,
        binding: &Binding,
        git: &GitHead,
        canceled: Arc<AtomicBool>,
    ) -> Result<Vec<Receipt>, AttemptError> {
        let folder = format!("{STAGE_DIR}/fill-{}", name(id));
        super::remove(&self.run, &folder);
        self.run.dir.create_dir_all(&folder).map_err(AttemptError::Folder)?;
        let paths = AttemptPaths {
            node: id.clone(),
            answering: None,
            has_builders_code: false,
            workspace: self.run.workspace(),
            run: self.run.path.clone(),
            kept: self.run.path.clone(),
            folder: self.run.path.join(&folder),
            holdouts: self.holdouts_of(id),
            sealed: self.sealed(),
            git: git.clone(),
            base: Arc::clone(&self.base),
            closed: self.base.closed.clone(),
            has_ignored: false,
            plan: Arc::clone(&self.plan),
            cache_base: None,
            canceled: Arc::clone(&canceled),
            // The run has not begun: nothing watches its caches being filled.
            pulse: Pulse::default(),
        };
        let paths = Arc::new(paths);
        let (env, binding, into) = (self.sandbox_env.clone(), binding.clone(), base(&self.run, id));
        let made = tokio::task::spawn_blocking(move || fill(&env, &binding, &paths, &into, &canceled)).await;
        let calls = made.map_err(|error| AttemptError::Thread(error.to_string()))?;
        super::remove(&self.run, &folder);
        let receipts = calls?.into_iter().enumerate().map(|(index, (call, is_subject))| {
            let receipt = subject::receipt(format!("fill-{}/{}", name(id), index + 1), call);
            Receipt { subject: is_subject, ..receipt }
        });
        Ok(receipts.collect())
    }
}

/// Runs the stage's command in a copy of the base and keeps its caches. Returns the calls, each with true if it was a call of
/// a program under test.
fn fill(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &Arc<AttemptPaths>,
    into: &Path,
    canceled: &AtomicBool,
) -> Result<Vec<(SubjectCall, bool)>, AttemptError> {
    let mut sandbox = AttemptSandbox::open(env, binding, paths)?;
    let mut calls = Vec::new();
    if let (Some(jail), Some(text)) = (sandbox.jail(), binding.commands.shell_texts.first()) {
        let command = Command {
            program: Program::Shell(text.clone()),
            cwd: binding.command_access.workdir.clone(),
            env: Vec::new(),
            stdin: None,
            timeout: Duration::from_millis(binding.limits.command_ms.min(binding.limits.wall_ms)),
        };
        let (words, cwd) = (["sh", "-c", text].map(str::to_owned).to_vec(), command.cwd.as_str().to_owned());
        let jail = jail.get().map_err(|error| AttemptError::Commands(error.into()))?;
        let exit = jail.run(&command, canceled).map_err(|error| AttemptError::Thread(error.to_string()))?;
        calls.push((SubjectCall { words, cwd, exit, status: jail.status().clone() }, false));
    }
    let closed = sandbox.close()?;
    calls.extend(closed.subjects.calls.into_iter().map(|call| (call, true)));
    let views = closed.subjects.views.into_iter().chain([sandbox.into_view()?]);
    views.into_iter().try_for_each(|view| view.remove())?;
    keep(&paths.folder, into, &calls)?;
    Ok(calls)
}

/// Moves the caches to the folder from which each visit copies them. Caches above the size limit are not kept. Caches of a
/// command that was killed are not kept either, because its half-written files would look complete.
fn keep(folder: &Path, into: &Path, calls: &[(SubjectCall, bool)]) -> Result<(), AttemptError> {
    glovebox_workspace::tree::remove_all(into).map_err(AttemptError::Folder)?;
    let has_ended = calls.first().is_some_and(|(own, _)| own.exit.how == CommandEnding::Exited);
    if !has_ended || calls.iter().any(|(call, _)| call.exit.over.is_some()) {
        return Ok(());
    }
    for owner in CacheOwner::ALL {
        cache::keep(&folder.join(owner.folder()), &into.join(owner.as_str()), cache::BYTES_MAX)?;
    }
    Ok(())
}
