//! The files that one call gets: its own layer or folder, or the workspace read-only.

use super::Workbench;
use glovebox_host::call::{FileSetting, FileSource, FileTier};
use glovebox_plan::plan::Binding;
use glovebox_record::scope::Scope;

impl<B> Workbench<B> {
    /// Returns the files of a call. A stage without its own layer or folder gets no write scope, because only a commit
    /// may change the workspace. The component of a verifier gets none either, because it must not judge its own work;
    /// only the verifier's commands may write.
    pub(super) fn files(&self, binding: &Binding, source: FileSource, may_change: bool) -> Option<FileSetting> {
        let scope = scope(binding, may_change)?;
        let folder = match &source {
            FileSource::Folder(folder) => Some(folder.as_path()),
            FileSource::Layer(_) => None,
        };
        let known_as = self.sandbox_env.known_as(binding, folder);
        let is_of_plugin = !binding.first_party;
        Some(FileSetting { source, scope, protected: self.protected.clone(), known_as, is_of_plugin })
    }
}

/// Returns the scope of a component over its files. `None` if it has no files.
pub(super) fn scope(binding: &Binding, may_change: bool) -> Option<Scope> {
    match may_change && binding.is_builder() {
        _ if binding.tier == FileTier::None => None,
        true => Some(binding.scope.clone()),
        false => Some(Scope { write: Vec::new(), ..binding.scope.clone() }),
    }
}
