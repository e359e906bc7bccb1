//! The network that a proxy connects to.
//!
//! Names are resolved here, once, by the host's own resolver, and as absolute names: no search list turns `a.b` into
//! `a.b.corp`.

use glovebox_record::network::Host;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;

/// Resolves names and connects to addresses.
pub trait Dialer: std::fmt::Debug + Send + Sync + 'static {
    /// Returns all addresses of a name. Blocks as long as the resolver does.
    fn resolve(&self, name: &Host) -> io::Result<Vec<IpAddr>>;

    /// Starts a TCP connection to a checked address, without waiting until it is established.
    fn dial(&self, address: SocketAddr) -> io::Result<OwnedFd>;
}

/// The network of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Internet;

impl Dialer for Internet {
    fn resolve(&self, name: &Host) -> io::Result<Vec<IpAddr>> {
        Ok((format!("{name}.").as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }

    fn dial(&self, address: SocketAddr) -> io::Result<OwnedFd> {
        if is_own(address) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "an address of this machine"));
        }
        start(address)
    }
}

/// Starts a TCP connection. The socket is non-blocking and close-on-exec.
pub fn start(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if packets to the address would have the same address as their source. Then the address belongs to this
/// machine, and its services may be private. Asks the routing table and sends nothing.
fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let route = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        Ok(socket.local_addr()?.ip())
    };
    route().is_ok_and(|local| local == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_not_the_internet() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(Internet.dial(address).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(start(address).is_ok());
    }
}
