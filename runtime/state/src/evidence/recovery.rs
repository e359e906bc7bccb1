//! The decisions of people about writes outside of a stage's write scope, as a part of the summary.

use super::{RunSummary, UnverifiedStage};
use glovebox_journal::event::{AnsweredBy, BranchId, QuestionId, RecoveryAction, RecoveryDecided};
use glovebox_record::path::ScopePath;
use glovebox_record::{Digest, NodeId};
use schemars::JsonSchema;
use serde::Serialize;

/// One decision about the disallowed writes of a visit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RecoveryDecision {
    /// The node.
    pub node: NodeId,
    /// The id of the question.
    pub question: QuestionId,
    /// The decision.
    pub action: RecoveryAction,
    /// The committed writes, each path with its digest. The node may write these paths for the rest of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<GrantedFile>,
    /// How the question was answered.
    pub how: AnsweredBy,
    /// The name of the person who answered; empty if no person did.
    pub by: String,
}

/// A path that a person allowed a node to write.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrantedFile {
    /// The path.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// Digest of the bytes that were committed with the decision.
    pub digest: Option<Digest>,
}

impl RunSummary {
    pub(super) fn pause(&mut self, paused: &glovebox_journal::event::RunPaused) {
        (self.status, self.end.exit) = (super::RunStatus::Paused, super::ExitClass::Paused);
        self.end.resume_at = paused.resume_at;
        if let Some(held) = &paused.held {
            self.end.quota_waits = held.waits;
            (self.end.failed_node, self.end.failure) = (Some(held.node.clone()), Some(held.failure.clone()));
        }
    }

    /// Applies a decision: the visit ends with it, and allowed writes no longer count as quarantined.
    pub(super) fn decide(&mut self, decided: &RecoveryDecided) {
        let task = &decided.attempt.task;
        let granted = decided.changes.iter();
        let granted = granted.map(|change| GrantedFile { path: change.path.clone(), digest: change.digest });
        self.files.recovery.push(RecoveryDecision {
            node: task.node.clone(),
            question: decided.question.clone(),
            action: decided.action,
            granted: granted.collect(),
            how: decided.how,
            by: decided.by.clone(),
        });
        let is_granted = |path: &str| decided.granted().any(|granted| granted.as_str() == path);
        self.files.quarantined.retain(|file| file.node != task.node || !is_granted(&file.path));
        let is_here = |generation: u32, visit: u32| (generation, visit) == (task.generation, task.visit);
        let visits = self.visited.iter_mut().rev();
        for visit in visits.filter(|one| one.node == task.node && is_here(one.generation, one.visit)).take(1) {
            visit.status = decided.outcome.status.as_str();
        }
        self.proof.startup.note(&task.branch, &(task.node.clone(), task.work), &decided.changes);
        self.note_end(&task.node, decided.outcome.failure.clone(), []);
        if task.branch == BranchId::main() && !decided.changes.is_empty() {
            self.files.changed_last = Some((self.head.records, task.node.clone()));
        }
        self.note_changes(decided.changes.iter().filter(|_| task.branch == BranchId::main()).cloned());
        if decided.outcome.status.satisfies_gate() && !decided.verifying {
            self.proof.unverified.push(UnverifiedStage { node: task.node.clone(), handler: decided.handler.clone() });
        }
    }
}
