//! The policy of one jail: what exists in it, what may be used up, what can be reached.
//!
//! Paths are absolute. The host writes it, nothing of it comes from a stage, and a field the helper does not know is an error.

use serde::{Deserialize, Serialize};

/// Which walls stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Walls {
    /// None: a session of its own, limits, and the certain death of everything that was started.
    Unconfined,
    /// Landlock and seccomp over a copied workspace; no namespaces.
    Landlock,
    /// Landlock and seccomp inside namespaces and a root that `bwrap` made.
    Bwrap,
    /// Seven namespaces, a root of our own, overlay, Landlock and seccomp.
    Full,
}

/// What the jail is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Which walls stand.
    pub walls: Walls,
    /// The workspace.
    pub workspace: Workspace,
    /// What exists read-only beside the system's own programs. Shallow paths first.
    pub binds: Vec<Bind>,
    /// Small files made in the jail's own `/etc` and elsewhere: path, content. Without a root of its own nothing is made.
    pub files: Vec<(String, String)>,
    /// The empty home folder; in walls without a root of their own an existing folder.
    pub home: String,
    /// The folder for temporary files; `/tmp` in walls with a root of their own, else an existing folder.
    pub tmp: String,
    /// User id inside; never 0. Without a user namespace it stays as it is.
    pub uid: u32,
    /// Group id inside; never 0. Without a user namespace it stays as it is.
    pub gid: u32,
    /// What can be reached.
    pub network: Network,
    /// Whether the host is given a way to sockets of the jail's own network; [`Walls::Full`] only.
    pub sockets: bool,
    /// What may be used up.
    pub bounds: Bounds,
    /// `cgroup.procs` or `tasks` files the helper enters before anything else; one that cannot be written is a failure.
    pub cgroup_procs: Vec<String>,
}

/// The workspace of a jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// Where it is inside. In walls without a root of their own the same as `source`.
    pub at: String,
    /// Where its files come from.
    pub source: Source,
    /// Read-only mounts inside the workspace (hold-outs, a repository), made after the workspace; their mount points exist in `source`.
    pub inner: Vec<Bind>,
}

impl Workspace {
    /// The folders above inner mounts, relative to the workspace, shallow ones first. Each is to be a mount of its own: the
    /// kernel moves no mount point, but it moves the folder above one, and another could be put in its place.
    pub fn above_inner(&self) -> Vec<&str> {
        let below = self.inner.iter().filter_map(|bind| bind.at.strip_prefix(&self.at)?.strip_prefix('/'));
        let mut above: Vec<&str> =
            below.flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end]).collect::<Vec<_>>()).collect();
        above.sort_by_key(|path| (path.matches('/').count(), *path));
        above.dedup();
        above
    }
}

/// Where a workspace's files come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// Layers of directories, the first on top, under an upper directory that takes all changes.
    Overlay {
        /// Read-only layers, the first hides what is in the later ones.
        lower: Vec<String>,
        /// Takes what is changed. On the same file system as `work`.
        upper: String,
        /// Scratch of the kernel's; empty.
        work: String,
    },
    /// A directory that may be written: a copy.
    Directory(String),
}

/// One thing of the host that exists inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// Path on the host. Followed once by the host; no component may be a link any more.
    pub source: String,
    /// Path inside.
    pub at: String,
    /// Whether it may be written (build caches).
    #[serde(default)]
    pub writable: bool,
    /// Whether its absence on the host is no failure.
    #[serde(default)]
    pub optional: bool,
}

/// What can be reached over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing but a loopback of its own; with Landlock's walls not even that, without walls it is not enforced.
    None,
    /// The same, and a listener on `127.0.0.1:3128` whose descriptor the host is given.
    Proxy,
    /// Whatever the host can reach, its own loopback included; with Landlock's walls no local sockets.
    Full,
}

/// What may be used up. 0 is not "unlimited" but nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Seconds of processor time of one process.
    pub cpu_seconds: u64,
    /// Bytes of memory of all processes together, held by the host; here a bound on the data of each process.
    pub memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Open descriptors of one process.
    pub descriptors: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of `/tmp`, of the home folder and of `/dev/shm`, each. Without a root of its own they are not bounded.
    pub tmp_bytes: u64,
}
