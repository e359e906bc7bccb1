//! What a stage answered, as the journal keeps it.
//!
//! Mirrors the host's outcome without sharing its type: the journal is a promise of its own. The host decided the failure's
//! class; nothing here ever looks at the text of a reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a stage ended (spec §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Did its work.
    Success,
    /// Did part of it; routes like success.
    PartialSuccess,
    /// Asks to be executed again.
    Retry,
    /// Failed.
    Fail,
    /// Had nothing to do.
    Skipped,
}

impl Status {
    /// The word used in conditions, files and messages.
    pub fn as_str(self) -> &'static str {
        glovebox_pipeline::ir::Status::from(self).as_str()
    }

    /// True when a goal gate accepts it (spec §3.4).
    pub fn satisfies_gate(self) -> bool {
        glovebox_pipeline::ir::Status::from(self).satisfies_gate()
    }
}

impl From<Status> for glovebox_pipeline::ir::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::PartialSuccess => Self::PartialSuccess,
            Status::Retry => Self::Retry,
            Status::Fail => Self::Fail,
            Status::Skipped => Self::Skipped,
        }
    }
}

/// Why a stage or a run failed, decided by the host and never by matching text (seed 3, P1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May work on retry.
    Transient,
    /// Will fail the same way again.
    Deterministic,
    /// The run was told to stop; never retried.
    Canceled,
    /// A named limit.
    Budget,
    /// Reading, writing or running outside the grant.
    Scope,
    /// A malformed outcome, a missing export, a bad claim.
    Contract,
    /// A trap in the component or a fault of the host.
    Internal,
}

impl FailureClass {
    /// The word used in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Transient => "transient",
            FailureClass::Deterministic => "deterministic",
            FailureClass::Canceled => "canceled",
            FailureClass::Budget => "budget",
            FailureClass::Scope => "scope",
            FailureClass::Contract => "contract",
            FailureClass::Internal => "internal",
        }
    }
}

/// A failure as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Decides retries and exit codes.
    pub class: FailureClass,
    /// Stable code, such as `limit/memory`.
    pub code: String,
    /// Raw text, kept unchanged through routing.
    pub reason: String,
}

impl Failure {
    /// Makes a failure.
    pub fn new(class: FailureClass, code: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { class, code: code.into(), reason: reason.into() }
    }
}

/// What the stage answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Hint for edge selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_label: Option<String>,
    /// Hints for edge selection, best first.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Keys for the pipeline's context; reserved ones are already gone.
    #[serde(default)]
    pub context_updates: BTreeMap<String, Value>,
    /// For people.
    #[serde(default)]
    pub notes: String,
    /// Present when the status is `fail` or `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Outcome {
    /// An outcome with a status and nothing else.
    pub fn of(status: Status) -> Self {
        Self {
            status,
            preferred_label: None,
            suggested_next_ids: Vec::new(),
            context_updates: BTreeMap::new(),
            notes: String::new(),
            failure: None,
        }
    }

    /// A failed outcome.
    pub fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::of(Status::Fail) }
    }
}
