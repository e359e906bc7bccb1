//! A running proxy and its limits.

use super::connection::{ProxyState, serve};
use super::dialer::{Dialer, Internet};
use super::traffic::{Ledger, ProxyRecord};
use crate::acceptor::{Acceptor, Threads};
use crate::pulse::Pulse;
use glovebox_record::network::HostRules;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Stack size of a connection's thread, bytes.
const STACK_BYTES: usize = 256 << 10;

/// Limits of one proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyBounds {
    /// Maximum number of connections at the same time. Further clients wait in the listener's queue.
    pub connections: usize,
    /// Maximum time for a complete head, and for a complete ClientHello.
    pub head: Duration,
    /// Maximum time to resolve a name and to connect.
    pub dial: Duration,
    /// Idle timeout: a connection ends if no byte is moved for this time.
    pub idle: Duration,
}

impl Default for ProxyBounds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connections: 64, head: seconds(10), dial: seconds(20), idle: seconds(600) }
    }
}

/// A running proxy. It ends when it is stopped or dropped.
#[derive(Debug)]
pub struct Proxy {
    accepting: Acceptor,
    shared: Arc<ProxyState>,
}

impl Proxy {
    /// Starts to accept connections on a listening TCP socket, usually one of another network namespace. The proxy
    /// denies all hosts that the rules do not name, every address that is not public, and every protocol except
    /// HTTP/1.1 requests and tunnels.
    pub fn start(listener: OwnedFd, rules: HostRules) -> io::Result<Proxy> {
        Self::start_with(listener, rules, ProxyBounds::default(), Arc::new(Internet), Pulse::default())
    }

    /// As [`Self::start`], but with other limits and another dialer. Bytes that move are counted in `pulse`.
    pub fn start_with(
        listener: OwnedFd,
        rules: HostRules,
        bounds: ProxyBounds,
        dialer: Arc<dyn Dialer>,
        pulse: Pulse,
    ) -> io::Result<Proxy> {
        let shared = Arc::new(ProxyState { rules, bounds, dialer, ledger: Ledger::default(), pulse });
        let of_thread = Arc::clone(&shared);
        let threads = Threads { name: "proxy", connections: bounds.connections, stack_bytes: STACK_BYTES };
        let serving = move |client: OwnedFd, stop: crate::relay::Stop<'_>| {
            serve(&TcpStream::from(client), &of_thread, stop);
        };
        Ok(Proxy { accepting: Acceptor::start(listener, threads, serving)?, shared })
    }

    /// Ends every connection, waits for all threads, and returns the record of the traffic.
    pub fn stop(mut self) -> ProxyRecord {
        self.accepting.end();
        self.shared.ledger.drain()
    }
}
