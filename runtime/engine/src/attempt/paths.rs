//! The folders of the run that one attempt uses.

use super::AttemptError;
use crate::holdouts::Holdouts;
use glovebox_jail::pulse::Pulse;
use glovebox_plan::plan::{Binding, Plan};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_record::{Attempt, GitHead, NodeId, Tier};
use glovebox_workspace::dependencies::{Dependencies, DependencyAccess, Places};
use glovebox_workspace::project::Base;
use glovebox_workspace::repository::{LastCommit, RepositoryFacts, RepositorySource, SubmoduleLink};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The folders of the run that one attempt uses.
pub(super) struct AttemptPaths {
    /// The id of the node.
    pub(super) node: NodeId,
    /// The attempt, if its stage answers by a status file.
    pub(super) answering: Option<Attempt>,
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
    /// HEAD of the project's repository when the run began.
    pub(super) git: GitHead,
    /// The files that the run began with.
    pub(super) base: Arc<Base>,
    /// Permissions of the workspace's directories that their owner may not read, change and enter.
    pub(super) closed: BTreeMap<String, u32>,
    /// True if git ignores anything in the project.
    pub(super) has_ignored: bool,
    /// The initial content of the node's caches. `None` if they were not filled when the run began.
    pub(super) cache_base: Option<PathBuf>,
    /// True if the attempt must stop.
    pub(super) canceled: Arc<AtomicBool>,
    /// Counts what the host observes of the attempt's processes.
    pub(super) pulse: Pulse,
}

impl AttemptPaths {
    /// Returns what a repository of stages takes from the repository of the project.
    pub(super) fn repository_source<'p>(
        &'p self,
        project: &'p Path,
        submodules: Vec<SubmoduleLink>,
    ) -> RepositorySource<'p> {
        let (facts, commit) = (RepositoryFacts::read(project, &self.git), self.last_commit(project));
        RepositorySource { facts, commit, submodules }
    }

    /// Returns the last commit of the project. `None` if it had none when the run began.
    pub(super) fn last_commit<'p>(&'p self, project: &'p Path) -> Option<LastCommit<'p>> {
        let holdouts = self.sealed.as_ref().map(|sealed| sealed.holdouts.sealed_text());
        let id = self.git.commit.as_deref()?;
        Some(LastCommit { project, id, below: "", base: &self.base, holdouts })
    }

    /// Returns the dependencies that the commands of a stage see.
    pub(super) fn dependencies(
        &self,
        env: &SandboxEnv,
        binding: &Binding,
        access: DependencyAccess,
    ) -> Result<Dependencies<'_>, AttemptError> {
        if !binding.runs_commands() || !env.tier.is_some_and(Tier::has_own_root) {
            return Ok(Dependencies::default());
        }
        let places = Places { project: &env.project, workspace: &self.workspace, attempt: &self.folder };
        let folders = &self.plan.folders.dependencies;
        Dependencies::for_scope(folders, &binding.scope, places, access).map_err(AttemptError::Folder)
    }
}

/// The run's sealed folders.
pub(super) struct Sealed {
    /// The hold-outs of the run.
    pub(super) holdouts: Arc<Holdouts>,
    /// The folder that contains the sealed copies, each at its original path.
    pub(super) files: PathBuf,
    /// Number of sealed folders.
    pub(super) folders: usize,
}
