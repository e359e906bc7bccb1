//! The tools of tool servers that an attempt may call.

use super::sandbox::AttemptSandbox;
use super::servers::ServerSandbox;
use super::{AttemptError, Workbench, exchanges};
use crate::assignment::Assignment;
use glovebox_host::tools::ToolSetting;
use glovebox_journal::ports::BlobStore;

impl<B: BlobStore + 'static> Workbench<B> {
    /// Returns the tools of tool servers that an attempt may call, with stored answers to an earlier execution of the attempt that
    /// was interrupted.
    pub(super) fn tools(
        &self,
        assignment: &Assignment,
        sandbox: Option<&AttemptSandbox>,
    ) -> Result<ToolSetting, AttemptError> {
        let servers: Vec<_> =
            sandbox.into_iter().flat_map(AttemptSandbox::servers).map(ServerSandbox::setting).collect();
        if servers.is_empty() {
            return Ok(ToolSetting::default());
        }
        let answers = exchanges::open_tools(&self.run, &assignment.attempt).map_err(AttemptError::Folder)?;
        Ok(ToolSetting { servers, answers: Some(answers) })
    }
}
