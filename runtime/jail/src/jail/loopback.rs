//! Sockets that Glovebox creates in a jail's network.

use super::Jail;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{bind, listen};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// Maximum number of clients that wait at a port until Glovebox accepts them.
const WAITING_MAX: i32 = 128;

impl Jail {
    /// Creates a TCP socket in the jail's network, to connect to a port of its loopback or to listen on one.
    ///
    /// # Errors
    /// Returns an error if the jail was opened without [`super::JailChannels::sockets`], or has ended.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        let sockets = self.sockets.as_ref();
        sockets.ok_or_else(|| io::Error::other("the sandbox provides no sockets"))?.open()
    }

    /// Creates a socket that listens on a port of the jail's loopback.
    ///
    /// # Errors
    /// Returns the errors of [`Jail::socket`], and an error if the port is in use.
    pub(crate) fn listen(&self, port: u16) -> io::Result<OwnedFd> {
        let socket = self.socket()?;
        set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        listen(&socket, WAITING_MAX)?;
        Ok(socket)
    }
}
