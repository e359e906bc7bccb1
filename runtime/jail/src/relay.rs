//! Moves bytes between two sockets: both directions in one thread, with a fixed buffer for each. Every wait has a
//! deadline and ends at a stop.
//!
//! Backpressure: when one side stops reading, the other side's writes block. Half-close: when one side ends its stream,
//! the end is passed on to the other side. An idle connection is closed.

use crate::pulse::Pulse;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 16 << 10;

/// Ends every wait once the other end of its pipe is closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop<'a>(pub(crate) &'a PipeReader);

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    Ready,
    Late,
    Stopped,
}

impl Stop<'_> {
    /// Waits until one of the descriptors is ready.
    pub(crate) fn wait(self, on: &[(BorrowedFd<'_>, PollFlags)], until: Instant) -> io::Result<WakeReason> {
        loop {
            let mut all: Vec<PollFd<'_>> = on.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
            all.push(PollFd::new(self.0, PollFlags::IN));
            let left = until.saturating_duration_since(Instant::now());
            let timeout =
                Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut all, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if all.last().is_some_and(|stop| !stop.revents().is_empty()) => return Ok(WakeReason::Stopped),
                Ok(0) => return Ok(WakeReason::Late),
                Ok(_) => return Ok(WakeReason::Ready),
            }
        }
    }

    /// Waits for one descriptor. A stop and a timeout are errors.
    pub(crate) fn wait_for(self, fd: impl AsFd, flags: PollFlags, until: Instant) -> io::Result<()> {
        match self.wait(&[(fd.as_fd(), flags)], until)? {
            WakeReason::Ready => Ok(()),
            WakeReason::Late => Err(ErrorKind::TimedOut.into()),
            WakeReason::Stopped => Err(ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Reads some bytes of a non-blocking socket. Returns 0 at the end of the stream.
    pub(crate) fn read(self, mut from: &TcpStream, into: &mut [u8], until: Instant) -> io::Result<usize> {
        loop {
            self.wait_for(from, PollFlags::IN, until)?;
            match from.read(into) {
                Err(error) if is_passing(&error) => {}
                other => return other,
            }
        }
    }

    /// Writes all bytes to a non-blocking socket.
    pub(crate) fn write(self, mut to: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait_for(to, PollFlags::OUT, until)?;
            match to.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// One direction of a connection.
pub(crate) struct Flow<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes that may still be read.
    left: u64,
    /// True if the end of `from` is passed on to `to`.
    closes: bool,
    done: bool,
    /// Number of bytes written so far.
    pub(crate) moved: u64,
}

impl<'a> Flow<'a> {
    /// Creates a flow of all bytes until the end of `from`. The end is passed on.
    pub(crate) fn whole(from: &'a TcpStream, to: &'a TcpStream) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { from, to, buffer, start: 0, end: 0, left: u64::MAX, closes: true, done: false, moved: 0 }
    }

    /// Creates a flow of exactly `bytes` bytes. The end is not passed on, because a server may interpret it as a
    /// disconnect of the client.
    pub(crate) fn limited(from: &'a TcpStream, to: &'a TcpStream, bytes: u64) -> Self {
        Self { left: bytes, closes: false, done: bytes == 0, ..Self::whole(from, to) }
    }

    /// Returns the socket that receives the bytes.
    pub(crate) fn to(&self) -> &'a TcpStream {
        self.to
    }

    fn wants_read(&self) -> bool {
        !self.done && self.start == self.end && self.left > 0
    }

    fn wants_write(&self) -> bool {
        !self.done && self.start < self.end
    }

    /// Moves bytes without waiting, as far as possible. Returns true if any byte was moved.
    fn step(&mut self) -> io::Result<bool> {
        let read = self.wants_read() && self.fill()?;
        let written = self.wants_write() && self.drain()?;
        if !self.done && self.left == 0 && self.start == self.end {
            self.finish();
        }
        Ok(read || written)
    }

    fn fill(&mut self) -> io::Result<bool> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.buffer.len());
        match self.from.read(&mut self.buffer[..room]) {
            Ok(0) => self.left = 0,
            Ok(count) => {
                (self.start, self.end) = (0, count);
                self.left -= count as u64;
            }
            Err(error) if is_passing(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn drain(&mut self) -> io::Result<bool> {
        match self.to.write(&self.buffer[self.start..self.end]) {
            Ok(count) => {
                self.start += count;
                self.moved += count as u64;
                Ok(count > 0)
            }
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn finish(&mut self) {
        self.done = true;
        if self.closes {
            // This fails only if the other side has disconnected.
            let _ = self.to.shutdown(Shutdown::Write);
        }
    }
}

/// Moves bytes until both directions are done, or until the answer is complete if only the answer matters. Ends earlier
/// if one side fails, if no byte moves for `idle`, or at a stop. Each move is counted in `pulse`.
pub(crate) fn pump(
    up: &mut Flow<'_>,
    down: &mut Flow<'_>,
    stop: Stop<'_>,
    idle: Duration,
    pulse: &Pulse,
) -> io::Result<()> {
    let mut quiet_until = Instant::now() + idle;
    loop {
        // A server that refuses a body may still answer.
        let sent = match up.step() {
            Err(_) if !up.closes => {
                up.done = true;
                false
            }
            other => other?,
        };
        if sent | down.step()? {
            quiet_until = Instant::now() + idle;
            pulse.beat();
        }
        if down.done && (up.done || !up.closes) {
            return Ok(());
        }
        // Only wanted events are polled: an ignored hang-up would be reported again and again.
        let mut on = Vec::with_capacity(4);
        for flow in [&*up, &*down] {
            if flow.wants_read() {
                on.push((flow.from.as_fd(), PollFlags::IN));
            }
            if flow.wants_write() {
                on.push((flow.to.as_fd(), PollFlags::OUT));
            }
        }
        match stop.wait(&on, quiet_until)? {
            WakeReason::Ready => {}
            WakeReason::Late => return Err(ErrorKind::TimedOut.into()),
            WakeReason::Stopped => return Err(ErrorKind::ConnectionAborted.into()),
        }
    }
}
