//! The folders of the run that one attempt uses.

use super::AttemptError;
use glovebox_plan::plan::{Binding, Plan};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_record::{NodeId, Tier};
use glovebox_workspace::dependencies::{Dependencies, Places};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The folders of the run that one attempt uses.
pub(super) struct AttemptPaths {
    /// The node.
    pub(super) node: NodeId,
    /// Whether code of builders can be in the workspace.
    pub(super) has_builders_code: bool,
    /// The workspace that the stage works on.
    pub(super) workspace: PathBuf,
    /// The run's folder.
    pub(super) run: PathBuf,
    /// The folder of caches and ignored files that are kept between stages. No two branches share one.
    pub(super) kept: PathBuf,
    /// The attempt's own folder, which exists.
    pub(super) folder: PathBuf,
    /// Sealed folders in reach of the stage: the path each had, and where it is kept.
    pub(super) holdouts: Vec<(ScopePath, PathBuf)>,
    /// The plan, for its folders of dependencies and of hold-outs.
    pub(super) plan: Arc<Plan>,
    /// All that is sealed.
    pub(super) sealed: Option<Sealed>,
    /// Whether git ignores anything in the project.
    pub(super) has_ignored: bool,
    /// The initial content of the node's caches, where they were filled from the base.
    pub(super) cache_base: Option<PathBuf>,
    /// Whether the run is to stop.
    pub(super) canceled: Arc<AtomicBool>,
}

impl AttemptPaths {
    /// The dependencies that the commands of a stage see.
    pub(super) fn dependencies(&self, env: &SandboxEnv, binding: &Binding) -> Result<Dependencies<'_>, AttemptError> {
        if !binding.runs_commands() || !env.tier.is_some_and(Tier::has_own_root) {
            return Ok(Dependencies::default());
        }
        let places = Places { project: &env.project, workspace: &self.workspace, attempt: &self.folder };
        Dependencies::for_scope(&self.plan.folders.dependencies, &binding.scope, places).map_err(AttemptError::Folder)
    }
}

/// The run's sealed folders.
pub(super) struct Sealed {
    /// The folder that has them, each at its own path.
    pub(super) files: PathBuf,
    /// How many there are.
    pub(super) folders: usize,
}
