//! Wakes the threads that wait for commands, so that they need not poll.
//!
//! Each running command has a waker. Its watchdog threads wake it when a limit is exceeded, and [`cancel`] wakes all
//! wakers. A wake-up carries no information: the woken thread checks its own condition.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static WAITING: Mutex<Vec<Arc<OwnedFd>>> = Mutex::new(Vec::new());

/// The waker of one command.
#[derive(Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

/// Asks commands with this flag to end, and wakes the threads that wait for them. If the flag is set without this call,
/// it is noticed within a second.
pub fn cancel(flag: &AtomicBool) {
    flag.store(true, Ordering::SeqCst);
    waiting().iter().for_each(wake);
}

impl Waker {
    /// Creates a waker. From then on, [`cancel`] wakes it.
    pub(super) fn new() -> io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        waiting().push(Arc::clone(&event));
        Ok(Self(event))
    }

    /// Wakes the threads that wait for the command.
    pub(super) fn wake(&self) {
        wake(&self.0);
    }

    /// Resets the wake-up, so that the next wait blocks.
    pub(super) fn reset(&self) {
        // This fails only if the wake-up is reset already.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        waiting().retain(|event| !Arc::ptr_eq(event, &self.0));
    }
}

fn wake(event: &Arc<OwnedFd>) {
    // This fails only if the event is set already.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

fn waiting() -> MutexGuard<'static, Vec<Arc<OwnedFd>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::control::wait_readable;
    use super::*;
    use std::time::Instant;

    #[test]
    fn every_waker_wakes_once_for_a_cancellation_until_it_is_dropped() {
        let (one, other, canceled) = (Waker::new().unwrap(), Waker::new().unwrap(), AtomicBool::new(false));
        let is_woken = |waker: &Waker| wait_readable(waker, Instant::now()).unwrap();
        cancel(&canceled);
        assert!(canceled.load(Ordering::SeqCst) && is_woken(&one) && is_woken(&other));
        one.reset();
        assert!(!is_woken(&one) && is_woken(&other));
        let event = Arc::clone(&one.0);
        drop(one);
        assert!(!waiting().iter().any(|known| Arc::ptr_eq(known, &event)));
    }
}
