//! Frames of the control socket: a length, then JSON. Descriptors travel beside the first byte of a frame.
//!
//! The socket is also the lifeline: when the host's end closes, the jail and everything in it dies.

use crate::policy::{Policy, Preparation};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most bytes of one frame's JSON.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// A request of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Build the jail; the first frame. With [`crate::policy::Confinement::Bwrap`] sent twice, the second time after `Spawned`: the helper inside
    /// takes it anew.
    Setup(Box<Policy>),
    /// Become a template; the first frame instead of `Setup`. No reply unless that fails. From then on only `Fork` follows.
    Prepare(Preparation),
    /// Fork the first process of a new jail. Beside it the jail's control socket, whose first frame is `Setup`.
    Fork,
    /// Start a command. Beside it three descriptors: its standard input, output and error. One at a time.
    Run(Command),
    /// Ask the running command's process group to end.
    Terminate,
    /// Kill everything the running command started.
    Kill,
}

/// A command inside a jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// Words after the program's name.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory, relative to the workspace.
    pub cwd: String,
}

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// An absolute path inside the jail.
    Path(PathBuf),
    /// A name, looked up inside the jail in these folders only, nothing below the workspace.
    Search {
        /// The name, without a slash.
        name: String,
        /// Absolute folders.
        folders: Vec<PathBuf>,
    },
    /// The helper's own test of the sandbox: checks that must fail and checks that must work, as JSON on standard output.
    SelfTest(Targets),
}

/// Objects of the host that the self-test tries to reach. All of them belong to the requesting host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// A file outside that must not be readable.
    pub secret: PathBuf,
    /// A folder outside in which nothing must appear.
    pub folder: PathBuf,
    /// A TCP and UDP port of the host's loopback.
    pub port: u16,
    /// Path of a listening Unix socket.
    pub socket: PathBuf,
    /// Name of a listening abstract Unix socket.
    pub abstract_socket: String,
    /// Process id of the host, as the host sees it.
    pub process: i32,
}

/// One check of the self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTestCheck {
    /// The attempted action, such as `read-outside`.
    pub name: String,
    /// True for what has to work, false for what has to fail.
    pub must_work: bool,
    /// True if it worked.
    pub worked: bool,
    /// The system's answer.
    pub answer: String,
}

/// A reply of the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// The first process exists. Beside it a pidfd: of PID 1 where there is a PID namespace, else of the helper itself; with
    /// [`crate::policy::Confinement::Bwrap`] also the file in memory that `bwrap` writes its errors into; from a template also the
    /// jail's mount namespace, which exists as long as its descriptor is open.
    Spawned,
    /// Objects that hold memory beside processes, readable at any time. Beside it six descriptors: the namespace's lists of segments,
    /// queues and semaphores of System V, then the folders in memory: for temporary files, home and `/dev/shm`. Only where these
    /// are the jail's own, and before `Ready`.
    Stores,
    /// The jail is ready. Beside it a descriptor of the workspace's root as seen inside (`Full`), then, with
    /// [`crate::policy::Network::Proxy`], the listener, then, with [`crate::policy::Policy::sockets`], the host's end of another socket:
    /// each frame `null` in it is answered with a frame `null` and a TCP socket of the jail's network.
    Ready(Enforcement),
    /// The jail could not be built, or a request failed. After a failed `Setup` nothing more comes.
    Failed(Failure),
    /// The command was started.
    Started,
    /// The command has ended and nothing that it started is alive.
    Ended(CommandEnd),
}

/// The enforced confinement of a jail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enforcement {
    /// Landlock's ABI that is enforced; 0 where none is.
    pub landlock_abi: u32,
    /// Guarantees of the tier that are weaker here, such as `proc=shared` or `processes=soft`.
    pub degradations: Vec<String>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The step, such as `mount overlay`.
    pub step: String,
    /// The system's error number, 0 when it was not the system.
    pub errno: i32,
    /// The answer in words.
    pub text: String,
}

/// The end of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEnd {
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal, when one ended it.
    pub signal: Option<i32>,
    /// Processes that were alive when the command itself had ended.
    pub killed: u32,
    /// Processes that could not be killed in time; above 0 the jail is lost.
    pub survivors: u32,
    /// Processor time of everything it started, in milliseconds.
    pub cpu_ms: u64,
    /// Memory of its largest process, in bytes.
    pub memory_peak_bytes: u64,
}
