//! The policy of one jail: its files, its limits and its network.
//!
//! Paths are absolute and valid UTF-8. The host writes the policy, and no part of it comes from a stage. An unknown
//! field is an error.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `HOME` of commands in a jail with its own root: initially empty, private, and removed with the jail.
pub const HOME_INSIDE: &str = "/home/glovebox";

/// Host name inside a jail of tier `full`. `/etc/hosts` maps it to a loopback address.
pub const HOST_NAME: &str = "glovebox";

/// Confinement of commands, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confinement {
    /// No confinement: only a separate session, limits, and the guarantee that everything that was started ends.
    Unconfined,
    /// Landlock and seccomp over a copied workspace; no namespaces.
    Landlock,
    /// Landlock and seccomp inside namespaces and a root that `bwrap` created.
    Bwrap,
    /// Seven namespaces, a separate root, an overlay, Landlock and seccomp.
    Full,
}

impl Confinement {
    /// Returns true if commands have separate namespaces and a separate file system root.
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Full | Self::Bwrap)
    }
}

/// The description of one jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The confinement of commands.
    pub confinement: Confinement,
    /// The workspace.
    pub workspace: Workspace,
    /// Paths of the host that are visible in addition to the system's programs. A parent path comes before the paths
    /// below it.
    pub binds: Vec<Bind>,
    /// Small files to create, most of them in `/etc`, each as path and content. Used only in a jail with its own root.
    pub files: Vec<(PathBuf, String)>,
    /// The empty home folder. In a jail without its own root, an existing folder.
    pub home: PathBuf,
    /// The folder for temporary files: `/tmp` in a jail with its own root, otherwise an existing folder.
    pub tmp: PathBuf,
    /// User id inside the jail; never 0. Without a user namespace, the user id does not change.
    pub uid: u32,
    /// Group id inside the jail; never 0. Without a user namespace, the group id does not change.
    pub gid: u32,
    /// The network that commands can reach.
    pub network: Network,
    /// True if the host may request sockets of the jail's network. Only for [`Confinement::Full`].
    pub sockets: bool,
    /// Limits on resources.
    pub bounds: Bounds,
    /// `cgroup.procs` or `tasks` files of the control groups that the helper enters first. A file that cannot be
    /// written is a failure.
    pub cgroup_procs: Vec<PathBuf>,
}

/// The common part of several jails, which a template prepares once: [`crate::wire::Request::Prepare`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// User id inside, as in the policies of the jails.
    pub uid: u32,
    /// Group id inside, as in the policies of the jails.
    pub gid: u32,
    /// Small files, as in the policies of the jails.
    pub files: Vec<(PathBuf, String)>,
    /// The binds of the policies below `/etc`.
    pub configuration: Vec<Bind>,
}

impl Policy {
    /// Returns the template's part of this jail. Returns `None` if a separate helper must build the jail: without a
    /// private root, or with the network of the host, whose resolver file can change at any time.
    pub fn preparation(&self) -> Option<Preparation> {
        let is_separate = self.confinement == Confinement::Full && self.network != Network::Full;
        let configuration = || self.binds.iter().filter(|bind| bind.is_configuration()).cloned().collect();
        is_separate.then(|| Preparation {
            uid: self.uid,
            gid: self.gid,
            files: self.files.clone(),
            configuration: configuration(),
        })
    }
}

/// The workspace of a jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// The path of the workspace inside the jail. In a jail without its own root, the same path as `source`.
    pub at: PathBuf,
    /// The source of the files.
    pub source: Source,
    /// Read-only mounts inside the workspace (hold-outs, a repository), made after the workspace. Their mount points
    /// exist in `source`.
    pub inner: Vec<Bind>,
}

impl Workspace {
    /// Returns the folders above inner mounts, relative to the workspace, parents first. Each of them must be a
    /// separate mount: the kernel refuses to rename a mount point, but not the folder above it.
    pub fn above_inner(&self) -> Vec<&Path> {
        let below = self.inner.iter().filter_map(|bind| bind.at.strip_prefix(&self.at).ok());
        let above = below.flat_map(|path| path.ancestors().skip(1));
        let mut above: Vec<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
        above.sort_by_key(|path| (path.components().count(), *path));
        above.dedup();
        above
    }
}

/// The source of the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// Layers of folders, the first on top, below an upper folder that receives all changes.
    Overlay {
        /// Read-only layers. Earlier layers hide later ones.
        lower: Vec<PathBuf>,
        /// The folder that receives the changes. It must be on the same file system as `work`.
        upper: PathBuf,
        /// An empty folder for use by the kernel.
        work: PathBuf,
    },
    /// A folder that may be written: a copy of the workspace.
    Directory(PathBuf),
}

/// A path of the host that exists inside the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// Path on the host. The host has resolved it once, and no component may be a symbolic link.
    pub source: PathBuf,
    /// Path inside the jail.
    pub at: PathBuf,
    /// True if commands may write to it (build caches).
    #[serde(default)]
    pub writable: bool,
    /// True if it may be missing on the host.
    #[serde(default)]
    pub optional: bool,
    /// The folders of an overlay over the source. It takes what commands write below the path, so that the source never
    /// changes. If the bind is not writable, it only adds the content of its upper folder, such as mount points. Only for a
    /// folder inside the workspace of [`Confinement::Full`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<BindLayer>,
}

/// The folders of an overlay over the source of a bind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindLayer {
    /// The folder that receives the changes. It must be on the same file system as `work`.
    pub upper: PathBuf,
    /// An empty folder for use by the kernel.
    pub work: PathBuf,
}

impl Bind {
    /// Returns true if the path inside is below `/etc`.
    pub fn is_configuration(&self) -> bool {
        self.at.starts_with("/etc")
    }

    /// Creates a bind of a path of the host that must exist and that no command may write.
    pub fn read_only(source: PathBuf, at: PathBuf) -> Self {
        Self { source, at, writable: false, optional: false, layer: None }
    }

    /// Creates a bind of a path of the host that must exist and that commands may write.
    pub fn writable(source: PathBuf, at: PathBuf) -> Self {
        Self { writable: true, ..Self::read_only(source, at) }
    }
}

/// The network that commands can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Only a private loopback. With `Landlock`, not even a loopback. With `Unconfined`, not enforced.
    None,
    /// A private loopback, with a listener on `127.0.0.1:3128` whose descriptor is sent to the host.
    Proxy,
    /// Everything that the host can reach, including the host's loopback. With `Landlock`, no local sockets.
    Full,
}

/// Limits on resources. 0 means nothing, not "unlimited".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Maximum processor time of one process, milliseconds. The kernel counts whole seconds.
    pub cpu_ms: u64,
    /// Maximum memory of all processes together, bytes.
    pub command_memory_bytes: u64,
    /// True if a control group or the host counts the memory that processes use. Otherwise the helper limits the data
    /// segment of each process.
    pub is_memory_counted: bool,
    /// Maximum number of processes and threads at the same time.
    pub processes: u64,
    /// Maximum number of open descriptors of one process. The soft limit is lower; a process may raise it to this value.
    pub descriptors: u64,
    /// Maximum size of one file, bytes.
    pub file_bytes: u64,
    /// Maximum size of each of `/tmp`, the home folder and `/dev/shm`, bytes. Not enforced in a jail without its own
    /// root.
    pub tmp_bytes: u64,
}
