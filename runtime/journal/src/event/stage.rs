//! The events of an attempt: it is ready, it was claimed, and everything that the host saw of it.
//!
//! The host's report as the journal records it. Bytes are named by digest and stored before the event that names them.

use super::{Attempt, FailedCommand, NodeId, Recoverable, Task, time_format};
use glovebox_record::spend::Money;
use glovebox_record::{
    Artifact, Ending, FileChange, LimitUse, Outcome, Receipt, Refusal, RefusedChange, Session, SteeringDelivery,
    StoredOutput, StoredValue, Tokens, ToolCall, Traffic,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// An attempt may be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageReady {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// 1 for the first attempt of the task.
    pub ordinal: u32,
    /// Not before this moment; at once when absent.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
}

/// A worker claimed the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageStarted {
    /// The attempt. One that a crash cut off is claimed again with the same ordinal and a new id.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The worker that claimed it.
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

/// The attempt was committed, with everything that the host and the engine recorded of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinished {
    /// The attempt that was claimed.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The handler that executed it: `codergen`, `tool`, `verify`, or a plugin's name. Empty for an attempt that was given up.
    #[serde(default)]
    pub handler: String,
    /// The outcome that the handler returned, or the host in its place, after the engine's retry rules.
    pub outcome: Outcome,
    /// How the call itself went.
    pub ending: Ending,
    /// Wall time of the call, milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Every limit, used and bound.
    #[serde(default)]
    pub usage: Vec<LimitUse>,
    /// Requests that the host refused.
    #[serde(flatten)]
    pub refusals: StageRefusals,
    /// Commands and requests to tool servers.
    #[serde(flatten)]
    pub commands: StageCommands,
    /// Changes of the workspace and files that were kept.
    #[serde(flatten)]
    pub files: StageFiles,
    /// Requests to a model.
    #[serde(flatten)]
    pub model: StageModel,
    /// Whether and how the visit goes on.
    #[serde(flatten)]
    pub follow_up: FollowUp,
}

/// The requests of an attempt that the host refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRefusals {
    /// The refusals; capped.
    #[serde(default, rename = "refusals")]
    pub listed: Vec<Refusal>,
    /// All refusals, also those beyond the cap.
    #[serde(default, rename = "refusals_total")]
    pub total: u64,
}

/// The commands of an attempt, as the host executed them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCommands {
    /// One per command.
    #[serde(default)]
    pub receipts: Vec<Receipt>,
    /// One per request to a tool server; absent when there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Requests of its commands to the network, where they had a proxy. For people and never for another stage: the stage chooses
    /// the names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Traffic>,
    /// Whether code of a builder could decide the verdict; absent when no hold-outs were in reach and no such code had run with the
    /// stage's caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The part of the workspace that the commands of a verifying stage could see; absent if that is all of it, and for other stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees: Option<Vec<String>>,
    /// True for a verifying stage that failed without the run's hold-outs, none of which it names, if it may have looked for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub misses_holdouts: bool,
    /// The command that made a verification fail; absent for any other stage, and where only the verdict counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<FailedCommand>,
    /// Commands of the operator's contract that a verification did not run to an end that counts; absent when there are none. A run does not
    /// succeed without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<String>,
}

/// The files of an attempt, as the workspace judged them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFiles {
    /// The changes of the workspace; every digest names a stored blob.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Changes that were not allowed and were set aside.
    #[serde(default)]
    pub quarantined: Vec<RefusedChange>,
    /// The disallowed writes that a person may decide about; absent without `[recovery]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<Box<Recoverable>>,
    /// Its writes to paths that git ignores, none of which is committed; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
    /// Kept bytes.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Context keys of the outcome whose value is a reference to an artifact: the value is too large for the context.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored_values: BTreeSet<String>,
    /// The stage's standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StoredOutput>,
    /// The stage's standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StoredOutput>,
}

/// The model requests of an attempt, as the host counted them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageModel {
    /// The model that was asked; absent where no provider was.
    #[serde(default, rename = "model", skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedModel>,
    /// The context fidelity of its model's prompt; absent where it asks no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Model turns that were answered.
    #[serde(default)]
    pub turns_used: u32,
    /// Tokens of these turns; absent where nothing counted them.
    #[serde(default, skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Their cost, in millionths of a dollar; absent where no price is known.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some of these tokens and their cost are estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
    /// The fate of each steering message, in order; absent without messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<SteeringDelivery>,
}

