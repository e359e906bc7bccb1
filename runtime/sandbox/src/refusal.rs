//! What was denied to a stage, and which grant would have allowed it.
//!
//! A refusal is evidence for people: operation, path, reason, help. Texts from a guest are escaped when the refusal is made,
//! so that printing one can never drive a terminal. The log is bounded; the total keeps counting.

use glovebox_names::visible;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Refusals kept unless a caller says otherwise; limit `refusals`.
pub const REFUSALS_MAX: usize = 1000;

/// Longest text of a refusal before it is escaped, bytes: a guest chooses what it is refused.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// One denied operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was tried: `read`, `write`, `list`, `rename`, `run` ….
    pub operation: String,
    /// On what, control characters escaped.
    pub path: String,
    /// Why not.
    pub reason: String,
    /// The grant that would allow it, or why none can.
    pub help: String,
}

impl Refusal {
    /// Makes a refusal; `path` is escaped, and every text is cut to a bound.
    pub fn new(operation: &str, path: &str, reason: impl Into<String>, help: impl Into<String>) -> Self {
        let path = escaped(&cut(path.to_owned()));
        Self { operation: operation.to_owned(), path, reason: cut(reason.into()), help: cut(help.into()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused to {} `{}`: {}", self.operation, self.path, self.reason)
    }
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

/// Foreign text on one line, safe to print.
pub fn escaped(text: &str) -> String {
    visible::line(text).into_owned()
}

/// Called with each refusal as it is recorded.
type Listener = Box<dyn Fn(&Refusal) + Send + Sync>;

/// Bounded, thread-safe list of refusals of one call.
pub struct RefusalLog {
    kept_max: usize,
    inner: Mutex<Kept>,
    listener: Option<Listener>,
}

#[derive(Default)]
struct Kept {
    list: Vec<Refusal>,
    total: u64,
}

impl RefusalLog {
    /// Makes a log that keeps the first `kept_max` refusals and counts all.
    pub fn new(kept_max: usize) -> Self {
        Self { kept_max, inner: Mutex::default(), listener: None }
    }

    /// Tells each kept refusal as it happens; the listener must not block.
    pub fn on_refusal(mut self, listener: impl Fn(&Refusal) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Records one.
    pub fn record(&self, refusal: Refusal) {
        tracing::debug!(%refusal, "refused");
        let mut kept = self.lock();
        kept.total = kept.total.saturating_add(1);
        if kept.list.len() >= self.kept_max {
            return;
        }
        kept.list.push(refusal.clone());
        drop(kept);
        if let Some(listener) = &self.listener {
            listener(&refusal);
        }
    }

    /// Returns those kept, in order.
    pub fn kept(&self) -> Vec<Refusal> {
        self.lock().list.clone()
    }

    /// Returns how many there were, also beyond the bound.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
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
        assert_eq!((log.kept().len(), log.total(), told.load(Ordering::Relaxed)), (2, 5, 2));
        assert_eq!(log.kept()[1].path, "f1");
    }

    #[test]
    fn texts_of_a_guest_are_cut() {
        let long = "é\u{1b}".repeat(1 << 20);
        let refusal = Refusal::new("write", &long, long.clone(), long.clone());
        for text in [&refusal.path, &refusal.reason, &refusal.help] {
            assert!(text.len() < 10 * TEXT_BYTES_MAX && text.ends_with('…'), "{} bytes", text.len());
        }
    }

    #[test]
    fn texts_of_a_guest_cannot_drive_a_terminal() {
        let refusal = Refusal::new("write", "a\u{1b}[2J\n\u{202e}b\u{9b}é", "x", "y");
        assert_eq!(refusal.path, "a\\x1b[2J\\n\\u{202e}b\\u{9b}é");
    }
}
