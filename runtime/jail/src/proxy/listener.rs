//! A running proxy and its bounds.

use super::connection::{ProxyState, serve};
use super::dialer::{Dialer, Internet};
use super::traffic::{Ledger, ProxyRecord};
use crate::acceptor::{Acceptor, Threads};
use glovebox_record::network::HostRules;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Stack of a connection's thread.
const STACK_BYTES: usize = 256 << 10;

/// Limits of one proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyBounds {
    /// Connections at the same time; further clients wait in the listener's queue.
    pub connections: usize,
    /// Time for a whole head, and for a whole ClientHello.
    pub head: Duration,
    /// Time to resolve a name and to connect.
    pub dial: Duration,
    /// Time in which nothing moves, after which a connection ends.
    pub idle: Duration,
}

impl Default for ProxyBounds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connections: 64, head: seconds(10), dial: seconds(20), idle: seconds(600) }
    }
}

/// A running proxy. Ends when it is stopped or dropped.
#[derive(Debug)]
pub struct Proxy {
    accepting: Acceptor,
    shared: Arc<ProxyState>,
}

impl Proxy {
    /// Starts to accept on a listening TCP socket, most likely one of another network namespace. Denies everything the rules
    /// do not name, every address that is not public, and every protocol but HTTP/1.1 requests and tunnels.
    pub fn start(listener: OwnedFd, rules: HostRules) -> io::Result<Proxy> {
        Self::start_with(listener, rules, ProxyBounds::default(), Arc::new(Internet))
    }

    /// The same with other bounds and another way out.
    pub fn start_with(
        listener: OwnedFd,
        rules: HostRules,
        bounds: ProxyBounds,
        dialer: Arc<dyn Dialer>,
    ) -> io::Result<Proxy> {
        let shared = Arc::new(ProxyState { rules, bounds, dialer, ledger: Ledger::default() });
        let of_thread = Arc::clone(&shared);
        let threads = Threads { name: "proxy", connections: bounds.connections, stack_bytes: STACK_BYTES };
        let serving = move |client: OwnedFd, stop: crate::relay::Stop<'_>| {
            serve(&TcpStream::from(client), &of_thread, stop);
        };
        Ok(Proxy { accepting: Acceptor::start(listener, threads, serving)?, shared })
    }

    /// Ends every connection, waits for all threads, and returns what went through.
    pub fn stop(mut self) -> ProxyRecord {
        self.accepting.end();
        self.shared.ledger.drain()
    }
}
