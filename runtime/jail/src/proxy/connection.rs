//! One connection of a client, from its first byte to its last.
//!
//! The order is essential for the protection: read the head, match the name against the list, resolve it once, check
//! every address, and dial one of these addresses. On port 443, the first record must contain the same name before any
//! byte of the client is forwarded.

use super::ProxyBounds;
use super::address;
use super::client_hello::{self, HELLO_BYTES_MAX, HelloResult};
use super::dialer::Dialer;
use super::refused_request::RefusedRequest;
use super::request_head::{self, HEAD_BYTES_MAX, ProxyRequest, RequestKind};
use super::traffic::Ledger;
use crate::pulse::Pulse;
use crate::relay::{Flow, Stop, pump};
use glovebox_record::network::Host;
use glovebox_record::network::{HostRules, PORT_HTTP, PORT_TLS};
use rustix::event::PollFlags;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of resolutions in this process at the same time. A resolver cannot be interrupted, so a resolution
/// that outlives its request still counts.
const RESOLUTIONS_MAX: usize = 32;
static RESOLUTIONS: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// Maximum number of bytes that are read from a refused client after the answer. Closing a socket with unread bytes
/// would lose the answer.
const LINGER_BYTES: usize = 64 << 10;
const LINGER: Duration = Duration::from_secs(1);

/// State that all connections of a proxy share.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) rules: HostRules,
    pub(super) bounds: ProxyBounds,
    pub(super) dialer: Arc<dyn Dialer>,
    pub(super) ledger: Ledger,
    pub(super) pulse: Pulse,
}

/// The end of a connection that is not forwarded.
enum ConnectionEnd {
    /// The request was refused. The client gets the reason.
    Refused(Option<Host>, RefusedRequest),
    /// The client has disconnected, or the proxy stops.
    Gone,
}

impl From<io::Error> for ConnectionEnd {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Serves one client until one side ends the connection, a limit is reached, or the proxy stops.
pub(super) fn serve(client: &TcpStream, shared: &ProxyState, stop: Stop<'_>) {
    if let Err(ConnectionEnd::Refused(host, refused)) = served(client, shared, stop) {
        shared.ledger.refused(host.as_ref(), &refused, &shared.rules);
        linger(client, &refused.answer(), stop);
    }
}

fn served(client: &TcpStream, shared: &ProxyState, stop: Stop<'_>) -> Result<(), ConnectionEnd> {
    let until = Instant::now() + shared.bounds.head;
    let (request, early) = read_request(client, stop, until)?;
    let refuse = |refused| ConnectionEnd::Refused(Some(request.host.clone()), refused);
    permitted(&request, &shared.rules).map_err(refuse)?;
    let upstream = reach(&request, shared, stop)?.map_err(refuse)?;
    // Nagle's algorithm is turned off: the client decides when small packets are sent.
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    match &request.kind {
        RequestKind::Tunnel => tunnel(client, &upstream, &request, early, shared, stop),
        RequestKind::Single { head, body_bytes } => {
            shared.ledger.connected(&request.host);
            let sent = usize::try_from(*body_bytes).unwrap_or(usize::MAX).min(early.len());
            let first = [head, &early[..sent]].concat();
            let up = Flow::limited(client, &upstream, *body_bytes - sent as u64);
            exchange(up, Flow::whole(&upstream, client), &first, &request.host, shared, stop)
        }
    }
}

/// Reads a head. Also returns the bytes that the client sent after it.
fn read_request(client: &TcpStream, stop: Stop<'_>, until: Instant) -> Result<(ProxyRequest, Vec<u8>), ConnectionEnd> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = match stop.read(client, &mut chunk, until) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(ConnectionEnd::Refused(None, RefusedRequest::Slow));
            }
            other => other?,
        };
        if count == 0 {
            return Err(ConnectionEnd::Gone);
        }
        let seen = bytes.len().saturating_sub(3);
        bytes.extend_from_slice(&chunk[..count]);
        if let Some(end) = request_head::end_of_head(&bytes[seen..]).map(|end| seen + end) {
            let early = bytes.split_off(end);
            let request = request_head::parse(&bytes).map_err(|refused| ConnectionEnd::Refused(None, refused))?;
            return Ok((request, early));
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(ConnectionEnd::Refused(None, RefusedRequest::TooLarge(HEAD_BYTES_MAX)));
        }
    }
}

/// Checks the list before any lookup. Plain HTTP in a tunnel, or TLS in a plain request, would hide the name and is
/// refused.
fn permitted(request: &ProxyRequest, rules: &HostRules) -> Result<(), RefusedRequest> {
    let (host, port) = (&request.host, request.port);
    let refusal: fn(Host, u16) -> RefusedRequest = match (rules.allow(host, port), &request.kind, port) {
        (false, ..) => RefusedRequest::NotGranted,
        (true, RequestKind::Tunnel, PORT_HTTP) => |host, _| RefusedRequest::PlainTunnel(host),
        (true, RequestKind::Single { .. }, PORT_TLS) => |host, _| RefusedRequest::PlainRequest(host),
        (true, ..) => return Ok(()),
    };
    Err(refusal(host.clone(), port))
}

