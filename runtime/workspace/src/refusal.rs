//! The refusals of a stage, each with the grant that would allow it.
//!
//! The log of one call keeps a bounded number of refusals and counts all of them.

use glovebox_names::visible;
use glovebox_record::Refusal;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Default maximum number of refusals that are kept; limit `refusals`.
pub const REFUSALS_MAX: usize = 1000;

/// Returns untrusted text on one line, safe to print.
pub fn escaped(text: &str) -> String {
    visible::line(text).into_owned()
}

/// A function that is called with each refusal that is kept.
type Listener = Box<dyn Fn(&Refusal) + Send + Sync>;

/// Bounded, thread-safe list of refusals of one call.
pub struct RefusalLog {
    kept_max: usize,
    inner: Mutex<LoggedRefusals>,
    listener: Option<Listener>,
}

#[derive(Default)]
struct LoggedRefusals {
    list: Vec<Refusal>,
    total: u64,
}

impl RefusalLog {
    /// Creates a log that keeps the first `kept_max` refusals and counts all of them.
    pub fn new(kept_max: usize) -> Self {
        Self { kept_max, inner: Mutex::default(), listener: None }
    }

    /// Sets a listener that is called for each kept refusal. It must not block.
    pub fn on_refusal(mut self, listener: impl Fn(&Refusal) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Records a refusal.
    pub fn record(&self, refusal: Refusal) {
        tracing::debug!(%refusal, "refused");
        let mut kept = self.lock();
        kept.total = kept.total.saturating_add(1);
        if kept.list.len() >= self.kept_max {
            return;
        }
        if let Some(listener) = &self.listener {
            listener(&refusal);
        }
        kept.list.push(refusal);
    }

    /// Returns the kept refusals, in order.
    pub fn stored(&self) -> Vec<Refusal> {
        self.lock().list.clone()
    }

    /// Returns the number of all refusals, including those that were not kept.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LoggedRefusals> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RefusalLog {
    fn default() -> Self {
        Self::new(REFUSALS_MAX)
    }
}

impl fmt::Debug for RefusalLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalLog").field("total", &self.total()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_log_is_bounded_and_counts_on() {
        let told = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&told);
        let log = RefusalLog::new(2).on_refusal(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        });
        for n in 0..5 {
            log.record(Refusal::new("read", &format!("f{n}"), "not granted", "grant it"));
        }
        assert_eq!((log.stored().len(), log.total(), told.load(Ordering::Relaxed)), (2, 5, 2));
        assert_eq!(log.stored()[1].path, "f1");
    }
}
