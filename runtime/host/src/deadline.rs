//! The wall-time deadline of a call. The time that the host uses for its own work extends the deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The end of a call's wall time.
#[derive(Debug)]
pub(crate) struct Deadline {
    begin: Instant,
    wall: Duration,
    /// Time by which the deadline was extended, in microseconds.
    extra_us: AtomicU64,
}

impl Deadline {
    /// Creates a deadline `wall_ms` after `begin`.
    pub(crate) fn new(begin: Instant, wall_ms: u64) -> Self {
        Self { begin, wall: Duration::from_millis(wall_ms), extra_us: AtomicU64::new(0) }
    }

    /// Extends the deadline by the time of the host's own work.
    pub(crate) fn extend(&self, time: Duration) {
        let extra_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.extra_us.fetch_add(extra_us, Ordering::Relaxed);
    }

    /// Returns the remaining time, which is zero after the deadline.
    pub(crate) fn left(&self) -> Duration {
        let extra = Duration::from_micros(self.extra_us.load(Ordering::Relaxed));
        self.wall.saturating_add(extra).saturating_sub(self.begin.elapsed())
    }
}
