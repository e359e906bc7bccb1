//! Facts about a failed verification that are written next to its failure (`error_meta` of openTiger;
//! decision failure-codes). They are for people. No other stage gets them.

use super::{StageFinished, Work};
use glovebox_pipeline::ir::{HandlerKind, Role};
use glovebox_record::{ClassifiedFailure, FailureCategory, FailureSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The origin of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// The command is from the pipeline's author, from the verification plan, or from `[verify.planner]`, which completes the plan.
    Explicit,
    /// The command was added by `[verify.worker]`.
    Auto,
}

impl CommandSource {
    /// Returns the name of the origin in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Auto => "auto",
        }
    }
}

/// The command that made a verification fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCommand {
    /// The command line as it was written.
    pub line: String,
    /// The origin of the command.
    pub source: CommandSource,
}

/// Facts about a failed verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureMeta {
    /// The kind of stage that failed: always a verification.
    pub source: FailureSource,
    /// The code in the vocabulary of openTiger (decision failure-codes).
    pub failure_code: &'static str,
    /// The category of the failure code.
    pub category: FailureCategory,
    /// True if another attempt can succeed.
    pub retryable: bool,
    /// The command that failed; absent if no command failed, and if hold-outs were readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<String>,
    /// The origin of `failed_command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_command_source: Option<CommandSource>,
}

impl FailureMeta {
    /// Creates the description of an attempt's failure. Returns `None` unless the attempt was a verification that failed.
    pub fn for_stage(finished: &StageFinished) -> Option<Self> {
        let failure = finished.outcome.failure.as_ref().filter(|_| finished.is_verification())?;
        let source = FailureSource::Verification;
        let ClassifiedFailure { code, category, is_retryable } = ClassifiedFailure::new(source, failure);
        let command = finished.commands.failed_command.as_ref();
        Some(Self {
            source,
            failure_code: code,
            category,
            retryable: is_retryable,
            failed_command: command.map(|command| command.line.clone()),
            failed_command_source: command.map(|command| command.source),
        })
    }
}

impl StageFinished {
    /// Returns true for every stage that verifies. The number of repetitions after a failure of such a stage is bounded
    /// by the failure category.
    pub fn is_bounded_by_category(&self) -> bool {
        self.is_verification() || HandlerKind::from_name(&self.handler).role() == Some(Role::Verifier)
    }

    /// Returns true for the verification of a node's work and for a stage with the `verification` handler.
    pub fn is_verification(&self) -> bool {
        self.attempt.task.work == Work::Verify || HandlerKind::from_name(&self.handler) == HandlerKind::Verification
    }
}
