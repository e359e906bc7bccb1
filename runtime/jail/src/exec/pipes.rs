//! The three pipes of a command, moved without blocking.
//!
//! Output is always drained, so a command never waits for the host. The size of the stored part is limited.

use super::CapturedOutput;
use super::capture::Capture;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Maximum number of bytes that are read from a stream before the clock is checked again.
const ROUND_BYTES_MAX: usize = 1 << 20;
/// Maximum duration of a single wait, seconds.
const WAIT_SECONDS_MAX: u64 = 3_600;

/// The host's ends of a command's pipes.
pub(crate) struct Pipes {
    streams: [Stream; 2],
    input: Option<Input>,
}

struct Stream {
    pipe: Option<OwnedFd>,
    capture: Capture,
    forward: Option<Forward>,
}

/// The receiver of a forwarded stream. A slow reader slows the program down. If the reader closes its end, the
/// program's pipe is closed.
struct Forward {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

struct Input {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

impl Pipes {
    /// Takes the host's ends: the pipes of standard output and error to read from, and with `input` the pipe to write
    /// to and the bytes.
    pub(crate) fn new(
        output: [Option<OwnedFd>; 2],
        input: Option<(OwnedFd, Vec<u8>)>,
        bytes_max: u64,
    ) -> io::Result<Self> {
        for pipe in output.iter().flatten().chain(input.iter().map(|(pipe, _)| pipe)) {
            rustix::fs::fcntl_setfl(pipe, rustix::fs::fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let streams = output.map(|pipe| Stream { pipe, capture: Capture::new(bytes_max), forward: None });
        Ok(Self { streams, input: input.map(|(pipe, bytes)| Input { pipe, bytes, written: 0 }) })
    }

    /// Forwards output and error to these pipes. Only their length and digest are stored.
    pub(crate) fn forward(&mut self, to: [OwnedFd; 2]) -> io::Result<()> {
        for (stream, pipe) in self.streams.iter_mut().zip(to) {
            rustix::fs::fcntl_setfl(&pipe, rustix::fs::fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
            stream.forward = Some(Forward { pipe, bytes: Vec::new(), written: 0 });
        }
        Ok(())
    }

    /// Returns the number of bytes of output and error so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.capture.total_bytes()).sum()
    }

    /// Returns true while a process may still write, or while output still waits to be forwarded.
    pub(crate) fn any_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.pipe.is_some() || stream.is_full())
    }

    /// Waits until any pipe or any of `others` is ready, at most for `max`, and moves bytes without blocking. Returns
    /// which of the others are readable.
    pub(crate) fn turn<const N: usize>(&mut self, max: Duration, others: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
        let others = others.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN));
        let input = self.input.as_ref().map(|input| PollFd::new(&input.pipe, PollFlags::OUT));
        let mut waiting: Vec<PollFd<'_>> = others.into_iter().chain(input).collect();
        let streams = self.streams.each_ref().map(|stream| {
            stream.awaited().map(|awaited| {
                waiting.push(awaited);
                waiting.len() - 1
            })
        });
        let seconds = max.as_secs().min(WAIT_SECONDS_MAX);
        let timeout = Timespec { tv_sec: seconds as _, tv_nsec: i64::from(max.subsec_nanos()) as _ };
        match rustix::event::poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |index: usize| !waiting[index].revents().is_empty();
        let (others, streams) = (std::array::from_fn(is_ready), streams.map(|index| index.is_some_and(is_ready)));
        for (stream, is_ready) in self.streams.iter_mut().zip(streams) {
            if is_ready {
                stream.read()?;
            }
        }
        if self.input.as_mut().is_some_and(Input::write) {
            self.input = None;
        }
        Ok(others)
    }

    /// Ends reading and returns the stored output and error.
    pub(crate) fn finish(self) -> [CapturedOutput; 2] {
        self.streams.map(Stream::finish)
    }
}

impl Stream {
    /// Returns the descriptor that must be ready before bytes can be moved.
    fn awaited(&self) -> Option<PollFd<'_>> {
        match &self.forward {
            Some(forward) if self.is_full() => Some(PollFd::new(&forward.pipe, PollFlags::OUT)),
            _ => self.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; 64 << 10];
        let mut taken = 0;
        while taken < ROUND_BYTES_MAX && self.pass_on() {
            let Some(pipe) = &self.pipe else { return Ok(()) };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(got) => {
                    self.capture.push(&buffer[..got]);
                    if let Some(forward) = &mut self.forward {
                        forward.bytes.extend_from_slice(&buffer[..got]);
                    }
                    taken += got;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns true while bytes wait to be forwarded.
    fn is_full(&self) -> bool {
        self.forward.as_ref().is_some_and(|forward| !forward.bytes.is_empty())
    }

    /// Forwards the bytes that were read. Returns false while the reader's pipe is full. Then no more bytes are read.
    fn pass_on(&mut self) -> bool {
        let Some(forward) = &mut self.forward else { return true };
        match forward.write() {
            Ok(true) if self.pipe.is_none() => self.forward = None,
            Ok(is_empty) => return is_empty,
            Err(_) => (self.forward, self.pipe) = (None, None),
        }
        true
    }

    fn finish(self) -> CapturedOutput {
        self.capture.finish(self.pipe.is_some())
    }
}

impl Forward {
    /// Writes as much as the pipe accepts. Returns true if everything was written.
    fn write(&mut self) -> Result<bool, Errno> {
        while self.written < self.bytes.len() {
            match rustix::io::write(&self.pipe, &self.bytes[self.written..]) {
                Ok(written) => self.written += written,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.written = 0;
        Ok(true)
    }
}

impl Input {
    /// Writes as much as the pipe accepts. Returns true if nothing is left to write or the reader has closed its end.
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
