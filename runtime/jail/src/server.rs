//! A program that exchanges lines with a stage while it runs: a tool server in its own jail.
//!
//! Both directions are bounded: a line has a maximum length, and every wait ends at a deadline or when the run is
//! canceled. The program's output is never trusted, and it is not interpreted here. Its standard error is dropped,
//! because it could contain a secret.

use crate::exec::{Command, ExecError, Exit};
use crate::jail::{self, Jail};
use glovebox_record::CommandEnding;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which a wait checks for cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time for a program to exit after it closed its output, so that its exit code is known.
const EXIT_MAX: Duration = Duration::from_millis(500);
/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Why a line was not sent or not received.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No line arrived in time.
    #[error("it did not answer in time")]
    Timeout,
    /// A line exceeds the maximum length.
    #[error("it wrote a line of more than {0} bytes")]
    TooLong(usize),
    /// The program has ended.
    #[error("it has ended: {0}")]
    Ended(String),
    /// The run was canceled.
    #[error("the run was asked to stop")]
    Canceled,
    /// The operating system refused.
    #[error("failed to {act}: {source}")]
    Io {
        /// The failed action.
        act: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// Deadline and cancellation of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    /// Time by which the wait must end.
    pub deadline: Instant,
    /// Flag that ends every wait once it is set.
    pub canceled: &'a AtomicBool,
}

impl Wait<'_> {
    /// Waits until the pipe is ready. Checks the clock and the cancellation.
    fn ready(self, pipe: &OwnedFd, flags: PollFlags) -> Result<(), ServerError> {
        loop {
            if self.canceled.load(Ordering::Relaxed) {
                return Err(ServerError::Canceled);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ServerError::Timeout);
            }
            let look = Timespec { tv_sec: 0, tv_nsec: i64::from(left.min(LOOK).subsec_nanos()) as _ };
            match poll(&mut [PollFd::new(pipe, flags)], Some(&look)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(io_error("wait for the tool server")(errno)),
            }
        }
    }
}

/// A running server. Dropping it kills the program with all its processes.
#[derive(Debug)]
pub struct Server {
    /// `None` once the input is closed.
    input: Option<OwnedFd>,
    output: OwnedFd,
    /// Bytes that were read and not used yet.
    pending: Vec<u8>,
    /// Length of the beginning of `pending` that is known to contain no end of line.
    searched: usize,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<Result<Exit, ExecError>>>,
}

impl Server {
    /// Starts the command in its jail. If the program cannot be started, the first line returns the error.
    ///
    /// # Errors
    /// Returns [`ServerError::Io`] if the pipes or the thread cannot be created.
    pub fn start(jail: Arc<Jail>, command: Command) -> Result<Self, ServerError> {
        let pair = || pipe_with(PipeFlags::CLOEXEC).map_err(io_error("open the pipes of a tool server"));
        let ((theirs_in, input), (output, theirs_out)) = (pair()?, pair()?);
        for pipe in [&input, &output] {
            rustix::fs::fcntl_getfl(pipe)
                .and_then(|flags| rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK))
                .map_err(io_error("open the pipes of a tool server"))?;
        }
        let nowhere = File::options().write(true).open("/dev/null");
        let nowhere = nowhere.map_err(|source| ServerError::Io { act: "open `/dev/null`", source })?;
        let stop = Arc::new(AtomicBool::new(false));
        let canceled = Arc::clone(&stop);
        let running = std::thread::Builder::new().name("tool-server".to_owned()).spawn(move || {
            let pipes = [theirs_in, theirs_out, OwnedFd::from(nowhere)];
            jail.run_piped(&command, pipes, &canceled)
        });
        let running = running.map_err(|source| ServerError::Io { act: "start a tool server", source })?;
        Ok(Self { input: Some(input), output, pending: Vec::new(), searched: 0, stop, running: Some(running) })
    }

    /// Sends a line, which must not contain an end of line.
    ///
    /// # Errors
    /// Returns an error if the program has ended or does not read in time.
    pub fn send(&mut self, line: &[u8], wait: Wait<'_>) -> Result<(), ServerError> {
        for mut rest in [line, b"\n"] {
            while !rest.is_empty() {
                let Some(input) = &self.input else { return Err(self.ended()) };
                wait.ready(input, PollFlags::OUT)?;
                match rustix::io::write(input, rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(Errno::PIPE) => return Err(self.ended()),
                    Err(errno) => return Err(io_error("write to the tool server")(errno)),
                }
            }
        }
        Ok(())
    }

    /// Receives the next line, without its end of line.
    ///
    /// # Errors
    /// Returns an error if the program has ended, is too slow, or writes more than `bytes_max` bytes without an end of
    /// line.
    pub fn receive(&mut self, bytes_max: usize, wait: Wait<'_>) -> Result<Vec<u8>, ServerError> {
        loop {
            let end = self.pending[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| end + self.searched) {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                (self.searched, _) = (0, line.pop());
                return if line.len() > bytes_max { Err(ServerError::TooLong(bytes_max)) } else { Ok(line) };
            }
            self.searched = self.pending.len();
            if self.searched > bytes_max {
                return Err(ServerError::TooLong(bytes_max));
            }
            wait.ready(&self.output, PollFlags::IN)?;
            let mut buffer = [0; READ_BYTES];
            match rustix::io::read(&self.output, &mut buffer) {
                Ok(0) => return Err(self.ended()),
                Ok(got) => self.pending.extend_from_slice(&buffer[..got]),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(io_error("read from the tool server")(errno)),
            }
        }
    }

    /// Ends the program and returns how it ended.
    fn ended(&mut self) -> ServerError {
        let until = Instant::now() + EXIT_MAX;
        while self.running.as_ref().is_some_and(|running| !running.is_finished()) && Instant::now() < until {
            std::thread::sleep(EXIT_MAX / 50);
        }
        match self.end() {
            Some(Ok(exit)) => ServerError::Ended(how(&exit)),
            Some(Err(error)) => ServerError::Ended(error.to_string()),
            None => ServerError::Ended("it was stopped".to_owned()),
        }
    }

    /// Ends the program. Returns `None` if it was ended before. Closing stdin asks a tool server to
    /// exit.
    fn end(&mut self) -> Option<Result<Exit, ExecError>> {
        drop(self.input.take());
        let running = self.running.take()?;
        jail::cancel(&self.stop);
        running.join().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.end() {
            tracing::debug!(%error, "the program of a tool server failed");
        }
    }
}

fn how(exit: &Exit) -> String {
    match (exit.how, exit.code, exit.over) {
        (_, _, Some(over)) => format!("it exceeded the limit `{over}`"),
        (CommandEnding::Exited, Some(code), _) => format!("exit code {code}"),
        (CommandEnding::Signaled, Some(signal), _) => format!("signal {signal}"),
        // The program closed its output but did not exit.
        (CommandEnding::Canceled, ..) => "it closed its output".to_owned(),
        (how, ..) => how.to_string(),
    }
}

fn io_error(act: &'static str) -> impl Fn(Errno) -> ServerError {
    move |errno| ServerError::Io { act, source: errno.into() }
}
