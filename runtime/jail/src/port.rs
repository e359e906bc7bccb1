//! A port of a jail's loopback that Glovebox serves. Data that a command sends to the port reaches only Glovebox.
//!
//! The jail's network has no other route out. This module moves bytes and does not interpret them.

use crate::acceptor::{Acceptor, Threads};
use crate::jail::Jail;
use crate::relay::Stop;
use glovebox_workspace::user_key::random;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Maximum number of connections at the same time. Further clients wait.
const CONNECTIONS_MAX: usize = 16;
/// Stack size of a connection's thread, bytes. The thread parses JSON of any depth that the parser allows.
const STACK_BYTES: usize = 2 << 20;
/// Maximum time to wait for a client that neither sends nor receives.
const IDLE: Duration = Duration::from_secs(60);

/// Generates a secret of 32 random characters for one port.
///
/// # Errors
/// Returns an error if the system provides no random bytes.
pub fn secret() -> io::Result<String> {
    Ok(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A port that is served. Dropping it ends every connection.
#[derive(Debug)]
pub struct Port(Acceptor);

/// A client's connection. Reads and writes fail once the port is closed.
pub struct Connection<'a> {
    stream: TcpStream,
    stop: Stop<'a>,
}

impl Port {
    /// Listens in the jail, and calls `serve` for each connection on a separate thread.
    ///
    /// # Errors
    /// Returns an error if the jail gives no sockets. Only [`glovebox_record::Tier::Full`] does.
    pub fn open(jail: &Jail, port: u16, serve: impl Fn(Connection<'_>) + Send + Sync + 'static) -> io::Result<Self> {
        let threads = Threads { name: "gateway", connections: CONNECTIONS_MAX, stack_bytes: STACK_BYTES };
        let listener = jail.listen(port)?;
        let serving = move |client, stop: Stop<'_>| serve(Connection { stream: TcpStream::from(client), stop });
        Acceptor::start(listener, threads, serving).map(Self)
    }

    /// Ends every connection and waits for their threads.
    pub fn close(mut self) {
        self.0.end();
    }
}

impl Connection<'_> {
    /// Returns true once the client has closed its side. Returns false while there are bytes that were not read.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0; 1];
        matches!(self.stream.peek(&mut byte), Ok(0))
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // Closing a socket with unread bytes would reset the connection and lose the answer.
        let _ = self.stream.shutdown(Shutdown::Write);
        let until = Instant::now() + Duration::from_secs(1);
        let mut rest = [0; 4096];
        while self.stop.read(&self.stream, &mut rest, until).is_ok_and(|count| count > 0) {}
    }
}

impl Read for Connection<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stop.read(&self.stream, into, Instant::now() + IDLE)
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.write(&self.stream, bytes, Instant::now() + IDLE)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
