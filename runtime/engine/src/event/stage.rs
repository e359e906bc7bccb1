//! What is told of an attempt: that it is ready, that it was claimed, and everything the host saw of it.
//!
//! The host's report in the journal's own words. Bytes are named by digest and stored before the event that names them.

use super::TaskId;
use crate::outcome::Outcome;
use glovebox_record::{Artifact, Captured, Digest, FileChange, Quarantined};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An attempt may be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReady {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// 1 for the first visit of the node in this run.
    pub visit: u32,
    /// 1 for the first attempt of the visit.
    pub ordinal: u32,
    /// Not before this moment; at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
}

/// A worker claimed the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageStarted {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// Which attempt of the visit. An attempt cut by a crash is claimed again with the same ordinal and a new id.
    pub ordinal: u32,
    /// Unique and opaque.
    pub attempt_id: String,
    /// Who claimed it.
    pub worker: String,
}

/// A verifying stage's command ran once over the files that the run began with, to fill its caches. Its verdict counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFilled {
    /// The node.
    pub node: String,
    /// The command, then the programs under test that it started.
    pub receipts: Vec<Receipt>,
}

/// The attempt was committed, with everything the host saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinished {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// Which visit.
    pub visit: u32,
    /// Which attempt of the visit.
    pub ordinal: u32,
    /// The attempt that was claimed.
    pub attempt_id: String,
    /// What executed it: `codergen`, `tool`, `verify`, or a plugin's name. Empty in journals of before it was recorded, and for
    /// an attempt that was given up.
    #[serde(default)]
    pub handler: String,
    /// What the handler answered, or the host in its place; settled by the engine's retry rules before it is appended.
    pub outcome: Outcome,
    /// True when another attempt of this visit follows. The engine sets it; whoever executes an attempt says false.
    #[serde(default)]
    pub retrying: bool,
    /// How the call itself went.
    pub ending: Ending,
    /// Every limit, used and bound.
    #[serde(default)]
    pub usage: Vec<LimitUse>,
    /// What was refused; capped.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// All refusals, also those beyond the cap.
    #[serde(default)]
    pub refusals_total: u64,
    /// One per command.
    #[serde(default)]
    pub receipts: Vec<Receipt>,
    /// What its commands asked of the network, where they had a proxy. For people and never for another stage: the stage chooses
    /// the names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Traffic>,
    /// What changed in the workspace; every digest is stored.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Changes that were not allowed and were set aside.
    #[serde(default)]
    pub quarantined: Vec<Quarantined>,
    /// Kept bytes.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Whether the program under test was kept from the hold-outs; absent when none were in the stage's reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The stage's standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Captured>,
    /// The stage's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Captured>,
    /// Model turns that were answered.
    #[serde(default)]
    pub turns_used: u32,
    /// Wall time of the call, milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// How a call went, apart from what the handler answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The export returned.
    Returned,
    /// The component trapped: the trap and the captured panic.
    Trapped(String),
    /// A named limit was hit.
    LimitHit(String),
    /// The run was told to stop.
    Canceled,
    /// It could not be instantiated.
    NotLinked(String),
}

/// Whether a verdict was reached where no code of a builder ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The stage's own commands saw nothing of the workspace but hold-outs. The program under test ran behind walls of its own.
    Isolated,
    /// They saw the project: builders' code could run among them, read the hold-outs and forge the verdict.
    NotIsolated,
}

/// A limit and how much of it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// The limit's name, which carries the unit.
    pub name: String,
    /// Used; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The bound.
    pub limit: u64,
}

/// Something a stage asked for and was not given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// What was asked: `read`, `write`, `run`, `context`, ….
    pub operation: String,
    /// The path, the command or the key.
    pub path: String,
    /// Why not.
    pub reason: String,
    /// The grant that would allow it, or why none can.
    #[serde(default)]
    pub help: String,
}

/// Host-made evidence of a command (design §1, promise 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Unique within the run.
    pub id: String,
    /// argv, or `["sh", "-c", text]`.
    pub argv: Vec<String>,
    /// Relative to the workspace.
    pub cwd: String,
    /// Names of the environment, not values.
    pub env_names: Vec<String>,
    /// Sandbox tier.
    pub tier: String,
    /// What was weaker than the tier promises, such as `memory=soft`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradations: Vec<String>,
    /// True for a program under test, which ran behind walls of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subject: bool,
    /// The limit it passed, when it was ended for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// `exited`, `signaled`, `timed-out`, `canceled`.
    pub how: String,
    /// Exit code when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// Digest of all of stdout.
    pub stdout_digest: Digest,
    /// Length of all of stdout.
    pub stdout_bytes: u64,
    /// Digest of all of stderr.
    pub stderr_digest: Digest,
    /// Length of all of stderr.
    pub stderr_bytes: u64,
}

/// What went through a stage's proxy, and what did not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// The first hosts by name, at most 128.
    #[serde(default)]
    pub hosts: BTreeMap<String, HostTraffic>,
    /// All other hosts together, and requests that named none.
    #[serde(default)]
    pub others: HostTraffic,
}

/// What one host was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostTraffic {
    /// Requests and tunnels that were carried out.
    pub requests: u64,
    /// Requests that were refused, or that the host did not answer.
    pub refused: u64,
    /// Bytes sent to it.
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
}

/// Another attempt of the same visit follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRetrying {
    /// The visit.
    pub task: TaskId,
    /// The node.
    pub node: String,
    /// The attempt that follows.
    pub ordinal: u32,
    /// Back-off, milliseconds.
    pub delay_ms: u64,
    /// When it may start.
    #[schemars(with = "String")]
    pub due_at: Timestamp,
}
