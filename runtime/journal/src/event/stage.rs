//! The events of an attempt: it is ready, it was claimed, and what the host and the engine recorded about it.
//!
//! Events name bytes by digest. The bytes are stored before the event.

use super::{Attempt, FailedCommand, NodeId, Recoverable, Task, time_format};
use glovebox_record::spend::Money;
use glovebox_record::{
    Artifact, Ending, Failure, FailureCode, FileChange, LimitUse, LivenessTotals, MachineId, Outcome, Receipt, Refusal,
    RefusedChange, Session, SteeringDelivery, StoredOutput, StoredValue, Tokens, ToolCall, Traffic, Unmatched,
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
    /// Number of the attempt within the task, counted from 1.
    pub ordinal: u32,
    /// The earliest time to start; absent if the attempt may start immediately.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
}

/// A worker claimed the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageStarted {
    /// The attempt. An attempt that a crash interrupted is claimed again with the same ordinal and a new id.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The worker that claimed it.
    pub worker: String,
    /// The machine that makes the attempt; absent if the worker itself makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Where the branch was before; absent if it stays on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<Moved>>,
}

/// The move of a branch to another machine. Build caches stay on the machine before, as do files at ignored paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The machine that made the last attempt of the branch.
    pub from: MachineId,
    /// The files at ignored paths that the last attempt with such files wrote, and that stay there; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<IgnoredFiles>,
}

/// The command of a verifying stage was executed once over the initial files of the run, to fill the stage's caches.
/// Its verdict is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFilled {
    /// The node.
    pub node: NodeId,
    /// The receipt of the command, followed by those of the programs under test that it started.
    pub receipts: Vec<Receipt>,
}

/// The attempt was committed, with everything that the host and the engine recorded about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinished {
    /// The attempt that was claimed.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The handler that executed the attempt: `codergen`, `tool`, `verify`, or a plugin's name. Empty for an attempt
    /// that was abandoned.
    #[serde(default)]
    pub handler: String,
    /// The outcome from the handler, or from the host if the handler returned none. The engine's retry rules are already applied.
    pub outcome: Outcome,
    /// How the call ended.
    pub ending: Ending,
    /// The machine that made the attempt; absent if the worker that claimed the attempt made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Wall time of the call in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The use and the bound of every limit.
    #[serde(default)]
    pub usage: Vec<LimitUse>,
    /// Requests that the host refused.
    #[serde(flatten)]
    pub refusals: StageRefusals,
    /// Commands and requests to tool servers.
    #[serde(flatten)]
    pub commands: StageCommands,
    /// Changes of the workspace and stored files.
    #[serde(flatten)]
    pub files: StageFiles,
    /// Requests to a model.
    #[serde(flatten)]
    pub model: StageModel,
    /// Whether and how the visit continues.
    #[serde(flatten)]
    pub follow_up: FollowUp,
    /// What the host observed while the attempt ran; absent for an attempt that was shorter than one heartbeat interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<LivenessTotals>,
}

/// The requests of an attempt that the host refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRefusals {
    /// The refusals; the list is capped.
    #[serde(default, rename = "refusals")]
    pub listed: Vec<Refusal>,
    /// Number of all refusals, including those beyond the cap.
    #[serde(default, rename = "refusals_total")]
    pub total: u64,
}

/// The commands of an attempt, as the host executed them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCommands {
    /// One receipt per command.
    #[serde(default)]
    pub receipts: Vec<Receipt>,
    /// One entry per request to a tool server; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Network requests of the commands, if they had a proxy. For people only, never for another stage, because the
    /// stage chooses the host names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Traffic>,
    /// Whether code of a builder could decide the verdict; absent if no hold-outs were readable and no such code had
    /// run with the stage's caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The part of the workspace that the commands of a verifying stage could see; absent if they could see all of it,
    /// and for other stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees: Option<Vec<String>>,
    /// True for a verifying stage that failed and might have succeeded with hold-outs: it neither names nor gets any,
    /// but it may have looked for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub misses_holdouts: bool,
    /// The command that made a verification fail; absent for any other stage, and if only the verdict may be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<FailedCommand>,
    /// Commands of the verify contract that a verification skipped or did not complete; absent if there are none. A run
    /// does not succeed without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<String>,
}

/// The files of an attempt, with the decisions of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFiles {
    /// The committed changes of the workspace. Every digest names a stored blob.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// Disallowed changes, which are in quarantine.
    #[serde(default)]
    pub quarantined: Vec<RefusedChange>,
    /// The disallowed writes that a person may decide about; absent without `[recovery]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<Box<Recoverable>>,
    /// Writes to paths that git ignores, none of which is committed; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFiles>,
    /// Entries of the node's attributes that matched no file when the attempt began; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<Unmatched>,
    /// Status files that the attempt wrote in the workspace and that nothing reads, because the node has no `status_file=true`;
    /// absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_status: Vec<String>,
    /// The artifacts of the attempt.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Context keys of the outcome whose value is a reference to an artifact, because the value is too large for the context.
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
    /// The model that was asked; absent if no provider was asked.
    #[serde(default, rename = "model", skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedModel>,
    /// The session of the model; absent if the stage asks no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Number of model turns that were answered.
    #[serde(default)]
    pub turns_used: u32,
    /// Tokens of these turns; absent if they were not counted.
    #[serde(default, skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Cost of these turns in millionths of a dollar; absent if no price is known.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some of the tokens and their cost are estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
    /// The delivery of each steering message, in order; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<SteeringDelivery>,
    /// The time at which the quota at the provider resumes, as the provider named it; absent if the attempt did not fail
    /// because of a quota.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resume_at: Option<Timestamp>,
}

