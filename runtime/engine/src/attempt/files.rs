//! The files that one call is given: a layer or a folder of its own, or the workspace to read.

use super::Workbench;
use glovebox_host::call::{FileSetting, FileSource, FileTier};
use glovebox_plan::plan::Binding;
use glovebox_record::scope::Scope;

impl<B> Workbench<B> {
    /// The files a call is given. Without files of its own the write scope is taken away: nothing may change the workspace but a commit.
    /// A verifier only reads: what it judges must not be its own work, and only its commands may write.
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

/// The scope of a component over its files; none where it has no files.
pub(super) fn scope(binding: &Binding, may_change: bool) -> Option<Scope> {
    match may_change && binding.is_builder() {
        _ if binding.tier == FileTier::None => None,
        true => Some(binding.scope.clone()),
        false => Some(Scope { write: Vec::new(), ..binding.scope.clone() }),
    }
}
