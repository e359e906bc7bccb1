//! The jail of a stage's commands: how it is opened over the files of the attempt, and how it is opened again over the files it began with.
//!
//! It decides nothing about the files: what a stage may see is fixed before the first jail, and is the same for those that follow.

use super::AttemptError;
use super::paths::AttemptPaths;
use super::shared_view::{SharedSubjects, SharedView};
use super::subject;
use crate::run_dir::REPOSITORIES_DIR;
use glovebox_jail::jail::{Bind, Jail, JailChannels, JailSetting, Source};
use glovebox_jail::lazy_jail::{LazyJail, OpenError};
use glovebox_plan::plan::Binding;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_workspace::repository::{self, REPOSITORY_DIR};
use std::sync::{Arc, PoisonError};

/// The settings with which the jail of a stage's commands is opened.
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
    /// The jail, which the first command opens. A copy takes long to make: its jail is opened at once.
    pub(super) fn into_jail(self) -> Result<LazyJail, AttemptError> {
        let is_layer = self.view.locked().as_layer().is_some();
        let first = Arc::new(self);
        let again = Arc::clone(&first);
        let jail = match is_layer {
            true => LazyJail::new(move || Ok(first.open()?)),
            false => LazyJail::opened(first.open()?),
        };
        Ok(jail.starting_over(move || again.start_over()))
    }

    /// Makes the files again what they were when the attempt began, and opens a jail over them. The jail before is dead.
    fn start_over(&self) -> Result<Jail, OpenError> {
        if let Some(subjects) = &self.subjects {
            subjects.lock().unwrap_or_else(PoisonError::into_inner).start_over()?;
        }
        self.setting.remove_own_folders()?;
        self.view.locked().start_over()?;
        Ok(self.open()?)
    }

    /// Opens the jail over what a component has written, and lets the component work on the same files. Starts a server under test.
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
            setting.inner.extend(repository(&self.env, &self.binding, &self.paths));
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

/// The synthetic repository, if the project has one and the sandbox of commands can show it. Without it `git` finds none, and the stage
/// goes on.
fn repository(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Option<Bind> {
    let kept = repository::open_or_make(&paths.workspace, &binding.scope, &paths.kept.join(REPOSITORIES_DIR));
    let kept = kept.inspect_err(|error| tracing::warn!(%error, "the stage has no repository")).ok()?;
    Some(Bind::read_only(kept, env.inside().join(REPOSITORY_DIR)))
}
