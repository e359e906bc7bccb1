//! Host programs: what is started, what the operator allows every one, and how one ended.
//!
//! A command gets an empty environment plus an allow-list, a fixed `PATH`, a wall timeout and capped output, whatever walls
//! stand around it. The walls, and the running itself, are [`crate::jail`]'s.

pub(crate) mod capture;
pub(crate) mod environment;
pub(crate) mod pipes;
pub(crate) mod program;
mod receipt;

pub use environment::is_dangerous;
pub use receipt::CommandLine;

use crate::jail::Bind;
use crate::path::ScopePath;
use crate::tree::Tree;
use glovebox_record::{CommandEnding, Digest};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the operator allows every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecPolicy {
    /// Where programs are looked up; absolute folders outside the workspace.
    pub path: Vec<PathBuf>,
    /// Variables every command gets. `{scratch}` in a value stands for the command's scratch folder, `{home}` for its HOME.
    pub env: BTreeMap<String, String>,
    /// Folders and files of the host that exist read-only in a jail: toolchains, `[sandbox] read`.
    pub binds: Vec<Bind>,
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
            binds: Vec::new(),
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

/// What was kept of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Digest of the whole stream.
    pub digest: Digest,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How it ended.
    pub how: CommandEnding,
    /// Exit code for [`CommandEnding::Exited`], signal number for [`CommandEnding::Signaled`].
    pub code: Option<i32>,
    /// Wall time from start to the death of its whole tree.
    pub duration: Duration,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Processes that were still there when the command itself had ended, and were killed.
    pub killed: u32,
    /// Processor time of everything it started, in milliseconds.
    pub cpu_ms: u64,
    /// Largest memory of all its processes together; where no control group counts, the largest that was seen.
    pub memory_peak_bytes: u64,
    /// Most processes at the same time that were seen; like the following none where it ended before it was looked at.
    pub processes_peak: Option<u64>,
    /// Most descriptors of one process.
    pub descriptors_peak: Option<u64>,
    /// Length of the largest file it wrote.
    pub file_peak_bytes: Option<u64>,
    /// Bytes in the fullest of `/tmp`, home and `/dev/shm` at its end; none where these are folders of the host.
    pub tmp_bytes: Option<u64>,
    /// The limit it passed, for which it was killed or could not go on; a name of `[limits]`.
    pub over: Option<String>,
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
    /// The jail it would run in is gone, or went while it ran.
    #[error("the sandbox of the stage has ended: {0}")]
    Lost(&'static str),
    /// Some of its processes could not be killed in time.
    #[error("{count} processes of the command could not be killed within {waited:?}")]
    Survivors {
        /// How many.
        count: usize,
        /// How long it was tried.
        waited: Duration,
    },
    /// The operating system refused.
    #[error("could not run the command: failed to {act}: {source}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// The run was canceled before the command began, so nothing was started.
pub(crate) fn not_begun(duration: Duration) -> Exit {
    let nothing = || capture::Capture::new(0).finish(false);
    Exit {
        how: CommandEnding::Canceled,
        code: None,
        duration,
        stdout: nothing(),
        stderr: nothing(),
        killed: 0,
        cpu_ms: 0,
        memory_peak_bytes: 0,
        processes_peak: None,
        descriptors_peak: None,
        file_peak_bytes: None,
        tmp_bytes: None,
        over: None,
    }
}

/// Opens where a command begins; no component may be a link.
pub(crate) fn working_directory(root: &Path, cwd: &ScopePath) -> Result<OwnedFd, ExecError> {
    let tree = Tree::open(root).map_err(io_error("open the workspace"))?;
    let missing = |_| ExecError::Invalid(format!("`{cwd}` is no directory of the workspace the stage may see"));
    tree.directory(Path::new(cwd.as_str())).map_err(missing)
}

pub(crate) fn io_error(act: &'static str) -> impl Fn(io::Error) -> ExecError {
    move |source| ExecError::Io { act, source }
}
