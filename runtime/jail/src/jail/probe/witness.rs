//! The targets that a self-test attacks, and the witnesses on the host that detect a leak.
//!
//! A program's own report is not sufficient. The result is accepted only if no witness detected a leak.

use glovebox_jail_helper::wire::Targets;
use glovebox_workspace::regular_file::{self, Links};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Maximum size of the secret file that is read back, bytes.
const SECRET_BYTES_MAX: u64 = 1 << 12;

/// Maximum number of attempts to find a port that is free for both protocols.
const PORT_TRIES: u32 = 16;

/// Objects of this process outside of the jail.
pub(super) struct Witness {
    secret: PathBuf,
    content: String,
    outside: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    socket: UnixListener,
    path: PathBuf,
    name: String,
    hidden: UnixListener,
}

impl Witness {
    /// Creates all targets in `place`.
    pub(super) fn new(place: &Path) -> io::Result<Self> {
        let (secret, content) = (place.join("secret"), draw()?);
        fs::write(&secret, &content)?;
        let (tcp, udp) = ports()?;
        let path = place.join("s");
        let socket = UnixListener::bind(&path)?;
        let name = format!("glovebox-{}", draw()?);
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        socket.set_nonblocking(true)?;
        hidden.set_nonblocking(true)?;
        Ok(Self { secret, content, outside: place.join("outside"), tcp, udp, socket, path, name, hidden })
    }

    /// Returns the targets for the program in the jail.
    pub(super) fn targets(&self) -> Targets {
        Targets {
            secret: self.secret.to_owned(),
            folder: self.outside.to_owned(),
            port: self.tcp.local_addr().map_or(0, |address| address.port()),
            socket: self.path.to_owned(),
            abstract_socket: self.name.clone(),
            process: i32::try_from(std::process::id()).unwrap_or(0),
        }
    }

    /// Checks the witnesses. The error describes the leak.
    pub(super) fn check(&self) -> Result<(), String> {
        let failed = |what: &str| Err(format!("the host's witnesses found a leak: {what}"));
        if regular_file::read_text(&self.secret, Links::Follow, SECRET_BYTES_MAX).ok().as_ref() != Some(&self.content) {
            return failed("the program changed a file outside the sandbox");
        }
        if fs::read_dir(&self.outside).is_ok_and(|mut entries| entries.next().is_some()) {
            return failed("the program made a file outside the sandbox");
        }
        let none = |result: io::Result<()>| matches!(result, Err(error) if error.kind() == ErrorKind::WouldBlock);
        if !none(self.tcp.accept().map(drop)) {
            return failed("the program connected to the host's loopback");
        }
        if !none(self.udp.recv(&mut [0]).map(drop)) {
            return failed("the program sent a datagram to the host's loopback");
        }
        if !none(self.socket.accept().map(drop)) {
            return failed("the program connected to a Unix socket of the host");
        }
        if !none(self.hidden.accept().map(drop)) {
            return failed("the program connected to an abstract Unix socket of the host");
        }
        Ok(())
    }
}

/// Returns a TCP and a UDP socket with the same port.
fn ports() -> io::Result<(TcpListener, UdpSocket)> {
    let mut failed = None;
    for _ in 0..PORT_TRIES {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        match UdpSocket::bind((Ipv4Addr::LOCALHOST, tcp.local_addr()?.port())) {
            Ok(udp) => return Ok((tcp, udp)),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| ErrorKind::AddrInUse.into()))
}

/// Returns sixteen random hexadecimal digits.
pub(super) fn draw() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    // Up to 256 bytes are returned completely or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn whatever_arrives_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        let fresh = || {
            let _ = fs::remove_file(dir.path().join("s"));
            let _ = fs::remove_file(dir.path().join("outside/new"));
            Witness::new(dir.path()).unwrap()
        };
        assert_eq!(fresh().check(), Ok(()));
        let acts: [fn(&Targets); 6] = [
            |to| fs::write(&to.secret, "changed").unwrap(),
            |to| fs::write(Path::new(&to.folder).join("new"), "").unwrap(),
            |to| drop(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, to.port)).unwrap()),
            |to| {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                socket.send_to(b"x", (Ipv4Addr::LOCALHOST, to.port)).unwrap();
            },
            |to| UnixStream::connect(&to.socket).unwrap().write_all(b"x").unwrap(),
            |to| {
                let address = SocketAddr::from_abstract_name(&to.abstract_socket).unwrap();
                drop(UnixStream::connect_addr(&address).unwrap());
            },
        ];
        for (number, act) in acts.iter().enumerate() {
            let witness = fresh();
            act(&witness.targets());
            assert!(witness.check().is_err(), "act {number} was not seen");
        }
    }
}
