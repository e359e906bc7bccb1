//! What becomes of an agent's success that changed nothing, where the operator asks for changes (decision no-change-is-a-failure).
//!
//! Only the host's own set of changes counts, never what the stage says. A verification of the node may confirm that there was nothing to
//! do. Without one the work is repeated, so often as the operator allows, and then the stage has failed.

use crate::failure_signature;
use crate::run_state::Branch;
use glovebox_journal::event::{StageFinished, Work};
use glovebox_pipeline::ir::Node;
use glovebox_record::no_change::{Confirmation, NoChangeRule};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome};

/// Why the work is repeated; the next attempt is told so.
const HINT: &str = "No changes detected. Make changes required to meet the task goal.";

/// The decision of the rule about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// Nothing: other rules decide.
    Open,
    /// It failed, and its work is repeated.
    Repeated,
    /// It failed for good.
    Refused,
}

/// Judges the end of a node's work. An attempt that its node's verification may confirm stays as it is, with a mark.
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

/// Attempts of the visit under way that were repeated because they changed nothing. They count for no other bound on attempts.
pub(super) fn repeated(node: &Node, branch: &Branch) -> u32 {
    branch.nodes.get(&node.id).map_or(0, |history| history.unchanged)
}
