//! The sandbox of the program under test: its files and a jail over them.

use super::SubjectSetting;
use crate::exec::working_directory;
use crate::jail::{Jail, JailChannels, JailError};
use glovebox_record::path::ScopePath;
use glovebox_workspace::stage::{StageError, WorkspaceView};
use std::path::Path;

/// Why the sandbox of the program under test could not be created.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubjectSandboxError {
    /// The files could not be created.
    #[error(transparent)]
    Files(#[from] StageError),
    /// The jail could not be opened.
    #[error(transparent)]
    Jail(#[from] JailError),
}

/// The files of the program under test, and its jail.
#[derive(Debug)]
pub(super) struct SubjectSandbox {
    pub(super) view: WorkspaceView,
    pub(super) jail: Jail,
}

impl SubjectSandbox {
    /// Creates the files in the new folder `at`, and opens the jail.
    pub(super) fn make(setting: &SubjectSetting, at: &Path, sockets: bool) -> Result<Self, SubjectSandboxError> {
        let (workspace, scope, overrides) = (&setting.workspace, &setting.scope, &setting.overrides);
        let view = match setting.mounts {
            true => WorkspaceView::choose(workspace, at, scope, overrides)?,
            false => WorkspaceView::copy(workspace, at, scope, overrides)?,
        };
        let jail =
            Jail::open_with_channels(&setting.jail, view.source()?, &JailChannels { client_folder: None, sockets })?;
        Ok(Self { view, jail })
    }

    /// Returns the working directory of a call: the caller's if it exists in this view, otherwise that of the stage.
    pub(super) fn cwd(&self, requested: &Path, setting: &SubjectSetting) -> ScopePath {
        let below = requested.strip_prefix(self.jail.inside()).ok().and_then(Path::to_str);
        let requested =
            below.and_then(|text| if text.is_empty() { Some(ScopePath::root()) } else { ScopePath::parse(text).ok() });
        let exists = |path: &ScopePath| working_directory(&self.jail.root(), path).is_ok();
        requested.filter(exists).unwrap_or_else(|| setting.workdir.clone())
    }
}
