//! The host's end of a helper's control socket: it sends requests and receives replies, both with descriptors.
//!
//! Closing the socket always ends a jail, because the helper treats that as the end of the host. A frame that has begun
//! must be complete within a time limit, so that a broken helper cannot block the host.

use glovebox_jail_helper::control::{ControlError, receive_frame, send_frame};
use glovebox_jail_helper::wire::{Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum time for one frame after its first byte.
const FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// One end of a control socket.
#[derive(Debug)]
pub(super) struct Control {
    socket: OwnedFd,
}

impl Control {
    /// Creates a socket pair and returns the host's end and the helper's end.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&ours, direction, Some(FRAME_TIME_MAX))?;
        }
        Ok((Self { socket: ours }, theirs))
    }

    /// Sends a request with descriptors.
    pub(super) fn send(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send_frame(&self.socket, request, descriptors).map_err(io_error)
    }

    /// Receives the next reply with its descriptors. Returns `None` if the helper has closed its end.
    pub(super) fn receive(&self) -> io::Result<Option<(Reply, Vec<OwnedFd>)>> {
        match receive_frame(&self.socket) {
            Err(ControlError::CutOff | ControlError::Socket(Errno::CONNRESET)) => Ok(None),
            other => other.map_err(io_error),
        }
    }

    /// Waits for the next reply until `deadline`.
    pub(super) fn receive_until(&self, deadline: Instant) -> io::Result<Option<(Reply, Vec<OwnedFd>)>> {
        if wait_readable(&self.socket, deadline)? {
            return self.receive();
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the jail helper did not answer in time"))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn io_error(error: ControlError) -> io::Error {
    match error {
        ControlError::Socket(errno) => errno.into(),
        other => io::Error::other(other),
    }
}

/// Waits until a descriptor is readable. A pidfd is readable once its process is dead. Returns false at the deadline.
pub(super) fn wait_readable(descriptor: impl AsFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        match rustix::event::poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