/// Whether and how the visit continues after an attempt. Only the engine sets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FollowUp {
    /// True if another attempt of this visit follows.
    #[serde(default)]
    pub retrying: bool,
    /// True if a verification of this visit follows, whose result decides whether the outcome is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// True if the operator requires changes from the stage and this attempt made none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_change: bool,
    /// True for the verification at an exit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_exit: bool,
    /// The failure signature: a digest over the parts of the failure that are equal in each visit. Absent if there is
    /// no failure, and for a transient failure. It is used only to stop a run that repeats the same failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<super::Digest>,
}

impl StageFinished {
    /// Returns true if a command of the stage itself exited with code 0 and its receipt is a proof. Commands of hooks
    /// and programs under test are ignored.
    pub fn has_passing_receipt(&self) -> bool {
        self.own_receipts().any(Receipt::proves)
    }

    /// Returns true if commands of the stage itself exited with code 0, and none of their receipts is a proof.
    pub fn proves_nothing(&self) -> bool {
        self.has_passed_command() && !self.has_passing_receipt()
    }

    /// Returns true if a command of the stage itself exited with code 0, whether or not its receipt is a proof.
    pub fn has_passed_command(&self) -> bool {
        self.own_receipts().any(Receipt::passed)
    }

    fn own_receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.commands.receipts.iter().filter(|receipt| receipt.hook.is_none() && !receipt.subject)
    }

    /// Calls `change` with the stage's own outcome in place of the failure for its disallowed writes, if a person may
    /// decide about them.
    pub fn with_own_outcome(&mut self, change: impl FnOnce(&mut Self)) {
        let Some(mut recoverable) = self.files.recoverable.take() else { return };
        std::mem::swap(&mut self.outcome, &mut recoverable.outcome);
        change(self);
        std::mem::swap(&mut self.outcome, &mut recoverable.outcome);
        self.files.recoverable = Some(recoverable);
    }

    /// Returns the disallowed writes that a person may allow.
    pub fn proposed(&self) -> impl Iterator<Item = &FileChange> {
        self.files.recoverable.iter().flat_map(|recoverable| recoverable.proposed.iter().map(|write| &write.change))
    }

    /// Returns true if the attempt failed because its sandbox was killed.
    pub fn has_lost_sandbox(&self) -> bool {
        self.outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::SANDBOX_LOST)
    }

    /// Returns true if the visit ends with this attempt.
    pub fn is_final(&self) -> bool {
        !self.follow_up.retrying && !self.follow_up.verifying && self.files.recoverable.is_none()
    }

    /// Returns the context values that the attempt set and that are stored outside of the context, with their keys.
    pub fn stored_values(&self) -> impl Iterator<Item = (&str, StoredValue)> {
        let updates = &self.outcome.context_updates;
        self.files
            .stored_values
            .iter()
            .filter_map(|key| Some((key.as_str(), StoredValue::from_reference(updates.get(key)?)?)))
    }

    /// Creates the record of an attempt that returned this outcome, with all other fields empty.
    pub fn new(attempt: Attempt, outcome: Outcome) -> Self {
        Self {
            attempt,
            handler: String::new(),
            outcome,
            ending: Ending::Returned,
            machine: None,
            duration_ms: 0,
            usage: Vec::new(),
            refusals: StageRefusals::default(),
            commands: StageCommands::default(),
            files: StageFiles::default(),
            model: StageModel::default(),
            follow_up: FollowUp::default(),
            liveness: None,
        }
    }
}

/// A model that a stage asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedModel {
    /// The name of the model in glovebox.toml.
    pub name: String,
    /// The wire format of the provider.
    pub provider: String,
    /// The exact model name in the request.
    pub model: String,
    /// The model name in the last answer; absent if no answer named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
}

/// The writes of a stage to paths that git ignored when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredFiles {
    /// Number of files.
    pub files: u64,
    /// Total length of the files in bytes.
    pub bytes: u64,
    /// Some of the ignored names, such as `target/`, the most frequent first.
    pub names: Vec<String>,
}

/// Whether code of a builder could have influenced a verdict undetected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The stage's own commands saw only hold-outs in the workspace. The program under test ran in a sandbox of its own.
    Isolated,
    /// The stage's own commands saw the project. Code of builders could run in the same sandbox, read the hold-outs and
    /// forge the verdict.
    NotIsolated,
    /// No hold-outs were readable. The stage used caches that code of builders could have changed in an earlier stage.
    BuildersCaches,
}

/// The attempt failed because a quota at the provider is used up, and the provider named the time at which the quota
/// resumes. Nothing of the attempt is committed, and it is executed again at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageHeld {
    /// The attempt that was claimed.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The failure of the attempt.
    pub failure: Failure,
    /// The provider, such as `anthropic`.
    pub provider: String,
    /// The time at which the attempt is executed again.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub resume_at: Timestamp,
}

/// Another attempt of the same visit follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRetrying {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Number of the next attempt.
    pub ordinal: u32,
    /// Backoff in milliseconds.
    pub delay_ms: u64,
    /// The earliest time to start the next attempt.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub due_at: Timestamp,
}

#[cfg(test)]
mod tests;
