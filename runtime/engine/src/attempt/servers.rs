//! The sandboxes of an attempt's tool servers.
//!
//! Each server has its own sandbox, separate from the stage's commands and from other servers. Its files are the workspace as
//! it was when the stage began, limited to the server's own scope and without hold-outs. The writes of a server are
//! discarded. Each server has its own network. All sandboxes end with the attempt.

use super::AttemptError;
use super::jail_setting::setting;
use super::paths::AttemptPaths;
use super::side_files::SideFiles;
use glovebox_host::tools::ServerSetting;
use glovebox_jail::jail::{JailSetting, ResourceUsage};
use glovebox_plan::plan::{Binding, BoundServer};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use std::path::{Path, PathBuf};

/// The folder of the servers in the attempt's folder.
const SERVERS_DIR: &str = "servers";

/// Returns the folders of an attempt's servers, which must exist before something is mounted.
pub(super) fn folders<'b>(binding: &'b Binding, attempt: &Path) -> impl Iterator<Item = PathBuf> + use<'b> {
    let own = attempt.join(SERVERS_DIR);
    binding.servers.iter().map(move |server| own.join(&server.name))
}

/// Ends all servers, and returns their resource usage.
pub(super) fn end_all(servers: &mut Vec<ServerSandbox>) -> Result<Vec<ResourceUsage>, AttemptError> {
    let ended: Vec<_> = servers.drain(..).map(ServerSandbox::end).collect();
    ended.into_iter().filter_map(Result::transpose).collect()
}

/// The sandbox of one tool server of an attempt. It is created when the server is started.
pub(super) struct ServerSandbox {
    files: SideFiles,
    setting: ServerSetting,
}

impl ServerSandbox {
    /// Returns a sandbox for every server that the stage may start.
    pub(super) fn offer(env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Vec<Self> {
        binding.servers.iter().map(|server| Self::new(server, env, binding, paths)).collect()
    }

    fn new(server: &BoundServer, env: &SandboxEnv, binding: &Binding, paths: &AttemptPaths) -> Self {
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

    /// Returns the setting with which the host starts the server.
    pub(super) fn setting(&self) -> ServerSetting {
        self.setting.clone()
    }

    /// Ends the server, discards its writes, and returns its resource usage.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        drop(self.setting);
        self.files.end()
    }
}
