//! The sandbox of the program under test: its own files and a jail over them.

use super::SubjectSetting;
use crate::exec::working_directory;
use crate::jail::{Jail, JailChannels, JailError};
use glovebox_record::path::ScopePath;
use glovebox_workspace::stage::{StageError, WorkspaceView};
use std::path::Path;

/// Why the sandbox of the program under test could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubjectSandboxError {
    /// Its files.
    #[error(transparent)]
    Files(#[from] StageError),
    /// Its jail.
    #[error(transparent)]
    Jail(#[from] JailError),
}

/// Files and jail.
#[derive(Debug)]
pub(super) struct SubjectSandbox {
    pub(super) view: WorkspaceView,
    pub(super) jail: Jail,
}

impl SubjectSandbox {
    /// Makes both, the files in the new folder `at`.
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

    /// Returns the folder a call starts in: the caller's own where it exists in this view, else the stage's.
    pub(super) fn cwd(&self, requested: &Path, setting: &SubjectSetting) -> ScopePath {
        let below = requested.strip_prefix(self.jail.inside()).ok().and_then(Path::to_str);
        let requested =
            below.and_then(|text| if text.is_empty() { Some(ScopePath::root()) } else { ScopePath::parse(text).ok() });
        let exists = |path: &ScopePath| working_directory(&self.jail.root(), path).is_ok();
        requested.filter(exists).unwrap_or_else(|| setting.workdir.clone())
    }
}
