//! What a stage was told and what it answered, in the host's own types.
//!
//! These mirror `wit/types.wit`. They are data: who routes on them is the engine's business.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Did its work.
    Success,
    /// Did part of it.
    PartialSuccess,
    /// Asks to be executed again.
    Retry,
    /// Failed.
    Fail,
    /// Had nothing to do.
    Skipped,
}

/// Why it failed, decided by the host and never by matching text (seed 3, P1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May work on retry.
    Transient,
    /// Will fail the same way again.
    Deterministic,
    /// The run was told to stop; never retried.
    Canceled,
    /// A named limit: turns, tokens, wall time, memory, output.
    Budget,
    /// Reading, writing or running outside the grant.
    Scope,
    /// A malformed outcome, a missing export, a bad claim.
    Contract,
    /// A trap in the component or a fault of the host.
    Internal,
}

/// A failure as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Decides retries and exit codes.
    pub class: FailureClass,
    /// Stable code, such as `limit/memory`.
    pub code: String,
    /// Raw text, kept unchanged through routing.
    pub reason: String,
}

/// What the stage answered, or what the host answers in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Hint for edge selection.
    pub preferred_label: Option<String>,
    /// Hint for edge selection, best first.
    pub suggested_next_ids: Vec<String>,
    /// Keys for the pipeline's context. The engine refuses reserved ones.
    pub context_updates: BTreeMap<String, Value>,
    /// For people.
    pub notes: String,
    /// Present when the status is `fail` or `retry`.
    pub failure: Option<Failure>,
    /// Claims as (kind, value); worth nothing until checked.
    pub claims: Vec<(String, String)>,
}

/// One outgoing edge, as the stage is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingEdge {
    /// Target node.
    pub to: String,
    /// Caption.
    pub label: String,
    /// Guard as written; empty when unconditional.
    pub condition: String,
    /// Priority.
    pub weight: i32,
}

/// Which call of which node this is (seed 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptIdentity {
    /// The run.
    pub run_id: String,
    /// Counts `loop_restart`s; 0 for the first generation.
    pub run_generation: u32,
    /// `main` outside parallel branches.
    pub branch_id: String,
    /// The node.
    pub node_id: String,
    /// Unique and opaque.
    pub attempt_id: String,
    /// 1 for the first execution of this visit.
    pub ordinal: u32,
    /// 1 for the first visit of the node in this run.
    pub visit: u32,
}

/// Everything a handler is told about its stage (`stage-input`). Mounts are added by the host from the file view.
#[derive(Debug, Clone, PartialEq)]
pub struct StageInput {
    /// Identity of the attempt.
    pub attempt: AttemptIdentity,
    /// Handler type as bound.
    pub handler_type: String,
    /// The node's label.
    pub label: String,
    /// The node's prompt, expanded.
    pub prompt: Option<String>,
    /// The pipeline's goal.
    pub goal: String,
    /// The node's attributes.
    pub attributes: Vec<(String, String)>,
    /// The context the node may see.
    pub context: BTreeMap<String, Value>,
    /// Outgoing edges.
    pub outgoing: Vec<OutgoingEdge>,
    /// The failure that led here.
    pub last_failure: Option<Failure>,
    /// Extra pairs.
    pub extra: Vec<(String, String)>,
}
