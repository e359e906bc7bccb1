//! Progress, log lines, claims and artifacts of a component during its call.

use crate::host_calls::{Arguments, HostCallLog};
use glovebox_jail::pulse::Pulse;
use glovebox_record::{AttemptId, CommandEnding, Refusal};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, channel};

/// Progress that the host reports during a call. Messages may be lost by design.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The guest logged a line.
    Log(LogLine),
    /// The guest emitted an event: its kind and its JSON.
    Emitted(String, String),
    /// A turn of the model begins. The number counts from 1 in each attempt.
    ModelTurn(u32),
    /// The provider failed and is asked again later: the kind of the error, and the wait.
    ModelWaits(&'static str, std::time::Duration),
    /// A command was started.
    CommandStarted(String),
    /// A command ended: its text, how it ended, its exit code, and its duration in milliseconds.
    CommandEnded(String, CommandEnding, Option<i32>, u64),
    /// A request was refused.
    Refused(Refusal),
}

/// Progress with the attempt that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptProgress {
    /// The id of the attempt.
    pub attempt: AttemptId,
    /// The progress.
    pub progress: Progress,
}

/// Gets everything that the host observes during the call of one attempt: progress for people, and signs of life.
#[derive(Debug, Clone)]
pub struct CallObserver {
    attempt: AttemptId,
    progress: Sender<AttemptProgress>,
    pulse: Pulse,
    calls: Option<Arc<HostCallLog>>,
}

impl CallObserver {
    /// Creates the observer of an attempt. If the channel is full, progress is dropped.
    pub fn new(attempt: AttemptId, progress: Sender<AttemptProgress>, pulse: Pulse) -> Self {
        Self { attempt, progress, pulse, calls: None }
    }

    /// Creates the observer of a call that nobody watches.
    pub fn unobserved() -> Self {
        Self::new(AttemptId::from(""), channel(1).0, Pulse::default())
    }

    /// Records the host calls in a log.
    #[must_use]
    pub fn recording(self, calls: Arc<HostCallLog>) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// Records a host call, if there is a log.
    pub(crate) fn called(&self, function: &'static str, arguments: impl FnOnce(Arguments) -> Arguments) {
        if let Some(calls) = &self.calls {
            calls.record(function, arguments(Arguments::default()));
        }
    }

    /// Records the class and the code of the failure that the component returned, if there is a log.
    pub(crate) fn returned_failure(&self, class: &str, code: &str) {
        if let Some(calls) = &self.calls {
            calls.returned(class, code);
        }
    }

    /// Reports progress, which may be lost.
    pub fn report(&self, progress: Progress) {
        drop(self.progress.try_send(AttemptProgress { attempt: self.attempt.clone(), progress }));
    }

    /// Returns the counters of the attempt.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}

/// A statement of a handler about its own work, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `command-passed`, `artifact`, `file-written`.
    pub kind: String,
    /// Id of the receipt, name of the artifact, or path.
    pub value: String,
}

/// A line that a stage logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Text of the line.
    pub message: String,
    /// Further key/value pairs of the line.
    pub fields: Vec<(String, String)>,
}

/// A file that a stage keeps for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// File name, already checked.
    pub name: String,
    /// Media type as the stage states it.
    pub media_type: String,
    /// Content, within the limits.
    pub data: Vec<u8>,
}