/// How the visit goes on after an attempt. Only the engine sets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FollowUp {
    /// True when another attempt of this visit follows.
    #[serde(default)]
    pub retrying: bool,
    /// True when a verification of this visit follows, which decides what the outcome counts for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// True if the operator asks the stage for changes and the work of this attempt made none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_change: bool,
    /// True for the verification of an exit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_exit: bool,
    /// Digest over the parts of its failure that repeat from visit to visit; absent without a failure that lasts. Only the cycle breaker
    /// reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<super::Digest>,
}

impl StageFinished {
    /// True when a command of the stage's own ended with code 0 and proves something, as the host saw it.
    pub fn has_passing_receipt(&self) -> bool {
        self.own_receipts().any(Receipt::proves)
    }

    /// True when commands of the stage's own ended with code 0, and none of them proves anything.
    pub fn proves_nothing(&self) -> bool {
        self.has_passed_command() && !self.has_passing_receipt()
    }

    /// True when a command of the stage's own ended with code 0, whether that proves something or not.
    pub fn has_passed_command(&self) -> bool {
        self.own_receipts().any(Receipt::passed)
    }

    fn own_receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.commands.receipts.iter().filter(|receipt| receipt.hook.is_none() && !receipt.subject)
    }

    /// Does something with the stage's own outcome in the place of the failure for its disallowed writes, if a person may decide about them.
    pub fn with_own_outcome(&mut self, change: impl FnOnce(&mut Self)) {
        let Some(mut recoverable) = self.files.recoverable.take() else { return };
        std::mem::swap(&mut self.outcome, &mut recoverable.outcome);
        change(self);
        std::mem::swap(&mut self.outcome, &mut recoverable.outcome);
        self.files.recoverable = Some(recoverable);
    }

    /// The disallowed writes that a person may allow.
    pub fn proposed(&self) -> impl Iterator<Item = &FileChange> {
        self.files.recoverable.iter().flat_map(|recoverable| recoverable.proposed.iter().map(|write| &write.change))
    }

    /// True when nothing more of the visit follows.
    pub fn is_final(&self) -> bool {
        !self.follow_up.retrying && !self.follow_up.verifying && self.files.recoverable.is_none()
    }

    /// The context values that the attempt set and that are stored apart from the context, by their keys.
    pub fn stored_values(&self) -> impl Iterator<Item = (&str, StoredValue)> {
        let updates = &self.outcome.context_updates;
        self.files
            .stored_values
            .iter()
            .filter_map(|key| Some((key.as_str(), StoredValue::from_reference(updates.get(key)?)?)))
    }

    /// An attempt that ended by itself with this outcome, and of which nothing else is known.
    pub fn new(attempt: Attempt, outcome: Outcome) -> Self {
        Self {
            attempt,
            handler: String::new(),
            outcome,
            ending: Ending::Returned,
            duration_ms: 0,
            usage: Vec::new(),
            refusals: StageRefusals::default(),
            commands: StageCommands::default(),
            files: StageFiles::default(),
            model: StageModel::default(),
            follow_up: FollowUp::default(),
        }
    }
}

/// A model that a stage asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedModel {
    /// Its name in glovebox.toml.
    pub name: String,
    /// Its wire format.
    pub provider: String,
    /// The exact name that was asked.
    pub model: String,
    /// The name that the provider answered last; absent where it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
}

/// The writes of a stage to paths that git ignored when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredFiles {
    /// How many files.
    pub files: u64,
    /// Their length.
    pub bytes: u64,
    /// Some of the ignored names, such as `target/`, the most frequent first.
    pub names: Vec<String>,
}

/// Whether code of a builder could decide a verdict unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The stage's own commands saw nothing of the workspace but hold-outs. The program under test ran in a sandbox of its own.
    Isolated,
    /// They saw the project: builders' code could run among them, read the hold-outs and forge the verdict.
    NotIsolated,
    /// No hold-outs were in reach. The stage began with caches that code of builders could have changed in a stage before.
    BuildersCaches,
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
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub due_at: Timestamp,
}

#[cfg(test)]
mod tests;
