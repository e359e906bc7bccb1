//! Deadline, idle timeout and cancellation of a call.
//!
//! Every wait in this crate is a loop of short waits that checks the deadline after each of them.

use crate::error::{ErrorKind, ModelError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a wait checks for cancellation.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Deadline, idle timeout and cancellation of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallDeadline<'a> {
    /// Set to cancel the call.
    pub canceled: &'a AtomicBool,
    /// The deadline.
    pub at: Instant,
    /// Maximum time without received bytes.
    pub idle: Duration,
}

impl CallDeadline<'_> {
    /// Returns an error if the call must end now. `since` is the time at which bytes were last received.
    pub(crate) fn check(&self, since: Instant) -> Result<(), ModelError> {
        if self.canceled.load(Ordering::Relaxed) {
            return Err(ModelError::new(ErrorKind::Canceled, "the run was asked to stop"));
        }
        let now = Instant::now();
        if now >= self.at {
            return Err(ModelError::new(ErrorKind::LimitExceeded, "the stage has no time left"));
        }
        if now.duration_since(since) >= self.idle {
            let message = format!("the provider sent nothing for {} s", self.idle.as_secs());
            return Err(ModelError::new(ErrorKind::RequestTimeout, message));
        }
        Ok(())
    }

    /// Waits for `duration`, or returns an error if the call must end before.
    pub(crate) fn sleep(&self, duration: Duration) -> Result<(), ModelError> {
        let until = Instant::now() + duration;
        loop {
            let now = Instant::now();
            self.check(now)?;
            if now >= until {
                return Ok(());
            }
            std::thread::sleep(TICK.min(until - now));
        }
    }
}
