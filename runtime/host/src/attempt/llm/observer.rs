//! Observes a request to a provider: counts its pieces, notes what the attempt waits for, and shows the text of the answer while
//! it is unfinished to whoever watches.
//!
//! The text is shown to a watcher alone. Everything else gets only its length.

use crate::progress::{CallObserver, Progress};
use glovebox_jail::pulse::WaitGuard;
use glovebox_models::ask::{AskStep, UnfinishedAnswer};
use glovebox_record::WaitKind;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum interval between two texts for the watcher. An answer that is finished earlier is never shown unfinished.
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// The watcher of an attempt's unfinished answers.
#[derive(Clone)]
pub struct LiveAnswer(Arc<dyn Fn(Option<String>) + Send + Sync>);

impl LiveAnswer {
    /// Creates a watcher that passes the text so far to a function, at most five times a second. `None` means that the answer is
    /// finished or discarded. The text is not checked for hold-outs.
    pub fn new(take: impl Fn(Option<String>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }
}

impl fmt::Debug for LiveAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveAnswer")
    }
}

/// The observer of one request, with all its tries.
pub(super) struct ModelObserver<'a> {
    call: &'a CallObserver,
    /// The present wait. `None` before the first try.
    wait: Option<WaitGuard>,
    shown: Option<ShownAnswer>,
}

/// What a watcher has got of an unfinished answer.
pub(crate) struct ShownAnswer {
    watcher: LiveAnswer,
    /// Time of the last text. Without one, time at which the watching or this try began.
    last: Instant,
    /// Length of the answer at that time.
    bytes: usize,
    is_shown: bool,
}

impl<'a> ModelObserver<'a> {
    pub(super) fn new(call: &'a CallObserver, watcher: Option<&LiveAnswer>) -> Self {
        Self { call, wait: None, shown: watcher.map(ShownAnswer::new) }
    }

    pub(super) fn observe(&mut self, step: &AskStep<'_>) {
        match step {
            AskStep::Try => self.wait_for(WaitKind::Model),
            AskStep::Received(bytes) => self.call.pulse().text_delta(*bytes),
            AskStep::Unfinished(answer) => self.shown.iter_mut().for_each(|shown| shown.show(answer)),
            AskStep::Wait(error, wait) => {
                self.shown.iter_mut().for_each(ShownAnswer::end);
                self.wait_for(WaitKind::ModelRetry);
                self.call.report(Progress::ModelWaits(error.kind.as_str(), *wait));
            }
        }
    }

    fn wait_for(&mut self, kind: WaitKind) {
        self.wait = None;
        self.wait = Some(self.call.pulse().wait(kind));
    }
}

impl ShownAnswer {
    pub(crate) fn new(watcher: &LiveAnswer) -> Self {
        Self { watcher: watcher.clone(), last: Instant::now(), bytes: 0, is_shown: false }
    }

    /// Shows the text if it has changed and the last one is old enough.
    pub(crate) fn show(&mut self, answer: &UnfinishedAnswer<'_>) {
        if answer.bytes() == self.bytes || self.last.elapsed() < SHOW_EVERY {
            return;
        }
        (self.last, self.bytes) = (Instant::now(), answer.bytes());
        let text = answer.text();
        if !text.is_empty() {
            self.is_shown = true;
            (self.watcher.0)(Some(text));
        }
    }

    /// Takes the text back, because the answer is finished or discarded.
    pub(crate) fn end(&mut self) {
        (self.last, self.bytes) = (Instant::now(), 0);
        if std::mem::take(&mut self.is_shown) {
            (self.watcher.0)(None);
        }
    }
}

impl Drop for ShownAnswer {
    fn drop(&mut self) {
        self.end();
    }
}
