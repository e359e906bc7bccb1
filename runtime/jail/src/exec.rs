//! Types for host programs: a command, its exit, and the stored part of its output.
//!
//! [`crate::jail`] runs commands and decides what they can reach.

pub(crate) mod capture;
pub(crate) mod pipes;

use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Digest, LimitName};
use glovebox_workspace::tree::Tree;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, started directly.
    Argv(Vec<String>),
    /// One text for `/bin/sh -c`.
    Shell(String),
}

impl Program {
    /// Returns the program and the arguments to execute.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Argv(words) => words.clone(),
            Self::Shell(text) => ["sh", "-c", text].map(str::to_owned).to_vec(),
        }
    }
}

/// One command of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program to start.
    pub program: Program,
    /// Working directory, relative to the workspace. No component may be a symbolic link.
    pub cwd: ScopePath,
    /// Variables that the command sets. Dangerous names are refused unless the operator set the same value.
    pub env: Vec<(String, String)>,
    /// Standard input of the command; `None` is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Maximum wall time.
    pub timeout: Duration,
}

/// The stored part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The first bytes of the stream.
    pub head: Vec<u8>,
    /// The last bytes of the stream. They follow directly after `head` unless `truncated` is true.
    pub tail: Vec<u8>,
    /// Length of the whole stream, bytes.
    pub total_bytes: u64,
    /// True if bytes between `head` and `tail` were dropped.
    pub truncated: bool,
    /// True if reading stopped at a deadline because a process still held the stream open.
    pub cut: bool,
    /// Digest of the whole stream.
    pub digest: Digest,
}

/// The exit of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How the command ended.
    pub how: CommandEnding,
    /// The exit code for [`CommandEnding::Exited`], or the signal number for [`CommandEnding::Signaled`].
    pub code: Option<i32>,
    /// Wall time from the start until all processes of the command were dead.
    pub duration: Duration,
    /// Standard output.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// Number of processes that were alive after the command's own process had ended, and were killed.
    pub killed: u32,
    /// Processor time of everything that the command started, milliseconds.
    pub cpu_ms: u64,
    /// Peak memory of all processes together, bytes. Without a control group, the maximum of all samples.
    pub memory_peak_bytes: u64,
    /// Peak number of processes: from the control group, or the maximum of all samples. `None` if there is neither.
    pub processes_peak: Option<u64>,
    /// Peak number of open descriptors of one process; `None` if the command ended before the first sample.
    pub descriptors_peak: Option<u64>,
    /// Length of the largest file that the command wrote, bytes; `None` if the command ended before the first sample.
    pub file_peak_bytes: Option<u64>,
    /// Bytes in the fullest of `/tmp`, home and `/dev/shm` when the command ended; `None` if these are folders of the
    /// host.
    pub tmp_bytes: Option<u64>,
    /// The limit because of which the command was killed or failed, if there is one.
    pub over: Option<LimitName>,
}

/// Why a command did not run or could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No folder in the `PATH` of commands has a program of this name.
    #[error(
        "no program `{0}` in the PATH of commands; add folders with `[exec] path` or `toolchains` in glovebox.toml"
    )]
    NotFound(String),
    /// The command is not allowed or malformed.
    #[error("{0}")]
    Invalid(String),
    /// The first process of the jail was killed from outside of the jail, and with it everything in the jail. In tier
    /// `unconfined`, the command itself can do that.
    #[error("the sandbox's first process was killed by a signal, so the result of the command is unknown")]
    Killed,
    /// The jail cannot be used any more.
    #[error("the sandbox of the stage has ended: {0}")]
    Lost(&'static str),
    /// Some processes of the command could not be killed in time.
    #[error("{count} processes of the command could not be killed within {waited:?}")]
    Survivors {
        /// Number of the processes.
        count: usize,
        /// How long the sandbox tried to kill them.
        waited: Duration,
    },
    /// The operating system refused.
    #[error("could not run the command: failed to {act}: {source}")]
    Io {
        /// The failed action.
        act: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl Exit {
    /// Creates the exit of a command of which nothing else is known.
    pub fn unmeasured(how: CommandEnding, duration: Duration) -> Self {
        let nothing = || capture::Capture::new(0).finish(false);
        Self {
            how,
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
}

impl ExecError {
    /// Returns true if the command was started and its result is unknown.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Survivors { .. } | Self::Killed | Self::Lost(_))
    }
}

/// Opens the working directory of a command. No component may be a symbolic link.
pub(crate) fn working_directory(root: &Path, cwd: &ScopePath) -> Result<OwnedFd, ExecError> {
    let tree = Tree::open(root).map_err(io_error("open the workspace"))?;
    let missing = |_| ExecError::Invalid(format!("`{cwd}` is not a directory of the workspace that the stage may see"));
    tree.directory(Path::new(cwd.as_str())).map_err(missing)
}

pub(crate) fn io_error(act: &'static str) -> impl Fn(io::Error) -> ExecError {
    move |source| ExecError::Io { act, source }
}
