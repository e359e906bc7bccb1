//! The threads of a server: one accepts connections, and each connection has a separate thread. A stop ends all of
//! them.

use crate::relay::{Stop, WakeReason};
use rustix::event::PollFlags;
use rustix::net::{SocketFlags, accept_with};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Pause after the system refused a descriptor or a thread.
const PAUSE: Duration = Duration::from_millis(100);
const FOREVER: Duration = Duration::from_secs(3600);

/// The name and the limits of a server's threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    /// Name of the threads, at most 15 characters.
    pub(crate) name: &'static str,
    /// Maximum number of connections at the same time. Further clients wait in the listener's queue.
    pub(crate) connections: usize,
    /// Stack size of a connection's thread, bytes.
    pub(crate) stack_bytes: usize,
}

/// A server that accepts connections. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Acceptor {
    running: Option<(PipeWriter, JoinHandle<()>)>,
    slots: Arc<Slots>,
}

impl Acceptor {
    /// Accepts connections on a listening socket, and calls `serve` for each connection on a separate thread. The
    /// descriptor of a connection is non-blocking, and `serve` must return after a stop.
    pub(crate) fn start(
        listener: OwnedFd,
        threads: Threads,
        serve: impl Fn(OwnedFd, Stop<'_>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        // The listener is non-blocking, because another process may share it, and a client may disconnect between poll
        // and accept.
        rustix::io::ioctl_fionbio(&listener, true)?;
        let slots = Arc::new(Slots { free: Mutex::new(Some(threads.connections)), changed: Condvar::new() });
        let (stopped, stop) = io::pipe()?;
        let taken = Arc::clone(&slots);
        let accepting = move || accept_all(&listener, &taken, &stopped, threads, &serve);
        let accepting = thread::Builder::new().name(threads.name.to_owned()).spawn(accepting)?;
        Ok(Self { running: Some((stop, accepting)), slots })
    }

    /// Ends every connection and waits for all threads.
    pub(crate) fn end(&mut self) {
        if let Some((stop, accepting)) = self.running.take() {
            drop(stop);
            self.slots.close();
            // A panic in a connection was already printed by its thread. The other threads are stopped nevertheless.
            let _ = accepting.join();
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.end();
    }
}

/// The number of free connections; `None` after a stop.
#[derive(Debug)]
struct Slots {
    free: Mutex<Option<usize>>,
    changed: Condvar,
}

/// The slot of a connection, released when the connection ends.
struct Slot<'a>(&'a Slots);

impl Slots {
    /// Waits for a free slot. Returns `None` after a stop.
    fn claim(&self) -> Option<Slot<'_>> {
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

/// Accepts connections until a stop. The scope ends after the last connection has ended, and every connection ends
/// after a stop.
fn accept_all(
    listener: &OwnedFd,
    slots: &Slots,
    stopped: &PipeReader,
    threads: Threads,
    serve: &(impl Fn(OwnedFd, Stop<'_>) + Sync),
) {
    let stop = Stop(stopped);
    thread::scope(|scope| {
        while let Some(slot) = slots.claim() {
            match stop.wait(&[(listener.as_fd(), PollFlags::IN)], Instant::now() + FOREVER) {
                Ok(WakeReason::Ready) => {}
                Ok(WakeReason::Late) => continue,
                Ok(WakeReason::Stopped) | Err(_) => return,
            }
            let begun = accept(listener).and_then(|client| {
                let connection = thread::Builder::new().name(threads.name.to_owned()).stack_size(threads.stack_bytes);
                connection.spawn_scoped(scope, move || {
                    serve(client, stop);
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

fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?)
}
