//! Decisions about writes outside of a stage's scope, if the operator lets people decide about them
//! (decision write-recovery).
//!
//! The engine asks and never answers: an answer that names no action denies the writes. A decision commits and grants
//! only what the record of the attempt listed before the question was asked.

use super::BranchDecision;
use crate::refused_writes::Folded;
use glovebox_journal::event::{
    Event, QuestionAnswered, QuestionAsked, Recoverable, RecoveryAction, RecoveryDecided, RecoveryQuestion,
    RecoveryReason, StageFinished,
};
use glovebox_pipeline::ir::NodeId;
use glovebox_record::{Choice, QuestionType};
use std::time::Duration;

/// Maximum number of groups of files that a question lists as discardable.
const GROUPS_SHOWN_MAX: usize = 8;
/// Maximum number of characters that are shown of a path that a stage chose.
const PATH_CHARACTERS_MAX: usize = 200;

impl BranchDecision<'_> {
    /// Asks a person what to do with the disallowed writes of an attempt.
    pub(super) fn ask_recovery(&self, finished: &StageFinished) -> Vec<Event> {
        let Some(recoverable) = finished.files.recoverable.as_deref() else { return Vec::new() };
        let task = finished.attempt.task.clone();
        let due_at = recoverable.timeout_ms.map(|timeout| self.due(Duration::from_millis(timeout)));
        let is_offered = |action: &RecoveryAction| *action != RecoveryAction::Allow || !recoverable.proposed.is_empty();
        vec![Event::QuestionAsked(Box::new(QuestionAsked {
            question: QuestionAsked::id_of_recovery(&task),
            generation: task.generation,
            branch: task.branch,
            node: task.node,
            visit: task.visit,
            question_type: QuestionType::MultipleChoice,
            text: text(finished, recoverable),
            choices: RecoveryAction::ALL.into_iter().filter(is_offered).map(choice).collect(),
            default: None,
            due_at,
            recovery: Some(Box::new(RecoveryQuestion {
                attempt: finished.attempt.id.clone(),
                grants: recoverable.proposed.clone(),
            })),
        }))]
    }

    /// Returns the events that follow from an answer about disallowed writes. Empty if the branch has no question about
    /// disallowed writes.
    pub(super) fn decide_recovery(&self, answered: &QuestionAnswered) -> Vec<Event> {
        let held = self.branch.held.as_deref();
        let Some((held, recoverable)) = held.and_then(|held| Some((held, held.files.recoverable.as_deref()?))) else {
            return Vec::new();
        };
        let action = answered.action();
        let is_denied = action == RecoveryAction::Deny;
        let is_allowed = action == RecoveryAction::Allow;
        let proposed = recoverable.proposed.iter().filter(|_| is_allowed);
        let (outcome, signature) = match is_denied {
            true => (&held.outcome, held.follow_up.signature),
            false => (&recoverable.outcome, recoverable.signature),
        };
        vec![Event::RecoveryDecided(Box::new(RecoveryDecided {
            attempt: held.attempt.clone(),
            handler: held.handler.clone(),
            question: answered.question.clone(),
            action,
            reason: is_allowed.then_some(RecoveryReason::AllowedPathsAdjusted),
            how: answered.how,
            by: answered.by.clone(),
            changes: proposed.map(|write| write.change.clone()).collect(),
            outcome: outcome.clone(),
            verifying: recoverable.verifying && !is_denied,
            stored_values: held.files.stored_values.clone(),
            signature,
        }))]
    }

    /// Continues after a decision: with the verification of the visit, or with the route out of the stage.
    pub(super) fn leave_decided(&self, decided: &RecoveryDecided) -> Vec<Event> {
        match decided.verifying {
            true => self.verify(&decided.attempt.task),
            false => self.leave_stage(decided.node(), &decided.outcome),
        }
    }
}

/// Returns an action as a choice. Its key is the whole word, so that a short answer cannot select it by accident.
fn choice(action: RecoveryAction) -> Choice {
    let (key, label) = (action.as_str().to_owned(), action.as_str().to_owned());
    Choice { key, label, to: NodeId::from(action.as_str()), declines: action == RecoveryAction::Deny }
}

/// Returns the text of the question: what was written, why each file is proposed, and the effect of each answer. Its
/// length is bounded, whatever the stage wrote.
fn text(finished: &StageFinished, recoverable: &Recoverable) -> String {
    let node = &finished.attempt.task.node;
    let mut text = format!("stage `{node}` wrote outside of its write scope");
    if !recoverable.proposed.is_empty() {
        text += &format!("\nallow commits these files, and lets `{node}` write these paths for the rest of the run:");
        for write in &recoverable.proposed {
            let (path, bytes) = (&write.change.path, write.change.bytes);
            let digest = write.change.digest.map(|digest| digest.hex()).unwrap_or_default();
            text += &format!("\n- {path} ({bytes} bytes, digest {digest:.12}): proposed by {}", write.why);
        }
    }
    let own = recoverable.outcome.status.as_str();
    text += &format!("\ndiscard leaves everything in quarantine, and the stage ends with its own outcome: {own}");
    let is_proposed = |path: &str| recoverable.proposed.iter().any(|write| write.change.path.as_str() == path);
    let others = finished.files.quarantined.iter().filter(|file| !is_proposed(&file.path));
    let groups = Folded::group(others.map(|file| (file.path.as_str(), file.reason.as_str())));
    if !groups.is_empty() && !recoverable.proposed.is_empty() {
        text += "\nthese files are never committed, even if the answer is `allow`:";
    }
    for group in groups.iter().take(GROUPS_SHOWN_MAX) {
        let at: String = group.at.chars().take(PATH_CHARACTERS_MAX).collect();
        let files = if group.files == 1 { "1 file".to_owned() } else { format!("{} files", group.files) };
        text += &format!("\n- {at} ({files})");
    }
    let unshown: usize = groups.iter().skip(GROUPS_SHOWN_MAX).map(|group| group.files).sum();
    if unshown > 0 {
        text += &format!("\n- {unshown} more files");
    }
    text + "\ndeny leaves everything in quarantine, and the stage fails"
}
