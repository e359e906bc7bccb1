//! The operator's rules for every command in a jail.
//!
//! The rules are the same for all stages of a run. They do not include grants of a single stage.

use super::Bind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The operator's rules for every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPolicy {
    /// Search path for programs: absolute folders outside the workspace.
    pub path: Vec<PathBuf>,
    /// Variables of every command. In a value, `{scratch}` is replaced by the command's scratch folder, `{home}` by its
    /// `HOME`, and `{kept}` by the first folder of `kept`.
    pub env: BTreeMap<String, String>,
    /// Folders and files of the host that are visible read-only in a jail: toolchains and `[sandbox] read`.
    pub binds: Vec<Bind>,
    /// Files in folders of `/etc` that are visible read-only in a jail: configuration that a toolchain links to.
    pub configuration: Vec<PathBuf>,
    /// Folders below `HOME` that stay for later stages of the same trust domain: caches of toolchains. Relative paths.
    pub kept: Vec<PathBuf>,
    /// Folder below `HOME` in which Python stores compiled modules, each below the path of its source. A relative path.
    pub compiled: Option<PathBuf>,
    /// Maximum number of bytes that are kept of a stream: half from its beginning and half from its end. This is the
    /// limit `command_output_bytes`.
    pub output_bytes_max: u64,
    /// Time between SIGTERM and SIGKILL after a timeout or a cancellation.
    pub grace: Duration,
    /// Maximum time for killing the processes that a command left. After it, the command fails with
    /// [`crate::exec::ExecError::Survivors`].
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
