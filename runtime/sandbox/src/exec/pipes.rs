//! The three pipes of a command, moved without ever blocking.
//!
//! Output is always drained, so a command never waits for us; what is kept of it is bounded.

use super::Captured;
use super::capture::Capture;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Most bytes taken from a stream before the clock is looked at again.
const ROUND_BYTES_MAX: usize = 1 << 20;

/// Our ends of a command's pipes.
pub(crate) struct Pipes {
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
    /// Takes our ends: what to read standard output and error from, and with `input` what to write and where.
    pub(crate) fn new(
        output: [Option<OwnedFd>; 2],
        input: Option<(OwnedFd, Vec<u8>)>,
        bytes_max: u64,
    ) -> io::Result<Self> {
        for pipe in output.iter().flatten().chain(input.iter().map(|(pipe, _)| pipe)) {
            rustix::fs::fcntl_setfl(pipe, rustix::fs::fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let streams = output.map(|pipe| Stream { pipe, capture: Capture::new(bytes_max) });
        Ok(Self { streams, input: input.map(|(pipe, bytes)| Input { pipe, bytes, written: 0 }) })
    }

    /// True while somebody may still write.
    pub(crate) fn any_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.pipe.is_some())
    }

    /// Waits for any pipe or any of `others` to be readable, at most for `max`, and moves what can be moved.
    pub(crate) fn turn(&mut self, max: Duration, others: &[BorrowedFd<'_>]) -> io::Result<()> {
        let readable = self.streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(|pipe| (pipe, PollFlags::IN));
        let writable = self.input.iter().map(|input| (&input.pipe, PollFlags::OUT));
        let pipes = readable.chain(writable).map(|(pipe, flags)| PollFd::from_borrowed_fd(pipe.as_fd(), flags));
        let others = others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN));
        let mut waiting: Vec<PollFd<'_>> = pipes.chain(others).collect();
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

    /// Ends reading and returns what was kept of output and error.
    pub(crate) fn finish(self) -> [Captured; 2] {
        self.streams.map(Stream::finish)
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
