//! The network of a jail: a private loopback, and in proxy mode a listener on it.
#![forbid(unsafe_code)]

use crate::fault::{At, refused};
use glovebox_jail_helper::control::send_frame;
use glovebox_jail_helper::wire::Failure;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, listen as start_listening, recv, sendto,
    socket_with,
};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Address of the proxy as commands see it.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

const MESSAGE_BYTES: u32 = 32;
const NEW_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
const ERROR: u16 = 2;
/// Index of the loopback, which is the first interface of every network namespace.
const LOOPBACK: i32 = 1;
const UP: u32 = 1;

/// Brings up the loopback of this network namespace, which is down initially.
pub(crate) fn raise_loopback() -> Result<(), Failure> {
    // `None` means protocol 0, which is the protocol for routes and links.
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).at("open a netlink socket")?;
    sendto(&socket, &up_message(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).at("bring up the loopback")?;
    let mut answer = [0; 512];
    let (bytes, _) = recv(&socket, &mut answer, RecvFlags::empty()).at("bring up the loopback")?;
    // After the header of 16 bytes, an error message contains the negated error number; 0 is the acknowledgement.
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let code: Option<[u8; 4]> = answer.get(16..20).and_then(|code| code.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(ERROR), Some(0)) if bytes >= 20 => Ok(()),
        (Some(ERROR), Some(code)) if bytes >= 20 => Err(Errno::from_raw_os_error(-code)).at("bring up the loopback"),
        _ => Err(refused("bring up the loopback", "the kernel sent a malformed answer")),
    }
}

/// Returns `nlmsghdr` and `ifinfomsg` for this interface with the flag `UP`.
fn up_message() -> Vec<u8> {
    let mut message = Vec::with_capacity(MESSAGE_BYTES as usize);
    message.extend(MESSAGE_BYTES.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // Sequence number, port, family, padding and type are all zero.
    message.extend([0; 12]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message
}

/// Listens at the address of the proxy. The process that holds the descriptor serves the connections.
pub(crate) fn listen() -> Result<OwnedFd, Failure> {
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .at("open the proxy listener")?;
    bind(&listener, &PROXY).at("open the proxy listener")?;
    start_listening(&listener, 128).at("open the proxy listener")?;
    Ok(listener)
}

/// Sends the host one TCP socket of this network, to connect or to listen.
pub(crate) fn hand_out(to: &OwnedFd) -> Result<(), Failure> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).at("make a socket")?;
    send_frame(to, &(), &[socket.as_fd()]).map_err(|error| refused("send the socket", error.to_string()))
}
