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
use glovebox_jail::status_drop::StatusDrop;
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_workspace::repository::{self, REPOSITORY_DIR, RepositoryError, Submodule};
use glovebox_workspace::tree;
use std::collections::BTreeMap;
use std::io;
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
    /// The submodules that get a repository, too.
    pub(super) submodules: Vec<Submodule>,
    pub(super) view: SharedView,
    pub(super) subjects: Option<SharedSubjects>,
    pub(super) status: Option<StatusDrop>,
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
        self.status.as_ref().map_or(Ok(()), StatusDrop::reset)?;
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
            add_repository(&mut setting, self);
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

/// Adds the repository of the attempt at `.git`, those of its submodules, and the objects that they borrow, if they can be made.
/// Without them, `git` finds no repository, and the stage continues.
fn add_repository(setting: &mut JailSetting, commands: &Commands) {
    let mut made = Mounted::default();
    match made.make_all(commands) {
        Ok(()) => {
            setting.inner.extend(made.own);
            setting.kept.extend(made.objects);
        }
        Err(error) => tracing::warn!(%error, "the stage has no repository"),
    }
}

/// The mounts of the repositories of an attempt.
#[derive(Default)]
struct Mounted {
    own: Vec<Bind>,
    objects: Vec<Bind>,
}

impl Mounted {
    /// Makes the repositories. The commit of the project names those of its submodules, and so on, so the inner ones come first.
    fn make_all(&mut self, commands: &Commands) -> Result<(), RepositoryError> {
        let Commands { env, binding, paths, submodules, .. } = commands;
        let has_history = paths.plan.shows_history(binding);
        let all = paths.kept.join(REPOSITORIES_DIR);
        let project = paths.last_commit(&env.project).filter(|_| !has_history);
        let (mut links, mut made) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for (number, submodule) in submodules.iter().enumerate() {
            let Some(at) = submodule.repository_path() else { continue };
            let (listed, inner) = (links.remove(&Some(submodule.path())), made.remove(&Some(submodule.path())));
            let (listed, inner) = (listed.unwrap_or_default(), inner.unwrap_or_default());
            let added = self.add(commands, &at, &format!("-{number}"), |own, objects| match &project {
                Some(project) => {
                    let made = submodule.open_or_make(&paths.workspace, &binding.scope, &all, project, listed);
                    let (shared, link) = made?;
                    repository::make_own(&shared, own, objects)?;
                    links.entry(submodule.parent()).or_default().push(link);
                    Ok(shared.join("objects"))
                }
                None => submodule.make_with_history(&env.project, own, objects, &inner),
            });
            match added {
                Ok(()) => made.entry(submodule.parent()).or_default().push(submodule),
                Err(error) => tracing::warn!(%error, at = %at, "a submodule has no repository in the stage"),
            }
        }
        let (links, made) = (links.remove(&None).unwrap_or_default(), made.remove(&None).unwrap_or_default());
        let at = ScopePath::parse(REPOSITORY_DIR).map_err(io::Error::other)?;
        self.add(commands, &at, "", |own, objects| match with_history(commands, own, objects, &made)? {
            Some(objects) => Ok(objects),
            None => {
                let source = || paths.repository_source(&env.project, links);
                let shared = repository::open_or_make(&paths.workspace, &binding.scope, &all, source)?;
                repository::make_own(&shared, own, objects)?;
                Ok(shared.join("objects"))
            }
        })
    }

    /// Adds the mounts of one repository. `make` gets the folder to make it in and the path of its objects in the jail, and returns
    /// the folder of the objects.
    fn add(
        &mut self,
        commands: &Commands,
        at: &ScopePath,
        suffix: &str,
        make: impl FnOnce(&Path, &Path) -> Result<PathBuf, RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let own = commands.paths.folder.join(format!("{GIT_DIR}{suffix}"));
        let objects = Path::new(HOME_INSIDE).join(format!("{OBJECTS}{suffix}"));
        // A jail that is opened again gets a new one.
        tree::remove_all(&own).map_err(RepositoryError::Write)?;
        let source = make(&own, &objects)?;
        let at = commands.env.inside().join(at.as_str());
        self.own.push(Bind::writable(own, at));
        self.objects.push(Bind::read_only(source, objects));
        Ok(())
    }
}

/// Creates the repository of the attempt with the history of the project, if the operator shows it to this stage. Returns
/// the folder of its objects. `None` if the stage gets a repository with one commit instead.
fn with_history(
    Commands { env, binding, paths, .. }: &Commands,
    own: &Path,
    objects: &Path,
    submodules: &[&Submodule],
) -> Result<Option<PathBuf>, RepositoryError> {
    if !paths.plan.shows_history(binding) {
        return Ok(None);
    }
    match repository::make_with_history(&env.project, own, objects, submodules) {
        Ok(source) => Ok(Some(source)),
        Err(RepositoryError::NoHistory(why)) => {
            tracing::warn!("git in stages: the history is not shown, because {why}; commands see one commit");
            tree::remove_all(own).map_err(RepositoryError::Write)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
