//! A port of a jail's loopback that this program serves. Data of a command at this port reaches only this program.
//!
//! The jail's network has no way out. This module moves bytes and does not interpret them.

use crate::acceptor::{Acceptor, Threads};
use crate::jail::Jail;
use crate::relay::Stop;
use glovebox_workspace::user_key::random;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Connections at the same time; further clients wait.
const CONNECTIONS_MAX: usize = 16;
/// A connection's thread parses JSON of any depth that its parser allows.
const STACK_BYTES: usize = 2 << 20;
/// Longest wait for a client that sends nothing, or takes nothing.
const IDLE: Duration = Duration::from_secs(60);

/// Generates a secret of 32 random characters for one port.
///
/// # Errors
/// The system has no randomness.
pub fn secret() -> io::Result<String> {
    Ok(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A port that is served. Dropped, it ends every connection.
#[derive(Debug)]
pub struct Port(Acceptor);

/// A client's connection. Reading and writing end with an error once the port is closed.
pub struct Connection<'a> {
    stream: TcpStream,
    stop: Stop<'a>,
}

impl Port {
    /// Listens in the jail, and calls `serve` for each connection on a separate thread.
    ///
    /// # Errors
    /// The jail gives no sockets; only [`glovebox_record::Tier::Full`] does.
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
    /// True once the client has closed its side. Bytes that it sent and that were not read do not count.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0; 1];
        matches!(self.stream.peek(&mut byte), Ok(0))
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // Closing on unread bytes would reset the connection and lose the answer.
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
