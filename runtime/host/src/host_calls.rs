//! The host calls of one call of a component, in order, for a caller that compares or counts them.
//!
//! The log contains each call of an interface in `wit/`, and each operation of `wasi:filesystem` on a path or that changes a file. It
//! does not contain clocks, random numbers and streams. A bounded number of calls is kept; all of them are counted and hashed. Arguments
//! are kept as a digest and a short text, so the size of the log does not depend on the guest. Without a log, nothing is computed.

use glovebox_record::Digest;
use glovebox_workspace::refusal::escaped;
use std::fmt::{self, Debug, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum length of the text that shows the arguments of one call, in bytes before escaping.
const SHOWN_BYTES_MAX: usize = 160;
/// Maximum length of a path or name that is kept, in bytes. The rest is cut off.
const NAME_BYTES_MAX: usize = 4 << 10;

/// One host call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCall {
    /// Interface and function, such as `files.read`.
    pub function: &'static str,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// The arguments for people, cut and on one line.
    pub shown: String,
    /// The path, for an operation on a path; cut, but otherwise as the guest wrote it.
    pub path: Option<String>,
}

/// The failure that a component returned, before the host decides about class and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedFailure {
    /// The class, cut.
    pub class: String,
    /// The code, cut.
    pub code: String,
}

/// What a log contains after the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCalls {
    /// The first calls, in order.
    pub kept: Vec<HostCall>,
    /// Number of all calls.
    pub total: u64,
    /// Digest of all calls, in order.
    pub digest: Digest,
    /// The failure that the component returned, if it returned one.
    pub failure: Option<ReturnedFailure>,
}

/// A function that gets the number of calls so far, this one included.
type Listener = Box<dyn Fn(u64) + Send + Sync>;

/// Records the host calls of one call.
pub struct HostCallLog {
    kept_max: usize,
    state: Mutex<State>,
    listener: Option<Listener>,
}

#[derive(Default)]
struct State {
    kept: Vec<HostCall>,
    total: u64,
    hasher: blake3::Hasher,
    failure: Option<ReturnedFailure>,
}

impl HostCallLog {
    /// Creates a log that keeps the first `kept_max` calls.
    pub fn new(kept_max: usize) -> Self {
        Self { kept_max, state: Mutex::default(), listener: None }
    }

    /// Sets a listener that is called before each host call is executed. It must not block.
    #[must_use]
    pub fn on_call(self, listener: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..self }
    }

    /// Returns what was recorded so far.
    pub fn recorded(&self) -> HostCalls {
        let state = self.locked();
        HostCalls {
            kept: state.kept.clone(),
            total: state.total,
            digest: Digest::from_bytes(*state.hasher.finalize().as_bytes()),
            failure: state.failure.clone(),
        }
    }

    pub(crate) fn record(&self, function: &'static str, arguments: Arguments) {
        let Arguments { hasher, shown, path } = arguments;
        let arguments = Digest::from_bytes(*hasher.finalize().as_bytes());
        let mut state = self.locked();
        state.total += 1;
        state.hasher.update(function.as_bytes()).update(arguments.to_string().as_bytes());
        if state.kept.len() < self.kept_max {
            state.kept.push(HostCall { function, arguments, shown: escaped(&shown), path });
        }
        let total = state.total;
        drop(state);
        if let Some(listener) = &self.listener {
            listener(total);
        }
    }

    /// Records the failure that the component returned.
    pub(crate) fn returned(&self, class: &str, code: &str) {
        self.locked().failure = Some(ReturnedFailure { class: cut(class).to_owned(), code: cut(code).to_owned() });
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for HostCallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCallLog").field("total", &self.locked().total).finish_non_exhaustive()
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES_MAX)]
}

/// The arguments of one host call. All of them are hashed, and the beginning is kept as text.
#[derive(Default)]
pub(crate) struct Arguments {
    hasher: blake3::Hasher,
    shown: String,
    path: Option<String>,
}

impl Arguments {
    /// Adds a path.
    pub(crate) fn path(self, path: &str) -> Self {
        Self { path: Some(cut(path).to_owned()), ..self.text(path) }
    }

    /// Adds a text.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.hash(text.as_bytes());
        self.show(format_args!("`{text}`"));
        self
    }

    /// Adds bytes, of which only the number is shown.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.hash(bytes);
        self.show(format_args!("{} bytes", bytes.len()));
        self
    }

    /// Adds a number.
    pub(crate) fn number(mut self, number: u64) -> Self {
        self.hash(&number.to_le_bytes());
        self.show(format_args!("{number}"));
        self
    }

    /// Adds a record by its debug text, which contains all of its fields.
    pub(crate) fn record(mut self, record: &impl Debug) -> Self {
        // Writing to a hasher does not fail.
        let _hashed = write!(HashedText(&mut self.hasher), "{record:?}");
        self.show(format_args!("{record:?}"));
        self
    }

    /// Hashes the length too, so that two arguments are different from one with the bytes of both.
    fn hash(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }

    fn show(&mut self, text: fmt::Arguments<'_>) {
        let separator = if self.shown.is_empty() { "" } else { ", " };
        // An error means that the text is cut.
        let _cut = write!(CutText(&mut self.shown), "{separator}{text}");
    }
}

/// Writes to a hasher.
struct HashedText<'h>(&'h mut blake3::Hasher);

impl Write for HashedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// Writes to a text until it is full, and then fails, so that a long record is not formatted to its end.
struct CutText<'t>(&'t mut String);

impl Write for CutText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = SHOWN_BYTES_MAX.saturating_sub(self.0.len());
        if text.len() <= left {
            self.0.push_str(text);
            return Ok(());
        }
        if !self.0.ends_with('…') {
            self.0.push_str(&text[..text.floor_char_boundary(left)]);
            self.0.push('…');
        }
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn digest(arguments: Arguments) -> Digest {
        let log = HostCallLog::new(1);
        log.record("f", arguments);
        log.recorded().kept[0].arguments
    }

    #[test]
    fn the_log_is_bounded_and_its_digest_is_that_of_all_calls() {
        let told = Arc::new(AtomicU64::new(0));
        let record = |last: u64| {
            let heard = Arc::clone(&told);
            let log = HostCallLog::new(2).on_call(move |total| heard.store(total, Ordering::Relaxed));
            for number in [1, 2, 3, last] {
                log.record("f", Arguments::default().number(number));
            }
            log.recorded()
        };
        let (one, same, other) = (record(4), record(4), record(5));
        assert_eq!((one.kept.len(), one.total, told.load(Ordering::Relaxed)), (2, 4, 4));
        assert_eq!(one, same);
        assert!(one.kept == other.kept && one.digest != other.digest);
    }

    #[test]
    fn arguments_are_hashed_whole_and_shown_in_part() {
        let long = "é".repeat(1000);
        let log = HostCallLog::new(1);
        log.record("files.read", Arguments::default().path("a\u{202e}b").text(&long).number(1));
        let call = log.recorded().kept.remove(0);
        assert!(call.shown.starts_with("`a\\u{202e}b`, `éé") && call.shown.ends_with('…'), "{}", call.shown);
        assert!(call.shown.len() < SHOWN_BYTES_MAX + 20);
        assert_eq!(call.path.as_deref(), Some("a\u{202e}b"));
        let text = |first: &str, second: &str| digest(Arguments::default().text(first).text(second));
        assert_ne!(text(&long, "a"), text(&long, "b"));
        assert_ne!(text("ab", "c"), text("a", "bc"));
        let record = |list: &[&str]| digest(Arguments::default().record(&list));
        assert_ne!(record(&[&long, "a"]), record(&[&long, "b"]));
    }
}
