//! Observes a request to a provider: counts its pieces, and notes what the attempt waits for.
//!
//! The text of an answer is never passed on, only its length.

use crate::progress::{CallObserver, Progress};
use glovebox_jail::pulse::WaitGuard;
use glovebox_models::ask::AskStep;
use glovebox_record::WaitKind;

/// The observer of one request, with all its tries.
pub(super) struct ModelObserver<'a> {
    call: &'a CallObserver,
    /// The present wait. `None` before the first try.
    wait: Option<WaitGuard>,
}

impl<'a> ModelObserver<'a> {
    pub(super) fn new(call: &'a CallObserver) -> Self {
        Self { call, wait: None }
    }

    pub(super) fn observe(&mut self, step: &AskStep<'_>) {
        match step {
            AskStep::Try => self.wait_for(WaitKind::Model),
            AskStep::Received(bytes) => self.call.pulse().text_delta(*bytes),
            AskStep::Wait(error, wait) => {
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
