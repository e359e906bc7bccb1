//! What executes the stages of a plan on this machine.

use super::admission::RevocationWatch;
use crate::plan::{Binding, Plan};
use glovebox_host::grants::FileTier;
use glovebox_host::host::Host;
use glovebox_host::judgement::PolicySet;
use glovebox_host::tools::Secret;
use glovebox_jail::jail::ExecPolicy;
use glovebox_models::target::Target;
use glovebox_names::visible::is_deceptive;
use glovebox_record::path::PATH_BYTES_MAX;
use glovebox_record::scope::Entry;
use glovebox_record::{SandboxRecord, Tier};
use glovebox_workspace::protect::Protected;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How models are reached, including keys, by their names in `glovebox.toml`.
pub type Targets = Arc<BTreeMap<String, Arc<Target>>>;
/// Values for tool servers, by the names of environment variables.
pub type ServerEnv = Arc<BTreeMap<String, Secret>>;

/// The worker that drives a run, and the sandbox of its commands.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    /// The name of the worker in the journal.
    pub name: String,
    /// The sandbox of commands on this machine. `None` if no stage runs commands.
    pub sandbox: Option<SandboxRecord>,
    /// The policies of the run, which judge edges and tool calls.
    pub policies: Arc<PolicySet>,
}

impl Worker {
    /// Creates a worker for this process that runs no commands.
    pub fn this_process() -> Self {
        Self { name: format!("pid-{}", std::process::id()), ..Self::default() }
    }
}

/// Everything that is needed to execute the stages of a plan on this machine.
pub struct Executor {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The host of the components.
    pub host: Arc<Host>,
    /// What the sandbox of every stage needs to know about the machine.
    pub sandbox_env: SandboxEnv,
    /// Paths that no stage may change, whatever its scope is.
    pub protected: Protected,
    /// How the models that the plan's nodes ask are reached, by their names in `glovebox.toml`.
    pub targets: Targets,
    /// The lists of revocations, which are looked at before and during each call.
    pub revocations: Arc<RevocationWatch>,
    /// The worker that drives the run.
    pub worker: Worker,
}

/// What the sandbox of every stage needs to know about the machine. The operator decides it, never a stage.
#[derive(Debug, Clone)]
pub struct SandboxEnv {
    /// The tier of the commands' sandbox. `None` if no stage runs commands.
    pub tier: Option<Tier>,
    /// True if a jail can mount an overlay on this machine, so that a large workspace need not be copied for each stage.
    pub can_mount: bool,
    /// PATH and environment of commands, and the folders of the machine that they may read.
    pub policy: ExecPolicy,
    /// The user's project. In a jail with its own root the workspace has the path of the project, and the project itself is
    /// never shown.
    pub project: PathBuf,
    /// Folders of Glovebox on this machine that no command can see: the user's key, revocations, compiled components.
    pub private: Vec<PathBuf>,
    /// True if commands work on a copy of the files instead of an overlay, in which folders cannot be renamed.
    pub copies_files: bool,
    /// Values for tool servers that name them, by the names of environment variables.
    pub server_env: ServerEnv,
    /// The virtual environment among the dependencies. Its programs come first in PATH.
    pub environment: Option<Entry>,
}

/// The path of the workspace inside a jail that cannot use the project's own path.
const WORKSPACE_INSIDE: &str = "/workspace";
/// Folders that every jail has itself, so that no workspace can be below them.
const OWN: [&str; 11] = ["/proc", "/dev", "/sys", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/run"];

impl SandboxEnv {
    /// Returns the workspace's path inside a jail with its own root. The path is the same in all runs, so that build caches
    /// stay valid.
    pub fn inside(&self) -> &Path {
        let project = &self.project;
        // The path of a fleet's run is what somebody else wrote into its first record.
        let is_plain = project.is_absolute()
            && project.as_os_str().len() <= PATH_BYTES_MAX
            && project.components().skip(1).all(|part| matches!(part, Component::Normal(_)))
            && project.to_str().is_some_and(|text| !text.chars().any(is_deceptive));
        let taken = OWN.iter().any(|own| project.starts_with(own)) || project.parent().is_none();
        if taken || !is_plain { Path::new(WORKSPACE_INSIDE) } else { project }
    }

    /// Returns the absolute paths that mean the workspace for a component with a file system: the path that its commands see,
    /// and the project's own path (decision project-path-is-the-workspace).
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
