//! The rule for agents that succeed without a change, if the operator requires changes
//! (decision no-change-is-a-failure).
//!
//! Only the host's own list of changes decides, never a statement of the stage. A verification of the node may confirm
//! that no change was necessary. Without such a verification, the work is repeated as often as the operator allows, and
//! then the stage fails.

use crate::failure_signature;
use crate::run_state::Branch;
use glovebox_journal::event::{StageFinished, Work};
use glovebox_pipeline::ir::Node;
use glovebox_record::no_change::{Confirmation, NoChangeRule};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};

/// The reason for the repetition. The next attempt gets this text.
const HINT: &str = "No changes detected. Make changes required to meet the task goal.";

/// The decision about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The rule does not apply, and other rules decide.
    Open,
    /// The attempt failed, and the work is repeated.
    Repeated,
    /// The attempt failed and is not repeated.
    Refused,
}

/// Applies the rule to the end of a node's work. An attempt that the node's verification may confirm is only marked.
pub(super) fn judge(node: &Node, rule: Option<&NoChangeRule>, branch: &Branch, finished: &mut StageFinished) -> Ruling {
    let is_unchanged = finished.outcome.status.satisfies_gate() && finished.files.changes.is_empty();
    let is_meant = |rule: &&NoChangeRule| finished.attempt.task.work == Work::Handler && rule.nodes.contains(&node.id);
    let Some(rule) = rule.filter(|_| is_unchanged).filter(is_meant) else { return Ruling::Open };
    finished.follow_up.no_change = true;
    if rule.setting.confirm == Confirmation::Verify && node.checks.verification.is_some() {
        return Ruling::Open;
    }
    let most = rule.setting.recovery_attempts;
    let repeated = repeated(node, branch);
    let (ruling, reason) = match repeated < most {
        true => (Ruling::Repeated, HINT.to_owned()),
        false => {
            let count = repeated.saturating_add(1);
            let times = if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") };
            let reason =
                format!("no changes were made: {times} of `{}` ended with success and changed no file", node.id);
            (Ruling::Refused, format!("{reason}, expected a change (`no_change_recovery_attempts` is {most})"))
        }
    };
    let failure = Failure::new(FailureClass::Deterministic, FailureCode::NO_ACTIONABLE_CHANGES, reason);
    finished.follow_up.signature = failure_signature::of_failure(&failure);
    let notes = std::mem::take(&mut finished.outcome.notes);
    finished.outcome = Outcome { notes, ..Outcome::failed(failure) };
    finished.files.stored_values.clear();
    ruling
}

/// Returns the number of attempts of the current visit that were repeated because they changed nothing. They do not
/// count towards any other limit on attempts.
pub(super) fn repeated(node: &Node, branch: &Branch) -> u32 {
    branch.nodes.get(&node.id).map_or(0, |history| history.unchanged)
}
