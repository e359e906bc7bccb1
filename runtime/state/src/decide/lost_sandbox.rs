//! Attempts whose sandbox was killed: each visit may repeat one of them, and it does not count as a retry of the stage
//! (decision lost-sandboxes-are-repeated-once).
//!
//! The bound of one is for commands that can kill their own sandbox, which without confinement every command can.

use super::retry::repeats_verification;
use crate::run_state::Branch;
use glovebox_journal::event::{StageFinished, Work};
use glovebox_pipeline::ir::Node;

/// Returns true for the first attempt of the current visit that lost its sandbox.
pub(super) fn is_first(node: &Node, branch: &Branch, finished: &StageFinished) -> bool {
    finished.has_lost_sandbox() && lost(node, branch).is_none()
}

/// Returns the number of attempts of the current visit that were repeated because their sandbox was lost, of the work
/// that would be repeated after this attempt.
pub(super) fn repeated(node: &Node, branch: &Branch, finished: &StageFinished) -> u32 {
    let is_verification = repeats_verification(finished);
    let is_same = |work: Work| (work == Work::Verify) == is_verification;
    u32::from(lost(node, branch).is_some_and(is_same))
}

fn lost(node: &Node, branch: &Branch) -> Option<Work> {
    branch.nodes.get(&node.id)?.lost_sandbox
}
