//! Host programs, guarded but in this tier not confined: see [`TIER_UNCONFINED`].
//!
//! A command gets an empty environment plus an allow-list, a fixed `PATH`, its own session, a wall timeout and capped output.
//! When it ends, however it ends, its whole tree is killed before [`run`] returns.
//!
//! What this tier does not stop: reading, writing and connecting wherever the user can; work that another service does on a
//! command's behalf; what a command started and this program, killed itself, can no longer end.

pub(crate) mod capture;
mod drive;
pub(crate) mod environment;
mod family;
pub(crate) mod pipes;
pub(crate) mod program;

pub use environment::is_dangerous;

use crate::jail::Bind;
use crate::path::ScopePath;
use crate::tree::Tree;
use drive::Bounds;
use family::Family;
use program::Resolved;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Name of the tier in which a command is guarded only: it can read, write and connect wherever the user can.
pub const TIER_UNCONFINED: &str = "unconfined";

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
    /// Processes that were still there when the command itself had ended, and were killed.
    pub killed: u32,
    /// Processor time of everything it started, in milliseconds.
    pub cpu_ms: u64,
    /// Largest memory of all its processes together; where no control group counts, the largest that was seen.
    pub memory_peak_bytes: u64,
    /// Most processes at the same time that were seen.
    pub processes_peak: u64,
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

/// Runs a command in `root` and returns when nothing of it is alive any more. Blocks.
///
/// `scratch` holds its private HOME and TMPDIR. Denied: the caller's environment, programs from the workspace, dangerous
/// variables, the caller's terminal, processes that outlive it. Not denied in this tier: files and network of the user, and
/// descriptors that whoever started this program left open for every child.
///
/// # Errors
/// [`ExecError`] when it was not started, or when something of it could not be killed.
pub fn run(
    root: &Path,
    scratch: &Path,
    policy: &ExecPolicy,
    command: &Command,
    canceled: &AtomicBool,
) -> Result<Exit, ExecError> {
    let begin = Instant::now();
    for folder in ["home", "tmp"] {
        std::fs::create_dir_all(scratch.join(folder)).map_err(io_error("make its scratch folders"))?;
    }
    let inside = [root, scratch].map(std::fs::canonicalize).into_iter().collect::<Result<Vec<_>, _>>();
    let inside = inside.map_err(io_error("find the workspace"))?;
    let resolved = program::resolve(policy, &command.program, &inside)?;
    let marker = marker().map_err(io_error("draw a number"))?;
    let (home, tmp) = (inside[1].join("home"), inside[1].join("tmp"));
    let places = environment::Places { home: &home, tmp: &tmp, scratch: &inside[1] };
    let mut environment = environment::build(policy, command, places, false)?;
    environment.insert(environment::MARKER.to_owned(), marker.clone().into());
    let cwd = working_directory(root, &command.cwd)?;
    if canceled.load(Ordering::Relaxed) {
        return Ok(not_begun(begin.elapsed()));
    }
    let mut spawned = process(&resolved, &marker);
    spawned.env_clear().envs(environment);
    // By descriptor: nothing can be put in the place of the folder between the check and the start.
    spawned.current_dir(format!("/proc/self/fd/{}", cwd.as_raw_fd()));
    spawned.stdin(if command.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    spawned.stdout(Stdio::piped()).stderr(Stdio::piped());
    let family = Family::start(marker, || spawned.spawn()).map_err(io_error("start it"))?;
    let bounds = Bounds { policy, timeout: command.timeout, canceled };
    let driven = drive::drive(family, command.stdin.clone(), &bounds)?;
    let (how, code) = match (driven.stopped, driven.status.code()) {
        (Some(how), _) => (how, None),
        (None, Some(code)) => (How::Exited, Some(code)),
        (None, None) => (How::Signaled, driven.status.signal()),
    };
    Ok(Exit {
        how,
        code,
        duration: begin.elapsed(),
        stdout: driven.stdout,
        stderr: driven.stderr,
        killed: driven.killed,
        cpu_ms: 0,
        memory_peak_bytes: 0,
        processes_peak: 0,
        over: None,
    })
}

/// The run was canceled before the command began, so nothing was started.
pub(crate) fn not_begun(duration: Duration) -> Exit {
    let nothing = || capture::Capture::new(0).finish(false);
    Exit {
        how: How::Canceled,
        code: None,
        duration,
        stdout: nothing(),
        stderr: nothing(),
        killed: 0,
        cpu_ms: 0,
        memory_peak_bytes: 0,
        processes_peak: 0,
        over: None,
    }
}

/// Puts the command into a session of its own, so that it has no terminal and its group is its own, and gives it a limit
/// that marks everything it starts, and no core files; should this program be killed, the kernel kills the command (not what
/// the command started). The programs replace themselves by the next, under the same process
/// id. Where `setsid` is missing, a process group has to do: then the command can still open the terminal.
fn process(resolved: &Resolved, marker: &str) -> process::Command {
    let system =
        |name: &str| ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name)).into_iter().find(|p| p.exists());
    let number = family::number_of(marker);
    let mut words: Vec<OsString> = Vec::new();
    if let Some(prlimit) = system("prlimit") {
        words.extend([prlimit.into(), format!("--rttime={number}:{number}").into(), "--core=0:0".into()]);
    }
    if let Some(setpriv) = system("setpriv") {
        words.extend([setpriv.into(), "--pdeathsig".into(), "KILL".into()]);
    }
    let setsid = system("setsid");
    let in_session = setsid.is_some();
    words.extend(setsid.map(OsString::from));
    words.push(resolved.file.clone().into());
    let mut spawned = process::Command::new(&words[0]);
    spawned.args(&words[1..]).args(&resolved.arguments);
    if !in_session {
        spawned.process_group(0);
    }
    spawned
}

/// Opens where a command begins; no component may be a link.
pub(crate) fn working_directory(root: &Path, cwd: &ScopePath) -> Result<OwnedFd, ExecError> {
    let tree = Tree::open(root).map_err(io_error("open the workspace"))?;
    let missing = |_| ExecError::Invalid(format!("`{cwd}` is no directory of the workspace the stage may see"));
    tree.directory(Path::new(cwd.as_str())).map_err(missing)
}

/// Draws a number nobody can guess; whoever carries it belongs to the command.
fn marker() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(crate) fn io_error(act: &'static str) -> impl Fn(io::Error) -> ExecError {
    move |source| ExecError::Io { act, source }
}
