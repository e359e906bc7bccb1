//! A child process of Glovebox that processes untrusted bytes within limits.
//!
//! The parent passes the bytes in a memfd, waits at most for the wall time, and reads a reply of limited length after
//! the child has ended. The child confines itself before it reads a byte ([`confine()`]): address space, processor time
//! and the length of the reply are limited. The allowed system calls are just enough to compute, read the input and
//! write the reply. The environment of the child is constant, and its working directory is `/`. Its only descriptors
//! are the three standard ones. The child dies with the thread that waits for it. This module does not know what the
//! child computes.

mod confine;

pub use confine::{ConfineError, confine};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum number of threads of a worker. Each thread needs address space, so the number must not depend on the
/// machine.
const THREADS_MAX: usize = 4;

/// The command line of a worker. The argument with the bounds is added as the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program. It must call [`confine()`] with its last argument before anything else.
    pub program: PathBuf,
    /// The arguments before the bounds.
    pub arguments: Vec<String>,
}

/// Limits on one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerBounds {
    /// Maximum address space of the child, bytes.
    pub memory_bytes: u64,
    /// Maximum processor time of all threads of the child, seconds.
    pub cpu_seconds: u64,
    /// Wall time after which the child is killed.
    pub wall: Duration,
    /// Maximum length of the reply, bytes.
    pub answer_bytes: u64,
}

/// The reply of a worker.
#[derive(Debug)]
pub struct WorkerReply {
    /// The exit code of the child.
    pub code: i32,
    /// The output of the child.
    pub bytes: Vec<u8>,
}

/// Why a worker gave no reply.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The child exceeded its memory limit, on the heap or on the stack.
    #[error("it needed more memory than its limit")]
    Memory,
    /// The child exceeded its limit of processor time.
    #[error("it needed more processor time than its limit")]
    Cpu,
    /// The child exceeded its wall time and was killed.
    #[error("it did not end in time")]
    Wall,
    /// The reply exceeded the maximum length.
    #[error("its answer is longer than the limit")]
    Answer,
    /// A signal that does not belong to any limit ended the child.
    #[error("signal {0} ended it")]
    Signal(i32),
    /// The operating system refused.
    #[error("failed to {step}: {source}")]
    Io {
        /// The failed step.
        step: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl Worker {
    /// Runs the worker. Blocks until the child has ended or was killed. No thread of the child is alive afterwards.
    pub fn work(&self, input: &[u8], bounds: &WorkerBounds) -> Result<WorkerReply, WorkerError> {
        let input = sealed(input).map_err(io_error("hand over the input"))?;
        let mut answer = memory_file(c"glovebox-answer").map_err(io_error("create the memory file for the answer"))?;
        let output = answer.try_clone().map_err(io_error("create the memory file for the answer"))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(confine::argument(bounds)).env_clear().current_dir("/").process_group(0);
        command.env("RAYON_NUM_THREADS", threads().to_string());
        command.stdin(input).stdout(output).stderr(Stdio::null());
        let mut child = command.spawn().map_err(io_error("start the child"))?;
        let status = wait(&mut child, bounds.wall)?;
        let code = code(status)?;
        // No process is left that could write. The seal keeps the reply unchanged while it is read.
        fcntl_add_seals(&answer, SealFlags::WRITE).map_err(|errno| io_error("seal the answer")(errno.into()))?;
        let mut bytes = Vec::new();
        let read = answer.rewind().and_then(|()| answer.take(bounds.answer_bytes).read_to_end(&mut bytes));
        read.map_err(io_error("read the answer"))?;
        Ok(WorkerReply { code, bytes })
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// Waits for the end of the child, and kills the child after the wall time.
fn wait(child: &mut Child, wall: Duration) -> Result<ExitStatus, WorkerError> {
    let ended = ends_within(child, wall);
    if !matches!(ended, Ok(true)) {
        // The child may have ended in the meantime. In any case, it has ended after this.
        let _ = child.kill();
    }
    let status = child.wait().map_err(io_error("wait for the child"))?;
    match ended {
        Ok(true) => Ok(status),
        Ok(false) => Err(WorkerError::Wall),
        Err(error) => Err(io_error("wait for the child")(error)),
    }
}

fn ends_within(child: &Child, wall: Duration) -> io::Result<bool> {
    let pid = Pid::from_child(child);
    let watched = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Instant::now() + wall;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(ready) => return Ok(ready > 0),
        }
    }
}

/// Returns the exit code, or the limit that ended the child. A failed allocation aborts, and so does a stack overflow.
fn code(status: ExitStatus) -> Result<i32, WorkerError> {
    match (status.code(), status.signal().map(Signal::from_number)) {
        (Some(code), _) => Ok(code),
        (None, Some(Signal::Abort)) => Err(WorkerError::Memory),
        (None, Some(Signal::Cpu)) => Err(WorkerError::Cpu),
        (None, Some(Signal::FileSize)) => Err(WorkerError::Answer),
        (None, Some(Signal::Other(number))) => Err(WorkerError::Signal(number)),
        (None, None) => Err(WorkerError::Signal(0)),
    }
}

enum Signal {
    Abort,
    Cpu,
    FileSize,
    Other(i32),
}

impl Signal {
    fn from_number(number: i32) -> Self {
        match number {
            libc::SIGABRT => Self::Abort,
            libc::SIGXCPU => Self::Cpu,
            libc::SIGXFSZ => Self::FileSize,
            other => Self::Other(other),
        }
    }
}

/// Returns the input as a read-only memfd.
fn sealed(input: &[u8]) -> io::Result<File> {
    let mut file = memory_file(c"glovebox-input")?;
    file.write_all(input)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

fn memory_file(name: &std::ffi::CStr) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

fn io_error(step: &'static str) -> impl Fn(io::Error) -> WorkerError {
    move |source| WorkerError::Io { step, source }
}
