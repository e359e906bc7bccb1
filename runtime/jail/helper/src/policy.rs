//! The policy of one jail: its files, its limits and its network.
//!
//! Paths are absolute and valid UTF-8. The host writes the policy; nothing in it comes from a stage. An unknown field is an error.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// HOME of commands in a jail with its own root: empty, private, removed with the jail.
pub const HOME_INSIDE: &str = "/home/glovebox";

/// Confinement of commands; a later one is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confinement {
    /// Not confined: only its own session, limits, and the certain end of everything that was started.
    Unconfined,
    /// Landlock and seccomp over a copied workspace; no namespaces.
    Landlock,
    /// The same inside namespaces and a root that `bwrap` made.
    Bwrap,
    /// Seven namespaces, its own root, overlay, Landlock and seccomp.
    Full,
}

impl Confinement {
    /// True if commands have their own namespaces and file system root.
    pub fn has_namespaces(self) -> bool {
        matches!(self, Self::Full | Self::Bwrap)
    }
}

/// Describes one jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Confinement of commands.
    pub confinement: Confinement,
    /// The workspace.
    pub workspace: Workspace,
    /// Paths beside the system's own programs. Shallow paths first.
    pub binds: Vec<Bind>,
    /// Small files to make, most of them in `/etc`: path, content. Only in a jail with its own root.
    pub files: Vec<(PathBuf, String)>,
    /// The empty home folder; without its own root an existing folder.
    pub home: PathBuf,
    /// The folder for temporary files: `/tmp` in a jail with its own root, else an existing folder.
    pub tmp: PathBuf,
    /// User id inside; never 0. Without a user namespace it stays as it is.
    pub uid: u32,
    /// Group id inside; never 0. Without a user namespace it stays as it is.
    pub gid: u32,
    /// Reachable network.
    pub network: Network,
    /// True if the host may take sockets of the jail's network; [`Confinement::Full`] only.
    pub sockets: bool,
    /// Limits.
    pub bounds: Bounds,
    /// `cgroup.procs` or `tasks` files that the helper enters first. One that cannot be written is a failure.
    pub cgroup_procs: Vec<PathBuf>,
}

/// The common part of several jails, which a template prepares once: [`crate::wire::Request::Prepare`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// As in the policies.
    pub uid: u32,
    /// As in the policies.
    pub gid: u32,
    /// As in the policies.
    pub files: Vec<(PathBuf, String)>,
    /// The binds of the policies below `/etc`.
    pub configuration: Vec<Bind>,
}

impl Policy {
    /// Returns the template's part of this jail. None if a separate helper must build it: without a private root, and with the
    /// network of the host, whose resolver can change at any time.
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
    /// Its path inside. Without its own root the same as `source`.
    pub at: PathBuf,
    /// Source of its files.
    pub source: Source,
    /// Read-only mounts inside the workspace (hold-outs, a repository), made after the workspace; their mount points exist in `source`.
    pub inner: Vec<Bind>,
}

impl Workspace {
    /// Returns the folders above inner mounts, relative to the workspace, shallow ones first. Each must be a separate mount: the
    /// kernel refuses to rename a mount point, but not the folder above it.
    pub fn above_inner(&self) -> Vec<&Path> {
        let below = self.inner.iter().filter_map(|bind| bind.at.strip_prefix(&self.at).ok());
        let above = below.flat_map(|path| path.ancestors().skip(1));
        let mut above: Vec<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
        above.sort_by_key(|path| (path.components().count(), *path));
        above.dedup();
        above
    }
}

/// Source of a workspace's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// Layers of directories, the first on top, under an upper directory that takes all changes.
    Overlay {
        /// Read-only layers; earlier ones hide later ones.
        lower: Vec<PathBuf>,
        /// Takes the changes. On the same file system as `work`.
        upper: PathBuf,
        /// Scratch of the kernel's; empty.
        work: PathBuf,
    },
    /// A directory that may be written: a copy.
    Directory(PathBuf),
}

/// One thing of the host that exists inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// Path on the host. The host has resolved it once; no component may be a link.
    pub source: PathBuf,
    /// Path inside.
    pub at: PathBuf,
    /// True if it may be written (build caches).
    #[serde(default)]
    pub writable: bool,
    /// True if it may be missing on the host.
    #[serde(default)]
    pub optional: bool,
}

impl Bind {
    /// True if it is below `/etc`.
    pub fn is_configuration(&self) -> bool {
        self.at.starts_with("/etc")
    }

    /// Shows a path of the host that must exist, and that no command may write.
    pub fn read_only(source: PathBuf, at: PathBuf) -> Self {
        Self { source, at, writable: false, optional: false }
    }
}

/// Reachable network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Only a private loopback; not even that with `Landlock`, and not enforced with `Unconfined`.
    None,
    /// The same, and a listener on `127.0.0.1:3128` whose descriptor the host is given.
    Proxy,
    /// Everything that the host can reach, its own loopback included; with `Landlock` no local sockets.
    Full,
}

/// Limits on resources. 0 means nothing, not "unlimited".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Processor time of one process in milliseconds; the system counts whole seconds.
    pub cpu_ms: u64,
    /// Bytes of memory of all processes together. The host enforces it; the helper bounds the data of each process.
    pub command_memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Open descriptors of one process.
    pub descriptors: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of `/tmp`, of the home folder and of `/dev/shm`, each. Not bounded without its own root.
    pub tmp_bytes: u64,
}
