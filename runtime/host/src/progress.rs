//! Progress, log lines, claims and artifacts of a component during its call.

use glovebox_record::{CommandEnding, Refusal};
use serde::{Deserialize, Serialize};

/// A kind of progress the host tells while a call is under way. Lossy by design.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A log line of the guest.
    Log(LogLine),
    /// An event of the guest: kind, JSON.
    Emitted(String, String),
    /// A model turn begins; counts from 1 within the attempt.
    ModelTurn(u32),
    /// The model's provider failed, and is asked again after a while: the kind of the error, the wait.
    ModelWaits(&'static str, std::time::Duration),
    /// A command begins.
    CommandStarted(String),
    /// A command ended: text, how, code, milliseconds.
    CommandEnded(String, CommandEnding, Option<i32>, u64),
    /// Something was refused.
    Refused(Refusal),
}

/// A statement of a handler about its work, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `command-passed`, `artifact`, `file-written`.
    pub kind: String,
    /// The receipt, the artifact or the path.
    pub value: String,
}

/// A line a stage logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Text, as the guest gave it.
    pub message: String,
    /// Pairs beside it.
    pub fields: Vec<(String, String)>,
}

/// Bytes a stage asked to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// File name, checked.
    pub name: String,
    /// As claimed.
    pub media_type: String,
    /// The bytes, capped.
    pub data: Vec<u8>,
}
