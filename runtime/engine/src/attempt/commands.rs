//! The jail of a stage's commands: how it is opened over the files of the attempt, and how it is reopened over the initial files.
//!
//! This module decides nothing about the files: what a stage may see is fixed before the first jail, and does not change for
//! later jails.

use super::AttemptError;
use super::paths::AttemptPaths;
use super::shared_view::{SharedSubjects, SharedView};
use super::subject;
use crate::run_dir::REPOSITORIES_DIR;
use glovebox_jail::jail::{Bind, HOME_INSIDE, Jail, JailChannels, JailSetting, Source};
use glovebox_jail::lazy_jail::{LazyJail, OpenError};
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_workspace::repository::{self, REPOSITORY_DIR, RepositoryError};
use glovebox_workspace::tree;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// The folder of the attempt's repository in the attempt's folder.
const GIT_DIR: &str = "git";
/// The folder of the borrowed objects in the home folder of commands.
const OBJECTS: &str = ".cache/git-objects";

/// Everything that is needed to open the jail of a stage's commands.
pub(super) struct Commands {
    pub(super) setting: JailSetting,
    pub(super) env: SandboxEnv,
    pub(super) binding: Binding,
    pub(super) paths: Arc<AttemptPaths>,
    pub(super) has_repository: bool,
    pub(super) view: SharedView,
    pub(super) subjects: Option<SharedSubjects>,
}

impl Commands {
    /// Returns the jail, which the first command opens. If the files are a copy, which takes long to make, the jail is opened
    /// immediately.
    pub(super) fn into_jail(self) -> Result<LazyJail, AttemptError> {
        let is_layer = self.view.locked().as_layer().is_some();
        let first = Arc::new(self);
        let again = Arc::clone(&first);
        let jail = match is_layer {
            true => LazyJail::new(move || Ok(first.open()?)),
            false => LazyJail::opened(first.open()?),
        };
        Ok(jail.starting_over(move || again.reset()))
    }

    /// Resets the files to their state when the attempt began, and opens a jail over them. The previous jail is dead.
    fn reset(&self) -> Result<Jail, OpenError> {
        if let Some(subjects) = &self.subjects {
            subjects.lock().unwrap_or_else(PoisonError::into_inner).reset()?;
        }
        self.setting.remove_own_folders()?;
        self.view.locked().reset()?;
        Ok(self.open()?)
    }

    /// Opens the jail over the files that a component has written, and lets the component work on the same files. Starts a
    /// server under test.
    fn open(&self) -> Result<Jail, AttemptError> {
        let view = self.view.locked();
        let jail = self.open_on(view.source()?)?;
        if let Some(layer) = view.as_layer() {
            layer.work_on(&jail.root())?;
        }
        Ok(jail)
    }

    fn open_on(&self, source: Source) -> Result<Jail, AttemptError> {
        let mut setting = self.setting.clone();
        if self.has_repository {
            add_repository(&mut setting, &self.env, &self.binding, &self.paths);
        }
        let Some(subjects) = &self.subjects else {
            let channels = JailChannels { sockets: self.binding.program.is_some(), ..JailChannels::default() };
            return Ok(Jail::open_with_channels(&setting, source, &channels)?);
        };
        let mut subjects = subjects.lock().unwrap_or_else(PoisonError::into_inner);
        subject::in_path(&mut setting);
        let jail = Jail::open_with_channels(&setting, source, &subjects.channels())?;
        subjects.begin(&jail, &self.paths.canceled)?;
        Ok(jail)
    }
}

/// Adds the repository of the attempt at `.git`, and the objects that it borrows, if they can be made. Without them,
/// `git` finds no repository, and the stage continues.
fn add_repository(setting: &mut JailSetting, env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) {
    let made = || {
        let (own, objects) = (paths.folder.join(GIT_DIR), Path::new(HOME_INSIDE).join(OBJECTS));
        // A jail that is opened again gets a new one.
        tree::remove_all(&own).map_err(RepositoryError::Write)?;
        let source = match with_history(env, binding, paths, &own, &objects)? {
            Some(objects) => objects,
            None => {
                let all = paths.kept.join(REPOSITORIES_DIR);
                let source = || paths.repository_source(&env.project);
                let shared = repository::open_or_make(&paths.workspace, &binding.scope, &all, source)?;
                repository::make_own(&shared, &own, &objects)?;
                shared.join("objects")
            }
        };
        Ok::<_, RepositoryError>([
            Bind::writable(own, env.inside().join(REPOSITORY_DIR)),
            Bind::read_only(source, objects),
        ])
    };
    match made() {
        Ok([own, objects]) => {
            setting.inner.push(own);
            setting.kept.push(objects);
        }
        Err(error) => tracing::warn!(%error, "the stage has no repository"),
    }
}

/// Creates the repository of the attempt with the history of the project, if the operator shows it to this stage. Returns
/// the folder of its objects. `None` if the stage gets a repository with one commit instead.
fn with_history(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &AttemptPaths,
    own: &Path,
    objects: &Path,
) -> Result<Option<PathBuf>, RepositoryError> {
    if !paths.plan.shows_history(binding) {
        return Ok(None);
    }
    match repository::make_with_history(&env.project, own, objects) {
        Ok(source) => Ok(Some(source)),
        Err(RepositoryError::NoHistory(why)) => {
            tracing::warn!("git in stages: the history is not shown, because {why}; commands see one commit");
            tree::remove_all(own).map_err(RepositoryError::Write)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
