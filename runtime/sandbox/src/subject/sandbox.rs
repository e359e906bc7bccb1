//! Where the program under test runs: files of its own and a jail over them.

use super::SubjectSetting;
use crate::exec::working_directory;
use crate::jail::{Jail, JailChannels, JailError};
use crate::stage::{StageError, WorkspaceView};
use glovebox_record::path::ScopePath;
use std::path::Path;

/// Why there is no place for the program under test.
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
    /// Makes both; the files in the folder `name` of the attempt's.
    pub(super) fn make(setting: &SubjectSetting, name: &str, sockets: bool) -> Result<Self, SubjectSandboxError> {
        let at = setting.jail.folder.join(name);
        let (workspace, scope, overrides) = (&setting.workspace, &setting.scope, &setting.overrides);
        let view = match setting.mounts {
            true => WorkspaceView::choose(workspace, &at, scope, overrides)?,
            false => WorkspaceView::copy(workspace, &at, scope, overrides)?,
        };
        let jail =
            Jail::open_with_channels(&setting.jail, view.source()?, &JailChannels { client_folder: None, sockets })?;
        Ok(Self { view, jail })
    }

    /// Returns the folder a call starts in: the caller's own where it exists in this view, else the stage's.
    pub(super) fn cwd(&self, asked: &str, setting: &SubjectSetting) -> ScopePath {
        let below = Path::new(asked).strip_prefix(self.jail.inside()).ok().and_then(Path::to_str);
        let asked =
            below.and_then(|text| if text.is_empty() { Some(ScopePath::root()) } else { ScopePath::parse(text).ok() });
        let exists = |path: &ScopePath| working_directory(&self.jail.root(), path).is_ok();
        asked.filter(exists).unwrap_or_else(|| setting.workdir.clone())
    }
}
