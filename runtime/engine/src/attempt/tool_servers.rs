//! The tools of tool servers and of plugins that an attempt may call.

use super::sandbox::AttemptSandbox;
use super::servers::ServerSandbox;
use super::{AttemptError, Workbench, exchanges};
use crate::assignment::Assignment;
use glovebox_host::call::{FileSetting, FileSource, FileTier};
use glovebox_host::revocation::RevocationCheck;
use glovebox_host::tools::{ProviderSetting, ToolSetting};
use glovebox_journal::ports::BlobStore;
use glovebox_plan::plan::{Binding, BoundProvider};
use std::path::Path;
use std::sync::Arc;

impl<B: BlobStore + 'static> Workbench<B> {
    /// Returns the tools of tool servers and plugins that an attempt may call, with stored answers to an earlier execution of the attempt
    /// that was interrupted. `source` has the files of the stage.
    pub(super) fn tools(
        &self,
        assignment: &Assignment,
        binding: &Binding,
        sandbox: Option<&AttemptSandbox>,
        source: &FileSource,
    ) -> Result<ToolSetting, AttemptError> {
        let servers: Vec<_> =
            sandbox.into_iter().flat_map(AttemptSandbox::servers).map(ServerSandbox::setting).collect();
        if servers.is_empty() && binding.providers.is_empty() {
            return Ok(ToolSetting::default());
        }
        let providers: Result<Vec<_>, _> =
            binding.providers.iter().map(|provider| self.provider(assignment, binding, provider, source)).collect();
        let answers = exchanges::open_tools(&self.run, &assignment.attempt).map_err(AttemptError::Folder)?;
        Ok(ToolSetting { servers, providers: providers?, answers: Some(answers) })
    }

    /// Returns one plugin with tools. It sees the files of the stage as the stage sees them, and cannot write.
    fn provider(
        &self,
        assignment: &Assignment,
        binding: &Binding,
        provider: &BoundProvider,
        source: &FileSource,
    ) -> Result<ProviderSetting, AttemptError> {
        let component = provider.component.loaded().ok_or_else(|| AttemptError::unbound(&assignment.stage()))?;
        let folder = match source {
            FileSource::Folder(folder) => Some(folder.as_path()),
            FileSource::Layer(_) => None,
        };
        let files = |known_as: Vec<String>| FileSetting {
            source: source.clone(),
            scope: provider.scope.clone(),
            protected: self.protected.clone(),
            known_as,
            is_of_plugin: true,
        };
        let has_files = provider.tier != FileTier::None;
        let known_as = |folder: Option<&Path>| self.sandbox_env.known_as(binding, folder);
        let (watch, name, digest) = (Arc::clone(&self.revocations), provider.name.clone(), provider.digest());
        let find = move || watch.find(&name, &digest).map(|refused| refused.to_string());
        Ok(ProviderSetting {
            name: provider.name.clone(),
            ask: component.to_ask(),
            tools: provider.tools.clone(),
            tier: provider.tier,
            files: has_files.then(|| files(known_as(folder))),
            limits: provider.limits,
            revocation: Some(RevocationCheck::new(find)),
        })
    }
}
