//! Bytes between two sockets: both directions in one thread, a fixed buffer each, every wait bounded and ended by a stop.
//!
//! Backpressure: a side that stops reading stops the other side's sending. Half-close: the end of one side's sending is passed on
//! to the other. An idle connection ends.

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

    /// Waits for one descriptor; a stop and a late answer are errors.
    pub(crate) fn wait_for(self, fd: impl AsFd, flags: PollFlags, until: Instant) -> io::Result<()> {
        match self.wait(&[(fd.as_fd(), flags)], until)? {
            WakeReason::Ready => Ok(()),
            WakeReason::Late => Err(ErrorKind::TimedOut.into()),
            WakeReason::Stopped => Err(ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Reads some bytes of a socket that does not block; 0 at its end.
    pub(crate) fn read(self, mut from: &TcpStream, into: &mut [u8], until: Instant) -> io::Result<usize> {
        loop {
            self.wait_for(from, PollFlags::IN, until)?;
            match from.read(into) {
                Err(error) if is_passing(&error) => {}
                other => return other,
            }
        }
    }

    /// Writes everything to a socket that does not block.
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

/// One direction.
pub(crate) struct Flow<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes that may still be read.
    left: u64,
    /// True if the end of `from` is passed on to `to`.
    closes: bool,
    done: bool,
    /// Bytes written so far.
    pub(crate) moved: u64,
}

impl<'a> Flow<'a> {
    /// Everything until the end of `from`, which is passed on.
    pub(crate) fn whole(from: &'a TcpStream, to: &'a TcpStream) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { from, to, buffer, start: 0, end: 0, left: u64::MAX, closes: true, done: false, moved: 0 }
    }

    /// So many bytes and no more; the end is not passed on, for a server may take it for the client's leaving.
    pub(crate) fn limited(from: &'a TcpStream, to: &'a TcpStream, bytes: u64) -> Self {
        Self { left: bytes, closes: false, done: bytes == 0, ..Self::whole(from, to) }
    }

    /// The receiver of the bytes.
    pub(crate) fn to(&self) -> &'a TcpStream {
        self.to
    }

    fn wants_read(&self) -> bool {
        !self.done && self.start == self.end && self.left > 0
    }

    fn wants_write(&self) -> bool {
        !self.done && self.start < self.end
    }

    /// Moves what can be moved without waiting. True when anything happened.
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
            // Fails only if the other side is gone.
            let _ = self.to.shutdown(Shutdown::Write);
        }
    }
}

/// Moves bytes until both directions are done, or the answer is where only the answer matters; until one side fails, nothing
/// moves for `idle`, or a stop.
pub(crate) fn pump(up: &mut Flow<'_>, down: &mut Flow<'_>, stop: Stop<'_>, idle: Duration) -> io::Result<()> {
    let mut quiet_until = Instant::now() + idle;
    loop {
        // A server that refuses a body may answer all the same.
        let sent = match up.step() {
            Err(_) if !up.closes => {
                up.done = true;
                false
            }
            other => other?,
        };
        if sent | down.step()? {
            quiet_until = Instant::now() + idle;
        }
        if down.done && (up.done || !up.closes) {
            return Ok(());
        }
        // Poll only for wanted events: an ignored hang-up would be reported again and again.
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
