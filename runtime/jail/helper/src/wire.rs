//! The frames of the control socket: a length, then JSON. Descriptors are sent with the first byte of a frame.
//!
//! The socket also keeps the jail alive: when the host closes its end, the jail and everything in it dies.

use crate::policy::{Policy, Preparation};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum size of one frame's JSON, bytes.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// A request of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Build the jail. This is the first frame. With [`crate::policy::Confinement::Bwrap`], it is sent twice: the
    /// helper inside the namespaces receives it again after `Spawned`.
    Setup(Box<Policy>),
    /// Become a template. This is the first frame instead of `Setup`. There is no reply unless the preparation fails.
    /// Only `Fork` may follow.
    Prepare(Preparation),
    /// Fork the first process of a new jail. Sent with the jail's control socket, whose first frame is `Setup`.
    Fork,
    /// Start a command. Sent with three descriptors: its standard input, output and error. Only one command may run at
    /// a time.
    Run(Command),
    /// Ask the process group of the running command to end.
    Terminate,
    /// Kill everything that the running command started.
    Kill,
}

/// A command inside a jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// The arguments after the name of the program.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// The working directory, relative to the workspace.
    pub cwd: String,
}

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// An absolute path inside the jail.
    Path(PathBuf),
    /// A name that is looked up inside the jail, only in these folders, and never below the workspace.
    Search {
        /// The name, without a slash.
        name: String,
        /// Absolute paths of folders.
        folders: Vec<PathBuf>,
    },
    /// The self-test of the sandbox in the helper: actions that must fail and actions that must work. The results are
    /// JSON on standard output.
    SelfTest(Targets),
}

/// Objects of the host that the self-test tries to reach. All of them were created by the host that requests the
/// self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// A file outside of the jail that must not be readable.
    pub secret: PathBuf,
    /// A folder outside of the jail in which no file may appear.
    pub folder: PathBuf,
    /// A TCP and UDP port on the host's loopback.
    pub port: u16,
    /// Path of a listening Unix socket.
    pub socket: PathBuf,
    /// Name of a listening abstract Unix socket.
    pub abstract_socket: String,
    /// Process id of the host process, as the host sees it.
    pub process: i32,
}

/// The result of one action of the self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTestCheck {
    /// Name of the attempted action, such as `read-outside`.
    pub name: String,
    /// True if the action must work, false if it must fail.
    pub must_work: bool,
    /// True if the action worked.
    pub worked: bool,
    /// The result that the system returned, as text.
    pub answer: String,
}

/// A reply of the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// The first process exists. Sent with a pidfd: of PID 1 if there is a PID namespace, otherwise of the helper
    /// itself. With [`crate::policy::Confinement::Bwrap`], also sent with the memfd into which `bwrap` writes its
    /// errors. From a template, also sent with the jail's mount namespace, which exists as long as its descriptor is
    /// open.
    Spawned,
    /// Stores of memory outside of processes, which can be read at any time. Sent with six descriptors: the namespace's
    /// lists of System V segments, queues and semaphores, then the tmpfs folders for temporary files, home and
    /// `/dev/shm`. Sent before `Ready`, and only if these belong to the jail alone.
    Stores,
    /// The jail is ready. Sent with a descriptor of the workspace's root as seen inside (`Full`), then, with
    /// [`crate::policy::Network::Proxy`], the listener, then, with [`crate::policy::Policy::sockets`], the host's end
    /// of another socket. On that socket, each frame `null` is answered with a frame `null` and a TCP socket of the
    /// jail's network.
    Ready(Enforcement),
    /// The jail could not be built, or a request failed. After a failed `Setup`, no other reply follows.
    Failed(Failure),
    /// The command was started.
    Started,
    /// The command has ended, and nothing that it started is alive.
    Ended(CommandEnd),
}

/// The confinement of a jail that is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enforcement {
    /// The Landlock ABI in force; 0 if Landlock is not used.
    pub landlock_abi: u32,
    /// Guarantees of the tier that are weaker on this machine, such as `proc=shared` or `processes=soft`.
    pub degradations: Vec<String>,
}

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The step that failed, such as `mount overlay`.
    pub step: String,
    /// The error number of the system; 0 if the failure is not a system error.
    pub errno: i32,
    /// The error message.
    pub text: String,
}

/// The end of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEnd {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The signal that ended the command; `None` if it exited.
    pub signal: Option<i32>,
    /// Number of processes that were alive after the command's own process had ended.
    pub killed: u32,
    /// Number of processes that could not be killed in time. If it is above 0, the jail cannot be used any more.
    pub survivors: u32,
    /// Processor time of everything that the command started, milliseconds.
    pub cpu_ms: u64,
    /// Memory of the largest process, bytes.
    pub memory_peak_bytes: u64,
}
