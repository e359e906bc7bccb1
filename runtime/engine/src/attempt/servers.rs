//! The sandboxes of an attempt's tool servers.
//!
//! Each server has one, apart from the stage's commands and from other servers: its files are the workspace as the stage found it, within
//! the server's own scope and without hold-outs; what it writes is dropped. Its network is its own. All of it ends with the attempt.

use super::sandbox::{AttemptPaths, AttemptSandbox, setting};
use super::side_files::SideFiles;
use super::{AttemptError, Workbench, exchanges};
use crate::driver::Assignment;
use glovebox_host::tools::{ServerSetting, ToolSetting};
use glovebox_jail::jail::{JailSetting, ResourceUsage};
use glovebox_journal::ports::BlobStore;
use glovebox_plan::plan::{Binding, BoundServer};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use std::path::{Path, PathBuf};

/// Folder of the servers in the attempt's folder.
const SERVERS_DIR: &str = "servers";

/// The folders that the servers of an attempt need before anything is mounted.
pub(super) fn folders<'b>(binding: &'b Binding, attempt: &Path) -> impl Iterator<Item = PathBuf> + use<'b> {
    let own = attempt.join(SERVERS_DIR);
    binding.servers.iter().map(move |server| own.join(&server.name))
}

/// Ends them all, and returns what they used.
pub(super) fn end_all(servers: &mut Vec<ServerSandbox>) -> Result<Vec<ResourceUsage>, AttemptError> {
    let ended: Vec<_> = servers.drain(..).map(ServerSandbox::end).collect();
    ended.into_iter().filter_map(Result::transpose).collect()
}

impl<B: BlobStore + 'static> Workbench<B> {
    /// The tools of other programs that an attempt may call, with the answers of one that was cut off.
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

/// What one server of an attempt runs in; made when it is started.
pub(super) struct ServerSandbox {
    files: SideFiles,
    setting: ServerSetting,
}

impl ServerSandbox {
    /// Offers every server that the stage may start.
    pub(super) fn offer(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Vec<Self> {
        binding.servers.iter().map(|server| Self::of(server, env, binding, paths)).collect()
    }

    fn of(server: &BoundServer, env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Self {
        let folder = paths.folder.join(SERVERS_DIR).join(&server.name);
        let network = server.entry.network.clone();
        let jail = JailSetting { folder, network, ..setting(env, binding, paths) };
        let files = SideFiles::offer(env, paths, jail, server.scope.clone());
        let values = server.entry.env.iter();
        let values = values.filter_map(|(name, source)| Some((name.clone(), env.server_env.get(source)?.clone())));
        let setting = ServerSetting {
            name: server.name.clone(),
            command: server.entry.command.clone(),
            env: values.collect(),
            tools: server.tools.clone(),
            timeout: server.entry.timeout,
            jail: files.jail(),
            workdir: ScopePath::root(),
        };
        Self { files, setting }
    }

    /// What the host needs to start it.
    pub(super) fn setting(&self) -> ServerSetting {
        self.setting.clone()
    }

    /// Ends it, drops what it wrote, and returns what it used.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        drop(self.setting);
        self.files.end()
    }
}
