//! What executes the stages of a plan on this machine.

use crate::plan::{Binding, Plan};
use glovebox_host::grants::FileTier;
use glovebox_host::host::Host;
use glovebox_host::tools::Secret;
use glovebox_jail::jail::ExecPolicy;
use glovebox_models::target::Target;
use glovebox_record::scope::Entry;
use glovebox_record::{SandboxRecord, Tier};
use glovebox_workspace::protect::Protected;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How models are reached, keys included, by their names in glovebox.toml.
pub type Targets = Arc<BTreeMap<String, Arc<Target>>>;
/// Values for tool servers, by the names of environment variables.
pub type ServerEnv = Arc<BTreeMap<String, Secret>>;

/// The worker that drives a run, and the sandbox of its commands.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    /// The name in the journal.
    pub name: String,
    /// The sandbox of commands on this machine; none when no stage runs any.
    pub sandbox: Option<SandboxRecord>,
}

impl Worker {
    /// This process, where it runs no commands.
    pub fn this_process() -> Self {
        Self { name: format!("pid-{}", std::process::id()), sandbox: None }
    }
}

/// Everything that executes the stages of a plan on this machine.
pub struct Executor {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Executes components.
    pub host: Arc<Host>,
    /// What stages work on and behind.
    pub sandbox_env: SandboxEnv,
    /// Paths that no stage may change, whatever its scope says.
    pub protected: Protected,
    /// How the models are reached that the plan's nodes ask, by their names in glovebox.toml.
    pub targets: Targets,
    /// The worker.
    pub worker: Worker,
}

/// What the sandbox of every stage needs to know of the machine. The operator decides it, never a stage.
#[derive(Debug, Clone)]
pub struct SandboxEnv {
    /// The tier of the commands' sandbox; none when no stage runs commands.
    pub tier: Option<Tier>,
    /// Whether this machine lets a jail mount an overlay, so that a large workspace need not be copied for each stage.
    pub can_mount: bool,
    /// Their PATH, environment and what of the machine they may read.
    pub policy: ExecPolicy,
    /// The user's project: the workspace has its path where a jail has a root of its own, and it is never shown itself.
    pub project: PathBuf,
    /// Folders of this program on this machine that no command is ever shown: the user's key, compiled components.
    pub private: Vec<PathBuf>,
    /// Values for tool servers that name them, by the names of variables.
    pub server_env: ServerEnv,
    /// The virtual environment among the dependencies, whose programs come first.
    pub environment: Option<Entry>,
}

/// The path of the workspace where the project's own path cannot be used inside.
const WORKSPACE_INSIDE: &str = "/workspace";
/// Folders a jail has of its own, below which no workspace can be.
const OWN: [&str; 11] = ["/proc", "/dev", "/sys", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/run"];

impl SandboxEnv {
    /// The workspace's path inside a jail with a root of its own: stable between runs, so that build caches stay valid.
    pub fn inside(&self) -> &Path {
        let project = &self.project;
        let taken = OWN.iter().any(|own| project.starts_with(own)) || project.parent().is_none();
        if taken || project.to_str().is_none() { Path::new(WORKSPACE_INSIDE) } else { project }
    }

    /// The absolute paths that mean the workspace to a component with a file system: the one its commands see, and the
    /// project's own (decision project-path-is-the-workspace).
    pub fn known_as(&self, binding: &Binding, files: Option<&Path>) -> Vec<String> {
        if binding.tier != FileTier::Posix {
            return Vec::new();
        }
        let has_root = self.tier.is_none_or(Tier::has_own_root);
        let seen = if has_root { Some(self.inside()) } else { files };
        let mut paths: Vec<&Path> = seen.into_iter().chain([self.project.as_path()]).collect();
        paths.dedup();
        paths.into_iter().filter_map(|path| path.to_str().map(str::to_owned)).collect()
    }
}
