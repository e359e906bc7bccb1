//! The events of write recovery (decision write-recovery): what a person may decide about a stage's writes outside of its scope, and what
//! was decided.
//!
//! The bytes that a decision can commit are named by digest before anybody is asked, so nothing that happens later changes them. It knows
//! no rule for which paths are proposed.

use super::{AnsweredBy, Attempt, AttemptId, BranchId, Digest, FileChange, NodeId, QuestionId};
use glovebox_record::Outcome;
use glovebox_record::path::ScopePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The disallowed writes of an attempt that a person may allow or discard, all together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recoverable {
    /// The outcome that counts if they are allowed or discarded: the stage's own.
    pub outcome: Outcome,
    /// True when a verification of the visit follows that outcome. Only the engine sets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// The writes that may be allowed, by path. The others can only be discarded.
    #[serde(default)]
    pub proposed: Vec<ProposedWrite>,
    /// The signature of that outcome's failure, if it has one that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
    /// How long the question waits, milliseconds; absent when it has no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A disallowed write that may be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedWrite {
    /// The write, with the digest of its bytes.
    #[serde(flatten)]
    pub change: FileChange,
    /// The text of the author or the operator that proposes the path.
    pub why: String,
}

/// The writes that the answer `allow` grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryQuestion {
    /// The attempt that wrote outside of its scope.
    pub attempt: AttemptId,
    /// The paths that the node may write from then on, with the bytes that are committed; empty when nothing can be allowed.
    #[serde(default)]
    pub grants: Vec<ProposedWrite>,
}

/// A decision about disallowed writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// The proposed ones are committed, and the node may write their paths for the rest of the run.
    Allow,
    /// They stay in quarantine, and the stage's own outcome counts.
    Discard,
    /// They stay in quarantine, and the stage fails.
    Deny,
}

impl RecoveryAction {
    /// Every action, in the order in which a question lists them.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Discard, Self::Deny];

    /// The word in questions, answers and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Discard => "discard",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for RecoveryAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the scope of a node is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryReason {
    /// A person allowed paths that the stage wrote.
    AllowedPathsAdjusted,
}

/// It was decided what happens to the disallowed writes of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryDecided {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The handler that executed it.
    #[serde(default)]
    pub handler: String,
    /// The question that asked for it.
    pub question: QuestionId,
    /// The decision.
    pub action: RecoveryAction,
    /// Why the node's write scope is another one; absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RecoveryReason>,
    /// How the answer came.
    pub how: AnsweredBy,
    /// The name of the person who gave it; empty when no person did.
    #[serde(default)]
    pub by: String,
    /// The committed writes, as the question named them. The node may write these paths for the rest of the run.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// The outcome of the attempt that counts from here on.
    pub outcome: Outcome,
    /// True when a verification of the visit follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// Context keys of the outcome whose value is a reference to an artifact.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored_values: BTreeSet<String>,
    /// The signature of the failure, if the attempt has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
}

impl RecoveryDecided {
    /// The node whose writes they are.
    pub fn node(&self) -> &NodeId {
        &self.attempt.task.node
    }

    /// The branch.
    pub fn branch(&self) -> &BranchId {
        &self.attempt.task.branch
    }

    /// The paths that the node may write from here on.
    pub fn granted(&self) -> impl Iterator<Item = &ScopePath> {
        self.changes.iter().map(|change| &change.path)
    }
}
