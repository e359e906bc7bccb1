//! The threads of a proxy: one that accepts, one for each connection, all gone once it is stopped.

use super::connection::{Shared, serve};
use super::outside::{Internet, Outside};
use super::relay::{Stop, Woken};
use super::rules::Rules;
use super::traffic::{Ledger, Traffic};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, accept_with};
use std::io::{self, PipeReader, PipeWriter};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Stack of a connection's thread.
const STACK_BYTES: usize = 256 << 10;
/// Pause after a descriptor or a thread could not be had.
const PAUSE: Duration = Duration::from_millis(100);
const FOREVER: Duration = Duration::from_secs(3600);

/// What one proxy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at the same time; further clients wait in the listener's queue.
    pub connections: usize,
    /// Time for a whole head, and for a whole ClientHello.
    pub head: Duration,
    /// Time to resolve a name and to connect.
    pub dial: Duration,
    /// Time in which nothing moves, after which a connection ends.
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connections: 64, head: seconds(10), dial: seconds(20), idle: seconds(600) }
    }
}

/// A running proxy. Ends when it is stopped or dropped.
#[derive(Debug)]
pub struct Proxy {
    running: Option<(PipeWriter, JoinHandle<()>)>,
    shared: Arc<Shared>,
    slots: Arc<Slots>,
}

impl Proxy {
    /// Starts to accept on a listening TCP socket, most likely one of another network namespace. Denies everything the rules
    /// do not name, every address that is not public, and every protocol but HTTP/1.1 requests and tunnels.
    pub fn start(listener: OwnedFd, rules: Rules) -> io::Result<Proxy> {
        Self::start_with(listener, rules, Bounds::default(), Arc::new(Internet))
    }

    /// The same with other bounds and another way out.
    pub fn start_with(listener: OwnedFd, rules: Rules, bounds: Bounds, outside: Arc<dyn Outside>) -> io::Result<Proxy> {
        // The listener may be shared with whoever made it, and a client may leave between poll and accept.
        rustix::io::ioctl_fionbio(&listener, true)?;
        let shared = Arc::new(Shared { rules, bounds, outside, ledger: Ledger::default() });
        let slots = Arc::new(Slots { free: Mutex::new(Some(bounds.connections)), changed: Condvar::new() });
        let (stopped, stop) = io::pipe()?;
        let (of_thread, taken) = (Arc::clone(&shared), Arc::clone(&slots));
        let accepting = move || accept_all(&listener, &of_thread, &taken, &stopped);
        let accepting = thread::Builder::new().name("proxy".to_owned()).spawn(accepting)?;
        Ok(Proxy { running: Some((stop, accepting)), shared, slots })
    }

    /// Ends every connection, waits for all threads, and returns what went through.
    pub fn stop(mut self) -> Traffic {
        self.end();
        self.shared.ledger.take()
    }

    fn end(&mut self) {
        if let Some((stop, accepting)) = self.running.take() {
            drop(stop);
            self.slots.close();
            // A panic in a connection was printed where it happened; the rest is stopped all the same.
            let _ = accepting.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// How many more connections there may be; none once the proxy stops.
#[derive(Debug)]
struct Slots {
    free: Mutex<Option<usize>>,
    changed: Condvar,
}

/// A connection's place, given back when it ends.
struct Slot<'a>(&'a Slots);

impl Slots {
    /// Waits for a place; none once closed.
    fn take(&self) -> Option<Slot<'_>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |free: &mut Option<usize>| *free == Some(0);
        let mut free = self.changed.wait_while(free, full).unwrap_or_else(PoisonError::into_inner);
        *free = Some((*free)?.saturating_sub(1));
        Some(Slot(self))
    }

    fn close(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_all();
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.map(|free| free + 1);
        self.0.changed.notify_all();
    }
}

/// Accepts until stopped. The scope ends when the last connection has, and every one of them ends at a stop.
fn accept_all(listener: &OwnedFd, shared: &Shared, slots: &Slots, stopped: &PipeReader) {
    let stop = Stop(stopped);
    thread::scope(|scope| {
        while let Some(slot) = slots.take() {
            match stop.wait(&[(listener.as_fd(), PollFlags::IN)], Instant::now() + FOREVER) {
                Ok(Woken::Ready) => {}
                Ok(Woken::Late) => continue,
                Ok(Woken::Stopped) | Err(_) => return,
            }
            let begun = accept(listener).and_then(|client| {
                let connection = thread::Builder::new().name("proxy-connection".to_owned()).stack_size(STACK_BYTES);
                connection.spawn_scoped(scope, move || {
                    serve(&client, shared, stop);
                    drop(slot);
                })
            });
            let passing = |error: &io::Error| {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted)
            };
            if begun.as_ref().is_err_and(|error| !passing(error)) {
                let _ = stop.wait(&[], Instant::now() + PAUSE);
            }
        }
    });
}

fn accept(listener: &OwnedFd) -> io::Result<TcpStream> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?.into())
}
