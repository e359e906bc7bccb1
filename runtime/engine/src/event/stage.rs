//! The events of an attempt: it is ready, it was claimed, and everything that the host saw of it.
//!
//! The host's report as the journal records it. Bytes are named by digest and stored before the event that names them.

use super::{Attempt, NodeId, Task, moment};
use glovebox_record::{
    Artifact, Captured, Ending, FileChange, LimitUse, Outcome, Quarantined, Receipt, Refusal, Tokens, Traffic,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An attempt may be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReady {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// 1 for the first attempt of the task.
    pub ordinal: u32,
    /// Not before this moment; at once when absent.
    #[serde(default, with = "moment::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
}

/// A worker claimed the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageStarted {
    /// The attempt. One that a crash cut off is claimed again with the same ordinal and a new id.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// Who claimed it.
    pub worker: String,
}

/// A verifying stage's command ran once over the files that the run began with, to fill its caches. Its verdict is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFilled {
    /// The node.
    pub node: NodeId,
    /// The command, then the programs under test that it started.
    pub receipts: Vec<Receipt>,
}

/// The attempt was committed, with everything the host saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinished {
    /// The attempt that was claimed.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// What executed it: `codergen`, `tool`, `verify`, or a plugin's name. Empty in journals of before it was recorded, and for
    /// an attempt that was given up.
    #[serde(default)]
    pub handler: String,
    /// What the handler answered, or the host in its place; settled by the engine's retry rules before it is appended.
    pub outcome: Outcome,
    /// True when another attempt of this visit follows. Only the engine sets it.
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
    /// What it wrote at paths that git ignores, none of which is committed; absent when that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
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
    /// Tokens of these turns; absent where nothing counted them.
    #[serde(default, skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Wall time of the call, milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

impl StageFinished {
    /// An attempt that ended by itself with this outcome, and of which nothing else is known.
    pub fn of(attempt: Attempt, outcome: Outcome) -> Self {
        Self {
            attempt,
            handler: String::new(),
            outcome,
            retrying: false,
            ending: Ending::Returned,
            usage: Vec::new(),
            refusals: Vec::new(),
            refusals_total: 0,
            receipts: Vec::new(),
            network: None,
            changes: Vec::new(),
            quarantined: Vec::new(),
            ignored: None,
            artifacts: Vec::new(),
            isolation: None,
            stdout: None,
            stderr: None,
            turns_used: 0,
            tokens: Tokens::default(),
            duration_ms: 0,
        }
    }
}

/// What a stage wrote at paths that git ignored in the project when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredFiles {
    /// How many files.
    pub files: u64,
    /// Their length.
    pub bytes: u64,
    /// Some of the ignored names, such as `target/`, the most frequent first.
    pub names: Vec<String>,
}

/// Whether a verdict was reached where no code of a builder ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The stage's own commands saw nothing of the workspace but hold-outs. The program under test ran in a sandbox of its own.
    Isolated,
    /// They saw the project: builders' code could run among them, read the hold-outs and forge the verdict.
    NotIsolated,
}

/// Another attempt of the same visit follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRetrying {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The attempt that follows.
    pub ordinal: u32,
    /// Back-off, milliseconds.
    pub delay_ms: u64,
    /// When it may start.
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub due_at: Timestamp,
}
