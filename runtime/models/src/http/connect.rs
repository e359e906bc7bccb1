//! A connection to an endpoint, with TLS if the endpoint requires it.
//!
//! Names are resolved on a separate thread, because the system's resolver cannot be canceled. The bundled root certificates and the
//! operator's own are trusted. A certificate is always verified.

use super::{CONNECT, is_pause};
use crate::deadline::{CallDeadline, TICK};
use crate::error::{ErrorKind, ModelError};
use crate::target::{Authorities, Endpoint};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Instant;

/// A connection whose reads and writes time out after a tick.
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Connects to the first address of the endpoint that accepts the connection.
pub(super) fn connect(
    endpoint: &Endpoint,
    authorities: &Authorities,
    deadline: CallDeadline<'_>,
) -> Result<Connection, ModelError> {
    let deadline = CallDeadline { idle: CONNECT.min(deadline.idle), ..deadline };
    let stream = dial(endpoint, deadline)?;
    let ready = stream
        .set_read_timeout(Some(TICK))
        .and_then(|()| stream.set_write_timeout(Some(TICK)))
        .and_then(|()| stream.set_nodelay(true));
    ready.map_err(|error| unreachable(endpoint, error))?;
    if !endpoint.is_tls {
        return Ok(Connection::Plain(stream));
    }
    let name = ServerName::try_from(endpoint.host.to_owned()).map_err(|error| unreachable(endpoint, error))?;
    let client = ClientConnection::new(config(authorities), name).map_err(|error| unreachable(endpoint, error))?;
    let mut stream = StreamOwned::new(client, stream);
    let began = Instant::now();
    while stream.conn.is_handshaking() {
        deadline.check(began)?;
        match stream.conn.complete_io(&mut stream.sock) {
            Err(error) if !is_pause(&error) => return Err(unreachable(endpoint, error)),
            _ => {}
        }
    }
    Ok(Connection::Tls(Box::new(stream)))
}

/// Returns the TLS configuration with the trusted certificates.
fn config(authorities: &Authorities) -> Arc<ClientConfig> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(authorities.0.iter().cloned());
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

fn dial(endpoint: &Endpoint, deadline: CallDeadline<'_>) -> Result<TcpStream, ModelError> {
    let began = Instant::now();
    let mut last = None;
    for address in look_up(endpoint, deadline, began)? {
        loop {
            deadline.check(began)?;
            match TcpStream::connect_timeout(&address, CONNECT.min(deadline.idle) / 3) {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    last = Some(error);
                    break;
                }
            }
        }
    }
    match last {
        Some(error) => Err(unreachable(endpoint, error)),
        None => Err(unreachable(endpoint, "its host name has no address")),
    }
}

fn look_up(endpoint: &Endpoint, deadline: CallDeadline<'_>, began: Instant) -> Result<Vec<SocketAddr>, ModelError> {
    let (found, answer) = sync_channel(1);
    let (host, port) = (endpoint.host.to_owned(), endpoint.port);
    std::thread::spawn(move || {
        // If the call was canceled, the channel is closed and the addresses are dropped.
        let _ = found.send((host.as_str(), port).to_socket_addrs().map(Vec::from_iter));
    });
    loop {
        deadline.check(began)?;
        match answer.recv_timeout(TICK) {
            Ok(addresses) => return addresses.map_err(|error| unreachable(endpoint, error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(unreachable(endpoint, "its host name could not be resolved"));
            }
        }
    }
}

fn unreachable(endpoint: &Endpoint, problem: impl fmt::Display) -> ModelError {
    ModelError::new(ErrorKind::Network, format_args!("{endpoint} cannot be reached: {problem}"))
}
