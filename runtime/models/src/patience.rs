//! How long a call may take, and who may end it.
//!
//! Every wait of this crate is made of ticks, and looks here between two of them.

use crate::error::{ErrorKind, ModelError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether the call was canceled.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How long a call may take, and who may end it.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// Set when the call shall end.
    pub canceled: &'a AtomicBool,
    /// When the call ends in any case.
    pub deadline: Instant,
    /// How long nothing may arrive.
    pub idle: Duration,
}

impl Patience<'_> {
    /// Says why the call ends now, if it does. `since` is when something last arrived.
    pub(crate) fn check(&self, since: Instant) -> Result<(), ModelError> {
        if self.canceled.load(Ordering::Relaxed) {
            return Err(ModelError::new(ErrorKind::Canceled, "the run was asked to stop"));
        }
        let now = Instant::now();
        if now >= self.deadline {
            return Err(ModelError::new(ErrorKind::LimitExceeded, "the stage has no time left"));
        }
        if now.duration_since(since) >= self.idle {
            let message = format!("the provider sent nothing for {} s", self.idle.as_secs());
            return Err(ModelError::new(ErrorKind::RequestTimeout, message));
        }
        Ok(())
    }

    /// Waits, unless the call ends before.
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
