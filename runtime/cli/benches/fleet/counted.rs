//! A relay before a service on loopback, which counts the bytes that the service gives.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub(super) struct Counted {
    port: u16,
    given: Arc<AtomicU64>,
}

impl Counted {
    /// Starts a relay before the service at a port. It ends with the process.
    pub(super) fn start(service: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, given) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&given);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", service)).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || relay(from, to, &AtomicU64::new(0)));
                let counted = Arc::clone(&counted);
                thread::spawn(move || relay(server, client, &counted));
            }
        });
        Self { port, given }
    }

    /// Returns the address of the store for `fleet init`.
    pub(super) fn address(&self) -> String {
        format!("s3://blobs?endpoint=http://127.0.0.1:{}&region=us-east-1&allow_http=true", self.port)
    }

    /// Returns the number of bytes that the service has given.
    pub(super) fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }
}

/// Passes bytes on until one of both ends.
fn relay(mut from: TcpStream, mut to: TcpStream, counted: &AtomicU64) {
    let mut buffer = vec![0; 256 << 10];
    let mut pass = || -> io::Result<()> {
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            to.write_all(&buffer[..read])?;
            counted.fetch_add(read as u64, Ordering::Relaxed);
        }
    };
    // The other side learns that the connection has ended.
    let _ended = pass();
    let _closed = to.shutdown(Shutdown::Write);
}
