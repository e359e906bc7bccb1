//! Sockets in a jail's network, opened one at a time.
//!
//! A socket belongs to the network namespace in which it was created. With such a socket, Glovebox can connect to a
//! port inside the jail, or listen on one, without entering the jail's namespaces and without a helper that moves
//! bytes.

use glovebox_jail_helper::control::{receive_frame, send_frame};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum time for the jail's first process to reply.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The connection on which the jail's first process sends sockets.
#[derive(Debug)]
pub(super) struct Sockets(Mutex<OwnedFd>);

impl Sockets {
    pub(super) fn new(connection: OwnedFd) -> Self {
        Self(Mutex::new(connection))
    }

    /// Requests one socket and waits for it.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&*connection, direction, Some(ANSWER_MAX))?;
        }
        send_frame(&*connection, &(), &[]).map_err(io::Error::other)?;
        let answer = receive_frame::<()>(&*connection).map_err(io::Error::other)?;
        let socket = answer.and_then(|((), descriptors)| descriptors.into_iter().next());
        socket.ok_or_else(|| io::Error::other("the sandbox sent no socket"))
    }
}
