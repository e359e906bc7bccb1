//! One command from start to end: its pipes, its clock, its signals.
//!
//! A single thread waits for whatever comes first. Output is always drained, so a command never blocks on us, and reading
//! ends at a deadline after the kill, so nothing that holds a pipe can make us wait.

use super::capture::Capture;
use super::family::Family;
use super::{Captured, ExecError, ExecPolicy, How, io_error};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often time and cancellation are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long output is still read when everything is dead: what is in the pipes, not what comes.
const DRAIN_MAX: Duration = Duration::from_secs(2);
/// Most bytes taken from a stream before the clock is looked at again.
const ROUND_BYTES_MAX: usize = 1 << 20;

/// Time, cancellation and output of a command.
pub(super) struct Bounds<'b> {
    pub(super) policy: &'b ExecPolicy,
    pub(super) timeout: Duration,
    pub(super) canceled: &'b AtomicBool,
}

/// How a command ended by itself or by us, with its output.
pub(super) struct Driven {
    pub(super) stopped: Option<How>,
    pub(super) status: std::process::ExitStatus,
    pub(super) killed: u32,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

/// Drives a started command to its end and kills whatever it leaves.
pub(super) fn drive(mut family: Family, stdin: Option<Vec<u8>>, bounds: &Bounds<'_>) -> Result<Driven, ExecError> {
    let mut pipes =
        Pipes::new(&mut family, stdin, bounds.policy.output_bytes_max).map_err(io_error("open its pipes"))?;
    let stopped = wait(&family, &mut pipes, bounds)?;
    let kill_max = bounds.policy.kill_max;
    let (status, killed) = family.end(kill_max).map_err(|count| ExecError::Survivors { count, waited: kill_max })?;
    let status = status.map_err(io_error("reap it"))?;
    let deadline = Instant::now() + DRAIN_MAX;
    while pipes.any_open() && Instant::now() < deadline {
        pipes.turn(LOOK, None).map_err(io_error("read its output"))?;
    }
    let [stdout, stderr] = pipes.streams.map(Stream::finish);
    Ok(Driven { stopped, status, killed, stdout, stderr })
}

/// Waits until the command itself has ended, or was told to and had its time. Returns why it was told.
fn wait(family: &Family, pipes: &mut Pipes, bounds: &Bounds<'_>) -> Result<Option<How>, ExecError> {
    let begin = Instant::now();
    let mut stopping: Option<(How, Instant)> = None;
    loop {
        // A dead command would end every wait at once while its children have their time.
        let held = if stopping.is_none() { family.held() } else { None };
        pipes.turn(LOOK, held).map_err(io_error("read its output"))?;
        let over = has_ended(family).map_err(io_error("wait for it"))?;
        match stopping {
            None if over => return Ok(None),
            Some((how, _)) if over && !family.has_others() => return Ok(Some(how)),
            Some((how, kill_at)) if Instant::now() >= kill_at => return Ok(Some(how)),
            Some(_) => {}
            None => {
                let how = if bounds.canceled.load(Ordering::Relaxed) {
                    How::Canceled
                } else if begin.elapsed() >= bounds.timeout {
                    How::TimedOut
                } else {
                    continue;
                };
                family.signal(Signal::TERM);
                stopping = Some((how, Instant::now() + bounds.policy.grace));
            }
        }
    }
}

/// True when the command itself is dead. It stays unreaped, so that its number keeps naming its session and group.
fn has_ended(family: &Family) -> io::Result<bool> {
    let Some(pid) = family.pid() else { return Ok(true) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(status) => Ok(status.is_some()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

struct Pipes {
    streams: [Stream; 2],
    input: Option<Input>,
}

struct Stream {
    pipe: Option<OwnedFd>,
    capture: Capture,
}

struct Input {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

impl Pipes {
    fn new(family: &mut Family, stdin: Option<Vec<u8>>, bytes_max: u64) -> io::Result<Self> {
        let child = family.child();
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        let input = child.stdin.take().map(OwnedFd::from).zip(stdin);
        for pipe in [&stdout, &stderr].into_iter().flatten().chain(input.as_ref().map(|(pipe, _)| pipe)) {
            rustix::fs::fcntl_setfl(pipe, rustix::fs::fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let stream = |pipe| Stream { pipe, capture: Capture::new(bytes_max) };
        let input = input.map(|(pipe, bytes)| Input { pipe, bytes, written: 0 });
        Ok(Self { streams: [stream(stdout), stream(stderr)], input })
    }

    fn any_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.pipe.is_some())
    }

    /// Waits for any pipe or the end of the command, at most for `max`, and moves what can be moved.
    fn turn(&mut self, max: Duration, held: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let readable = self.streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(|pipe| (pipe, PollFlags::IN));
        let writable = self.input.iter().map(|input| (&input.pipe, PollFlags::OUT));
        let pipes = readable.chain(writable).map(|(pipe, flags)| PollFd::from_borrowed_fd(pipe.as_fd(), flags));
        let held = held.map(|held| PollFd::from_borrowed_fd(held, PollFlags::IN));
        let mut waiting: Vec<PollFd<'_>> = pipes.chain(held).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(max.subsec_nanos()) as _ };
        match rustix::event::poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for stream in &mut self.streams {
            stream.read()?;
        }
        if self.input.as_mut().is_some_and(Input::write) {
            self.input = None;
        }
        Ok(())
    }
}

impl Stream {
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut buffer = [0_u8; 64 << 10];
        let mut taken = 0;
        while taken < ROUND_BYTES_MAX {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => {
                    self.pipe = None;
                    return Ok(());
                }
                Ok(got) => {
                    self.capture.take(&buffer[..got]);
                    taken += got;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn finish(self) -> Captured {
        self.capture.finish(self.pipe.is_some())
    }
}

impl Input {
    /// Writes what the pipe takes; true when there is nothing more to write or nobody to read it.
    fn write(&mut self) -> bool {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(written) => self.written += written,
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        true
    }
}
