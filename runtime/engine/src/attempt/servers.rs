//! The sandboxes of an attempt's tool servers.
//!
//! Each server has one, apart from the stage's commands and from other servers: its files are the workspace as the stage found it, within
//! the server's own scope and without hold-outs; what it writes is dropped. Its network is its own. All of it ends with the attempt.

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

/// The sandbox of one tool server of an attempt, made when the server is started.
pub(super) struct ServerSandbox {
    files: SideFiles,
    setting: ServerSetting,
}

impl ServerSandbox {
    /// Offers every server that the stage may start.
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

    /// The setting with which the host starts it.
    pub(super) fn setting(&self) -> ServerSetting {
        self.setting.clone()
    }

    /// Ends it, drops what it wrote, and returns what it used.
    pub(super) fn end(self) -> Result<Option<ResourceUsage>, AttemptError> {
        drop(self.setting);
        self.files.end()
    }
}
