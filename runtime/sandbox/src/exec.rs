//! Host programs, guarded but in this tier not confined: see [`TIER_UNCONFINED`].
//!
//! A command gets an empty environment plus an allow-list, a fixed `PATH`, its own session, a wall timeout and capped output.
//! When it ends, however it ends, its whole tree is killed before [`run`] returns.

use crate::path::ScopePath;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the tier in which a command is guarded only: it can read, write and connect wherever the user can.
pub const TIER_UNCONFINED: &str = "unconfined";

/// What the operator allows every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPolicy {
    /// Where programs are looked up; absolute folders outside the workspace.
    pub path: Vec<PathBuf>,
    /// Variables every command gets. `{scratch}` in a value stands for the command's scratch folder.
    pub env: BTreeMap<String, String>,
    /// Bytes kept per stream, half from its head and half from its tail; limit `command_output_bytes`.
    pub output_bytes_max: u64,
    /// Time between SIGTERM and SIGKILL after a timeout or a cancellation.
    pub grace: Duration,
    /// Longest time spent on killing what a command left; then [`ExecError::Survivors`].
    pub kill_max: Duration,
}

impl Default for ExecPolicy {
    fn default() -> Self {
        let path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        Self {
            path: path.into_iter().map(PathBuf::from).collect(),
            env: BTreeMap::new(),
            output_bytes_max: 1 << 20,
            grace: Duration::from_secs(2),
            kill_max: Duration::from_secs(10),
        }
    }
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, started directly.
    Argv(Vec<String>),
    /// One text for `/bin/sh -c`.
    Shell(String),
}

/// One command of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What is started.
    pub program: Program,
    /// Where, relative to the copy; no component may be a link.
    pub cwd: ScopePath,
    /// Variables it asks for; dangerous names are refused unless the operator set that very value.
    pub env: Vec<(String, String)>,
    /// Its standard input; none is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Wall time.
    pub timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// By itself.
    Exited,
    /// By a signal that was not ours.
    Signaled,
    /// By us, at its timeout.
    TimedOut,
    /// By us, because the run was canceled.
    Canceled,
}

impl How {
    /// Returns the name used in records: `exited`, `signaled`, `timed-out` or `canceled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed-out",
            Self::Canceled => "canceled",
        }
    }
}

/// What was kept of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; directly after `head` unless `truncated`.
    pub tail: Vec<u8>,
    /// Length of the whole stream in bytes.
    pub total_bytes: u64,
    /// True when bytes between head and tail were dropped.
    pub truncated: bool,
    /// True when reading stopped at a deadline because something still held the stream open.
    pub cut: bool,
    /// BLAKE3 of the whole stream as hexadecimal digits.
    pub digest: String,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How it ended.
    pub how: How,
    /// Exit code for [`How::Exited`], signal number for [`How::Signaled`].
    pub code: Option<i32>,
    /// Wall time from start to the death of its whole tree.
    pub duration: Duration,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Absolute path of what was started.
    pub program: PathBuf,
    /// Processes that were still there when the command itself had ended, and were killed.
    pub killed: u32,
}

/// Why a command was not run or could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No such program in the fixed `PATH`.
    #[error("no program `{0}` in the fixed PATH; `[exec] path` or `toolchains` in glovebox.toml adds folders")]
    NotFound(String),
    /// The command asks for something that is never allowed.
    #[error("{0}")]
    Invalid(String),
    /// Some of its processes could not be killed in time.
    #[error("{count} processes of the command could not be killed within {waited:?}")]
    Survivors {
        /// How many.
        count: usize,
        /// How long it was tried.
        waited: Duration,
    },
    /// The operating system refused.
    #[error("could not {act}: {source}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// Runs a command in `root` and returns when nothing of it is alive any more. Blocks.
///
/// `scratch` holds its private HOME and TMPDIR. Denied: the caller's environment, programs from the workspace, dangerous
/// variables, processes that outlive it. Not denied in this tier: files and network of the user.
pub fn run(
    root: &Path,
    scratch: &Path,
    policy: &ExecPolicy,
    command: &Command,
    canceled: &AtomicBool,
) -> Result<Exit, ExecError> {
    let _ = (root, scratch, policy, command, canceled);
    Err(ExecError::Io { act: "start a command", source: io::ErrorKind::Unsupported.into() })
}
