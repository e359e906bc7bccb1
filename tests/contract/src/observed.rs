//! What the kit observed of one call.

use crate::text;
use glovebox_host::call::{HostCalls, Report};
use glovebox_record::{Digest, Ending, LimitName, LimitUse};
use std::time::Duration;

/// One call and what it did.
#[derive(Debug)]
pub(crate) struct Observed {
    /// What the call was for, such as `the normal input`.
    pub(crate) title: String,
    /// The report of the host.
    pub(crate) report: Report,
    /// The host calls.
    pub(crate) calls: HostCalls,
    /// The changes of files.
    pub(crate) changes: Vec<ObservedChange>,
    /// Duration of the call.
    pub(crate) took: Duration,
    /// Time from the cancellation to the end. `None` for a call that was not canceled before its end.
    pub(crate) after_cancel: Option<Duration>,
}

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObservedChange {
    /// The path, escaped.
    pub(crate) path: String,
    /// The change: `write`, `delete`, `mkdir`, `rmdir`, `symlink` or `special`.
    pub(crate) op: &'static str,
    /// Why the change is not allowed. `None` for an allowed one.
    pub(crate) refused: Option<String>,
    /// Digest of the content of a written file.
    pub(crate) digest: Option<Digest>,
    /// The content of a written file that is not longer than what a case can expect.
    pub(crate) content: Option<Vec<u8>>,
}

/// What is kept of every call, for the checks of all calls.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    /// What the call was for.
    pub(crate) title: String,
    /// How it ended.
    pub(crate) ending: Ending,
    /// Use of every limit.
    pub(crate) usage: Vec<LimitUse>,
    /// The limit that ended the call or its outcome.
    pub(crate) over: Option<String>,
    /// Number of host calls.
    pub(crate) host_calls: u64,
}

impl Observed {
    /// Returns true if the handler returned.
    pub(crate) fn is_returned(&self) -> bool {
        self.report.ending == Ending::Returned
    }

    /// Returns the use of a limit.
    pub(crate) fn is_over(&self, name: LimitName) -> bool {
        self.report.ending == Ending::LimitHit(name.to_string())
    }

    /// Returns how the call ended, as a part of a sentence.
    pub(crate) fn ended(&self) -> String {
        ended(&self.report.ending)
    }

    pub(crate) fn summary(&self) -> Summary {
        let of_failure = self.report.outcome.failure.as_ref().and_then(|failure| failure.code.limit_name());
        Summary {
            title: self.title.clone(),
            ending: self.report.ending.clone(),
            usage: self.report.usage.clone(),
            over: of_failure.map(str::to_owned),
            host_calls: self.calls.total,
        }
    }
}

/// Returns how a call ended, as a part of a sentence.
pub(crate) fn ended(ending: &Ending) -> String {
    match ending {
        Ending::Returned => "it returned".to_owned(),
        Ending::Trapped(reason) => format!("it trapped: {}", text::lines(reason)),
        Ending::LimitHit(name) => format!("it reached the limit `{name}`"),
        Ending::Canceled => "it was canceled".to_owned(),
        Ending::NotLinked(reason) => format!("it could not be instantiated: {}", text::lines(reason)),
        Ending::Revoked(reason) => format!("it was revoked: {}", text::lines(reason)),
        Ending::SandboxLost => "its sandbox was killed".to_owned(),
        Ending::MachineLost => "its machine was lost".to_owned(),
    }
}
