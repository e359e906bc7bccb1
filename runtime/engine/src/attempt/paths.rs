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
    /// The id of the node.
    pub(super) node: NodeId,
    /// True if the workspace can contain code of builders.
    pub(super) has_builders_code: bool,
    /// The workspace that the stage works on.
    pub(super) workspace: PathBuf,
    /// The run directory.
    pub(super) run: PathBuf,
    /// The folder of caches and ignored files that are kept between stages. Each branch has its own.
    pub(super) kept: PathBuf,
    /// The attempt's own folder, which already exists.
    pub(super) folder: PathBuf,
    /// The sealed folders that the stage can read: the original path, and the path of the sealed copy.
    pub(super) holdouts: Vec<(ScopePath, PathBuf)>,
    /// The plan, for its folders of dependencies and of hold-outs.
    pub(super) plan: Arc<Plan>,
    /// The sealed folders of the run. `None` if it has none.
    pub(super) sealed: Option<Sealed>,
    /// True if git ignores anything in the project.
    pub(super) has_ignored: bool,
    /// The initial content of the node's caches. `None` if they were not filled when the run began.
    pub(super) cache_base: Option<PathBuf>,
    /// True if the attempt must stop.
    pub(super) canceled: Arc<AtomicBool>,
}

impl AttemptPaths {
    /// Returns the dependencies that the commands of a stage see.
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
    /// The folder that contains the sealed copies, each at its original path.
    pub(super) files: PathBuf,
    /// Number of sealed folders.
    pub(super) folders: usize,
}