/// Resolves, checks and dials. The outer error means that the client disconnected or the proxy stops.
fn reach(
    request: &ProxyRequest,
    shared: &ProxyState,
    stop: Stop<'_>,
) -> Result<Result<TcpStream, RefusedRequest>, ConnectionEnd> {
    let host = &request.host;
    let refused = |why: &dyn Fn(Host) -> RefusedRequest| Ok(Err(why(host.clone())));
    let until = Instant::now() + shared.bounds.dial;
    let addresses = match resolve(host, &shared.dialer, stop, until) {
        Ok(addresses) if !addresses.is_empty() => addresses,
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => return Err(ConnectionEnd::Gone),
        _ => return refused(&RefusedRequest::Unresolved),
    };
    // One address that is not public is enough to refuse the name.
    if let Some(kind) = addresses.iter().find_map(|address| address::refused(*address)) {
        return refused(&|host| RefusedRequest::Address(host, kind));
    }
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        match dial(SocketAddr::new(address, request.port), &*shared.dialer, stop, until) {
            Ok(stream) => return Ok(Ok(stream)),
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => return Err(ConnectionEnd::Gone),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return refused(&|host| RefusedRequest::Address(host, "this machine"));
            }
            Err(_) => {}
        }
    }
    refused(&RefusedRequest::Unreachable)
}

/// A running resolution, which is counted as long as this value lives.
struct ResolverSlot;

impl ResolverSlot {
    fn begin() -> io::Result<Self> {
        let more = |count| (count < RESOLUTIONS_MAX).then_some(count + 1);
        let begun = RESOLUTIONS.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        begun.map(|_| Self).map_err(|_| ErrorKind::ResourceBusy.into())
    }
}

impl Drop for ResolverSlot {
    fn drop(&mut self) {
        RESOLUTIONS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Resolves a name on a separate thread, which may outlive the request. The thread has only a name and a pipe, and ends
/// after the resolution.
fn resolve(host: &Host, dialer: &Arc<dyn Dialer>, stop: Stop<'_>, until: Instant) -> io::Result<Vec<IpAddr>> {
    let counted = ResolverSlot::begin()?;
    let (answered, answers) = io::pipe()?;
    let slot = Arc::new(Mutex::new(Err(ErrorKind::NotFound.into())));
    let (name, dialer, filled) = (host.clone(), Arc::clone(dialer), Arc::clone(&slot));
    thread::Builder::new().name("proxy-resolve".to_owned()).spawn(move || {
        let found = dialer.resolve(&name);
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = found;
        // Dropped in this order, so that this thread holds nothing else when the receiver gets the answer.
        drop((dialer, counted, answers));
    })?;
    stop.wait_for(&answered, PollFlags::IN, until)?;
    let mut found = slot.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut *found, Ok(Vec::new()))
}

fn dial(address: SocketAddr, dialer: &dyn Dialer, stop: Stop<'_>, until: Instant) -> io::Result<TcpStream> {
    let stream = TcpStream::from(dialer.dial(address)?);
    stop.wait_for(&stream, PollFlags::OUT, until)?;
    stream.take_error()?.map_or(Ok(stream), |error| Err(io::Error::new(ErrorKind::ConnectionRefused, error)))
}

fn tunnel(
    client: &TcpStream,
    upstream: &TcpStream,
    request: &ProxyRequest,
    early: Vec<u8>,
    shared: &ProxyState,
    stop: Stop<'_>,
) -> Result<(), ConnectionEnd> {
    let until = Instant::now() + shared.bounds.head;
    stop.write(client, b"HTTP/1.1 200 Connection established\r\n\r\n", until)?;
    let first = if request.port == PORT_TLS { read_hello(client, &request.host, early, stop, until)? } else { early };
    shared.ledger.connected(&request.host);
    exchange(Flow::whole(client, upstream), Flow::whole(upstream, client), &first, &request.host, shared, stop)
}

/// Reads until the name of a TLS connection is known and equal to that of the tunnel. Returns all bytes that were read.
fn read_hello(
    client: &TcpStream,
    host: &Host,
    early: Vec<u8>,
    stop: Stop<'_>,
    until: Instant,
) -> Result<Vec<u8>, ConnectionEnd> {
    let refuse = |reason| ConnectionEnd::Refused(Some(host.clone()), RefusedRequest::Hello(host.clone(), reason));
    let mut bytes = early;
    let mut chunk = [0; 4096];
    loop {
        match client_hello::read(&bytes) {
            HelloResult::Names(name) if name.eq_ignore_ascii_case(host.as_str()) => return Ok(bytes),
            HelloResult::Names(_) => return Err(refuse("the server name differs")),
            HelloResult::Refused(reason) => return Err(refuse(reason)),
            HelloResult::Incomplete if bytes.len() >= HELLO_BYTES_MAX => {
                return Err(refuse("the ClientHello is too long"));
            }
            HelloResult::Incomplete => {}
        }
        match stop.read(client, &mut chunk, until) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(refuse("the ClientHello was not complete in time"));
            }
            Err(_) => return Err(ConnectionEnd::Gone),
            Ok(0) => return Err(ConnectionEnd::Gone),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

fn exchange(
    mut up: Flow<'_>,
    mut down: Flow<'_>,
    first: &[u8],
    host: &Host,
    shared: &ProxyState,
    stop: Stop<'_>,
) -> Result<(), ConnectionEnd> {
    let sent = stop.write(up.to(), first, Instant::now() + shared.bounds.idle);
    let ended = sent.and_then(|()| {
        up.moved = first.len() as u64;
        pump(&mut up, &mut down, stop, shared.bounds.idle, &shared.pulse)
    });
    shared.ledger.moved(host, up.moved, down.moved);
    Ok(ended?)
}

/// Sends the answer, then waits a short time so that the client can read it.
fn linger(mut client: &TcpStream, answer: &[u8], stop: Stop<'_>) {
    let until = Instant::now() + LINGER;
    if stop.write(client, answer, until).is_err() || client.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut chunk = [0; 4096];
    let mut left = LINGER_BYTES;
    while stop.wait_for(client, PollFlags::IN, until).is_ok() {
        match client.read(&mut chunk) {
            Ok(count) if count > 0 && count < left => left -= count,
            _ => return,
        }
    }
}
