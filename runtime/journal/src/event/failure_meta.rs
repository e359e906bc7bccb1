//! Facts about a failed verification beside its failure (`error_meta` of openTiger; decision failure-codes): for people, and never for
//! another stage.

use super::{StageFinished, Work};
use glovebox_pipeline::ir::{HandlerKind, Role};
use glovebox_record::{ClassifiedFailure, FailureCategory, FailureSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The origin of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// The pipeline's author, the plan, or what completes the plan.
    Explicit,
    /// The worker's part of `[verify]`.
    Auto,
}

impl CommandSource {
    /// The word for it.
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
    /// As it is written.
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
    /// Its category.
    pub category: FailureCategory,
    /// Whether another try can help.
    pub retryable: bool,
    /// The command that failed; absent where no command did, and where hold-outs were in reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_command: Option<String>,
    /// The origin of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_command_source: Option<CommandSource>,
}

impl FailureMeta {
    /// The failure description of an attempt; none unless it is a verification that failed.
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
    /// True for everything that verifies: repetitions after its failures are bounded by their category.
    pub fn is_bounded_by_category(&self) -> bool {
        self.is_verification() || HandlerKind::from_name(&self.handler).role() == Some(Role::Verifier)
    }

    /// True for the verification of a node's work, and for a stage that runs a plan of checks.
    pub fn is_verification(&self) -> bool {
        self.attempt.task.work == Work::Verify || HandlerKind::from_name(&self.handler) == HandlerKind::Verification
    }
}
