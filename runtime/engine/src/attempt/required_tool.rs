//! Holds back a stage if the stage that it requires has not passed (`requires_tool_success`, decision required-tool-success).
//!
//! Only the run's own record of the required stage counts: its last outcome in the branch since the last restart, and
//! the host's receipt of a command of that stage that passed. Files of the workspace, the context and the claims of a
//! stage are not proof.

use crate::assignment::Assignment;
use glovebox_journal::event::{StageFinished, Work};
use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use glovebox_state::run_state::Branch;

/// Returns the failed result of an attempt whose stage is held back. `None` if the stage is not held back.
pub(super) fn held_back(node: &Node, assignment: &Assignment) -> Option<StageFinished> {
    let is_work = assignment.attempt.task.work == Work::Handler;
    let tool = node.checks.required_tool.as_ref().filter(|tool| is_work && !has_passed(&assignment.branch, tool))?;
    let reason = format!("required tool node not successful: {tool}");
    let failure = Failure::new(FailureClass::Deterministic, FailureCode::REQUIRED_TOOL, reason);
    let fact = StageFinished::new(assignment.attempt.clone(), Outcome::failed(failure));
    Some(StageFinished { handler: node.handler.name().to_owned(), ..fact })
}

fn has_passed(branch: &Branch, tool: &NodeId) -> bool {
    branch.status(tool) == Some(Status::Success) && branch.is_proven(tool)
}
