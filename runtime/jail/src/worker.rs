//! A child of this program that processes untrusted bytes within bounds.
//!
//! The parent passes the bytes in memory, waits at most for the wall time, and reads an answer of bounded length after the child has
//! ended. The child confines itself before it reads a byte ([`confine()`]): address space, processor time and answer are limited. The
//! allowed system calls suffice to compute, read the input and write the answer. Its environment is one constant, it can use only its
//! three standard descriptors, its folder is `/`, and it dies with the thread that waits for it. This module does not know the work.

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

/// Threads of a worker. Each needs its own address space, so the number must not depend on the machine.
const THREADS_MAX: usize = 4;

/// The command line of a worker: the program and the arguments before the one with the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program; it must call [`confine()`] with its last argument before anything else.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

/// Limits on one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerBounds {
    /// Address space of the child.
    pub memory_bytes: u64,
    /// Processor time of all its threads, whole seconds.
    pub cpu_seconds: u64,
    /// Time until it is killed.
    pub wall: Duration,
    /// Length of its answer.
    pub answer_bytes: u64,
}

/// The reply of a worker.
#[derive(Debug)]
pub struct WorkerReply {
    /// Its exit code.
    pub code: i32,
    /// Its output.
    pub bytes: Vec<u8>,
}

/// Why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It exceeded its memory bound, on the heap or on its stack.
    #[error("it needed more memory than its bound")]
    Memory,
    /// It exceeded its bound of processor time.
    #[error("it needed more processor time than its bound")]
    Cpu,
    /// It was killed when its time was over.
    #[error("it did not end in time")]
    Wall,
    /// Its answer exceeded the bound.
    #[error("its answer is longer than its bound")]
    Answer,
    /// A signal ended it, and no bound sends that signal.
    #[error("signal {0} ended it")]
    Signal(i32),
    /// The system refused.
    #[error("failed to {step}: {source}")]
    Io {
        /// The failed step.
        step: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl Worker {
    /// Runs the worker. Blocks until the child has ended or was killed; none of its threads is alive afterwards.
    pub fn work(&self, input: &[u8], bounds: &WorkerBounds) -> Result<WorkerReply, WorkerError> {
        let input = sealed(input).map_err(io_error("hand over the input"))?;
        let mut answer = memory_file(c"glovebox-answer").map_err(io_error("make room for the answer"))?;
        let output = answer.try_clone().map_err(io_error("make room for the answer"))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(confine::argument(bounds)).env_clear().current_dir("/").process_group(0);
        command.env("RAYON_NUM_THREADS", threads().to_string());
        command.stdin(input).stdout(output).stderr(Stdio::null());
        let mut child = command.spawn().map_err(io_error("start the child"))?;
        let status = wait(&mut child, bounds.wall)?;
        let code = code(status)?;
        // Nothing is left that could write; the seal keeps it so while it is read.
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

/// Waits for the end, and kills when it does not come in time.
fn wait(child: &mut Child, wall: Duration) -> Result<ExitStatus, WorkerError> {
    let ended = ends_within(child, wall);
    if !matches!(ended, Ok(true)) {
        // It may have ended by now; either way it is gone after this.
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

/// The exit code, or which bound ended it. A failed allocation aborts, and so does a stack that is full.
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

/// The input as a file in memory that can only be read.
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
