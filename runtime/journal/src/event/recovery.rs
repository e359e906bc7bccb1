//! The events of write recovery (decision write-recovery): the decisions that a person may make about a stage's writes
//! outside of its scope, and the decision that was made.
//!
//! The question names the bytes that a decision can commit by digest, so later writes do not change what is committed.
//! This module does not know the rules for which paths are proposed.

use super::{AnsweredBy, Attempt, AttemptId, BranchId, Digest, FileChange, NodeId, QuestionId};
use glovebox_record::Outcome;
use glovebox_record::path::ScopePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The disallowed writes of an attempt that a person may allow or discard as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recoverable {
    /// The stage's own outcome, which becomes the outcome of the attempt if the writes are allowed or discarded.
    pub outcome: Outcome,
    /// True if a verification of the visit follows `outcome`. Only the engine sets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// The writes that may be allowed, by path. All other disallowed writes can only be discarded.
    #[serde(default)]
    pub proposed: Vec<ProposedWrite>,
    /// The failure signature of `outcome`, which is equal for equal failures. Absent if there is no failure, and for a
    /// transient failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
    /// Time limit of the question in milliseconds; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A disallowed write that may be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedWrite {
    /// The write, with the digest of its bytes.
    #[serde(flatten)]
    pub change: FileChange,
    /// Why the path is proposed, as text of the author or the operator.
    pub why: String,
}

/// The writes that the answer `allow` grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryQuestion {
    /// The attempt that wrote outside of its scope.
    pub attempt: AttemptId,
    /// The writes that are committed if they are allowed. The node may then write their paths for the rest of the run.
    /// Empty if nothing can be allowed.
    #[serde(default)]
    pub grants: Vec<ProposedWrite>,
}

/// A decision about disallowed writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// The proposed writes are committed, and the node may write their paths for the rest of the run.
    Allow,
    /// All disallowed writes stay in quarantine, and the stage's own outcome becomes the outcome of the attempt.
    Discard,
    /// All disallowed writes stay in quarantine, and the stage fails.
    Deny,
}

impl RecoveryAction {
    /// Every action, in the order in which a question lists them.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Discard, Self::Deny];

    /// Returns the name used in questions, answers and records.
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

/// Why the scope of a node was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryReason {
    /// A person allowed paths that the stage wrote.
    AllowedPathsAdjusted,
}

/// The disallowed writes of an attempt were allowed, discarded or denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryDecided {
    /// The attempt that made the writes.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The handler that executed the attempt.
    #[serde(default)]
    pub handler: String,
    /// The question about the writes.
    pub question: QuestionId,
    /// The decision.
    pub action: RecoveryAction,
    /// Why the node's write scope was changed; absent if it was not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RecoveryReason>,
    /// How the answer was given.
    pub how: AnsweredBy,
    /// The name of the person who answered; empty if no person did.
    #[serde(default)]
    pub by: String,
    /// The committed writes, as listed in the question. The node may write these paths for the rest of the run.
    #[serde(default)]
    pub changes: Vec<FileChange>,
    /// The outcome of the attempt after the decision.
    pub outcome: Outcome,
    /// True if a verification of the visit follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifying: bool,
    /// Context keys of the outcome whose value is a reference to an artifact.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stored_values: BTreeSet<String>,
    /// The failure signature, which is equal for equal failures. Absent unless the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Digest>,
}

impl RecoveryDecided {
    /// Returns the node that made the writes.
    pub fn node(&self) -> &NodeId {
        &self.attempt.task.node
    }

    /// Returns the branch of the attempt.
    pub fn branch(&self) -> &BranchId {
        &self.attempt.task.branch
    }

    /// Returns the paths that the node may write from here on.
    pub fn granted(&self) -> impl Iterator<Item = &ScopePath> {
        self.changes.iter().map(|change| &change.path)
    }
}
