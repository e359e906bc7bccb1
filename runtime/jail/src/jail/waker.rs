//! Wakes the threads that wait for commands, so that none of them has to look again and again.
//!
//! Each command that runs has an alarm. Its watches ring it when a limit is exceeded, and [`cancel`] rings all of them. An alarm has no
//! meaning of its own: whoever is woken looks at what it waits for.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static WAITING: Mutex<Vec<Arc<OwnedFd>>> = Mutex::new(Vec::new());

/// The alarm of one command.
#[derive(Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

/// Asks commands with this flag to end, and wakes the threads that wait for them. A flag that is set without this call is seen within a second.
pub fn cancel(flag: &AtomicBool) {
    flag.store(true, Ordering::SeqCst);
    waiting().iter().for_each(ring);
}

impl Waker {
    /// Sets up an alarm. From now on [`cancel`] rings it.
    pub(super) fn set_up() -> io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        waiting().push(Arc::clone(&event));
        Ok(Self(event))
    }

    /// Wakes who waits for the command.
    pub(super) fn ring(&self) {
        ring(&self.0);
    }

    /// Ends the ringing.
    pub(super) fn silence(&self) {
        // It may be silent already.
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

fn ring(event: &Arc<OwnedFd>) {
    // The only other answer is that it rings already.
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
    fn every_alarm_rings_once_for_a_cancellation_until_it_is_gone() {
        let (one, other, canceled) = (Waker::set_up().unwrap(), Waker::set_up().unwrap(), AtomicBool::new(false));
        let rings = |alarm: &Waker| wait_readable(alarm, Instant::now()).unwrap();
        cancel(&canceled);
        assert!(canceled.load(Ordering::SeqCst) && rings(&one) && rings(&other));
        one.silence();
        assert!(!rings(&one) && rings(&other));
        let event = Arc::clone(&one.0);
        drop(one);
        assert!(!waiting().iter().any(|known| Arc::ptr_eq(known, &event)));
    }
}
