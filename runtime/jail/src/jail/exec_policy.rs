//! The operator's rules for every command in a jail.
//!
//! They are the same for all stages of a run. Grants of a single stage are not part of them.

use super::Bind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The operator's rules for every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPolicy {
    /// Search path for programs; absolute folders outside the workspace.
    pub path: Vec<PathBuf>,
    /// Variables of every command. `{scratch}` in a value stands for the command's scratch folder, `{home}` for its HOME, `{kept}` for
    /// the first folder of `kept`.
    pub env: BTreeMap<String, String>,
    /// Folders and files of the host that exist read-only in a jail: toolchains, `[sandbox] read`.
    pub binds: Vec<Bind>,
    /// Files in folders of `/etc` that exist read-only in a jail: configuration that a toolchain links to.
    pub configuration: Vec<PathBuf>,
    /// Folders below HOME that stay for later stages of the same trust: caches of toolchains. Relative paths.
    pub kept: Vec<PathBuf>,
    /// Folder below HOME in which Python keeps compiled modules, each below the path of its source. Relative.
    pub compiled: Option<PathBuf>,
    /// Bytes kept per stream, half from its head and half from its tail; limit `command_output_bytes`.
    pub output_bytes_max: u64,
    /// Time between SIGTERM and SIGKILL after a timeout or a cancellation.
    pub grace: Duration,
    /// Longest time for killing the processes that a command left; then [`crate::exec::ExecError::Survivors`].
    pub kill_max: Duration,
}

impl Default for ExecPolicy {
    fn default() -> Self {
        let path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        Self {
            path: path.into_iter().map(PathBuf::from).collect(),
            env: BTreeMap::new(),
            binds: Vec::new(),
            configuration: Vec::new(),
            kept: Vec::new(),
            compiled: None,
            output_bytes_max: 1 << 20,
            grace: Duration::from_secs(2),
            kill_max: Duration::from_secs(10),
        }
    }
}
