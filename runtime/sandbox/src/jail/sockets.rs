//! Sockets of a jail's own network, taken out of it one at a time.
//!
//! A socket belongs to the network in which it was made, whoever uses it. So this program can connect to a port inside, or listen on
//! one, without entering the jail's namespaces and without a helper that moves bytes.

use glovebox_jail::control::{receive_frame, send_frame};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time the jail's first process may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The way on which the jail's first process is asked.
#[derive(Debug)]
pub(super) struct Sockets(Mutex<OwnedFd>);

impl Sockets {
    pub(super) fn new(way: OwnedFd) -> Self {
        Self(Mutex::new(way))
    }

    /// Asks for one socket and waits for it.
    pub(super) fn take(&self) -> io::Result<OwnedFd> {
        let way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&*way, direction, Some(ANSWER_MAX))?;
        }
        send_frame(&*way, &(), &[]).map_err(io::Error::other)?;
        let answer = receive_frame::<()>(&*way).map_err(io::Error::other)?;
        let socket = answer.and_then(|((), descriptors)| descriptors.into_iter().next());
        socket.ok_or_else(|| io::Error::other("the sandbox sent no socket"))
    }
}
