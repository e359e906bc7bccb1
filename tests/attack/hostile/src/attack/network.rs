//! Attacks over sockets: listeners of the host, the internet, and address families that programs do not need.

use super::raw::{Errno, raw};
use super::{AttackResult, number, witness, word};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(400);

/// Tries to connect to each address and to send a word.
pub(crate) fn tcp(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("no address");
    for text in arguments {
        let Ok(address) = text.parse::<SocketAddr>() else { continue };
        let connected = TcpStream::connect_timeout(&address, PATIENCE);
        last = AttackResult::from_result(connected.and_then(|mut stream| stream.write_all(b"hostile")).map_err(errno));
        if last.worked {
            return last;
        }
    }
    last
}

/// Sends a word and waits for an answer. That a datagram was sent does not prove that it arrived. The listener is the
/// witness.
pub(crate) fn udp(arguments: &[String]) -> AttackResult {
    let Ok(address) = word(arguments, 0).parse::<SocketAddr>() else { return AttackResult::stopped("no address") };
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let ask = || -> io::Result<usize> {
        let socket = UdpSocket::bind(any)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(address)?;
        socket.send(b"hostile")?;
        socket.recv(&mut [0; 64])
    };
    AttackResult::from_result(ask().map_err(errno))
}

/// Returns the number of an error, or `ETIMEDOUT` if it has none.
fn errno(error: io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::ETIMEDOUT))
}

/// Tries to connect to each path.
pub(crate) fn unix(arguments: &[String]) -> AttackResult {
    let mut last = AttackResult::stopped("no path");
    for path in arguments {
        last = AttackResult::from_result(UnixStream::connect(path).and_then(|mut stream| stream.write_all(b"hostile")));
        if last.worked {
            return AttackResult::worked(path);
        }
    }
    last
}

/// Sends a datagram to a path.
pub(crate) fn unix_datagram(arguments: &[String]) -> AttackResult {
    let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"hostile", word(arguments, 0)));
    AttackResult::from_result(sent)
}

/// Sends a datagram from one end of a socket pair to a path.
pub(crate) fn pair(arguments: &[String]) -> AttackResult {
    let sent = UnixDatagram::pair().and_then(|(end, _other)| end.send_to(b"hostile", word(arguments, 0)));
    AttackResult::from_result(sent)
}

/// Connects to an abstract name, which has no file.
pub(crate) fn abstract_socket(arguments: &[String]) -> AttackResult {
    let address = UnixAddress::from_abstract_name(word(arguments, 0));
    let connected = address.and_then(|address| UnixStream::connect_addr(&address));
    AttackResult::from_result(connected.and_then(|mut stream| stream.write_all(b"hostile")))
}

/// Creates a socket. Arguments: family, type, protocol.
pub(crate) fn socket(arguments: &[String]) -> AttackResult {
    let at = |index| number(arguments, index) as usize;
    match raw(libc::SYS_socket, &[at(0), at(1), at(2)]) {
        Ok(_) => AttackResult::worked("made"),
        Err(error) => AttackResult::stopped(error),
    }
}

/// Listens on a port until the host has tried to connect. The host checks whether the connection succeeded.
pub(crate) fn listen(arguments: &[String]) -> AttackResult {
    let listener = match TcpListener::bind(format!("0.0.0.0:{}", word(arguments, 0))) {
        Ok(listener) => listener,
        Err(error) => return AttackResult::stopped(Errno::from(error)),
    };
    if listener.set_nonblocking(true).is_err() {
        return AttackResult::stopped("no listener");
    }
    match witness::wait() {
        Ok(()) if listener.accept().is_ok() => AttackResult::worked("somebody came"),
        Ok(()) => AttackResult::stopped("no connection arrived"),
        Err(unseen) => unseen,
    }
}

/// Asks the proxy to connect to a forbidden target. The second argument is the value of the header `Host`.
pub(crate) fn proxy(arguments: &[String]) -> AttackResult {
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect("127.0.0.1:3128")?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let (target, host) = (word(arguments, 0), word(arguments, 1));
        write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
        let mut answer = [0; 512];
        let got = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..got]).lines().next().unwrap_or("").to_owned())
    };
    match ask() {
        Ok(line) if line.split_whitespace().nth(1) == Some("200") => AttackResult::worked(line),
        Ok(line) => AttackResult::stopped(if line.is_empty() { "closed".to_owned() } else { line }),
        Err(error) => AttackResult::stopped(errno(error)),
    }
}
