//! The end of a canceled run: every branch exits where it is, and no branch chooses another edge
//! (decision cancel-wins-over-policies).

use super::canceled;
use super::parallel::end_of;
use crate::run_state::{Branch, Position, RunState};
use glovebox_journal::event::{BranchExited, BranchId, Event, ExitPoint};
use glovebox_record::FailureClass;
use std::cmp::Reverse;
use std::sync::Arc;

/// Returns the next event that ends a canceled run after `cause`: the exit of a branch, its end, or the end of the run.
/// `None` while an attempt is running: its end leads here again. A branch ends before the branch that it was split from.
pub(super) fn next(state: &RunState, by: &str, cause: &Event) -> Option<Event> {
    if state.is_under_way() {
        return None;
    }
    let reason = format!("canceled by {by}");
    let mut branches: Vec<(&BranchId, &Arc<Branch>)> = state.branches.iter().collect();
    branches.sort_by_key(|(id, branch)| (Reverse(depth(state, branch)), *id));
    let exited = match cause {
        Event::BranchExited(exited) => branches.iter().position(|(id, _)| **id == exited.branch),
        _ => None,
    };
    if let Some((id, branch)) = exited.map(|index| branches[index]).filter(|(_, branch)| branch.origin.is_some()) {
        let canceled = Branch { canceled: Some(reason.as_str().into()), ..Branch::clone(branch) };
        return Some(end_of(state, id, &canceled, None));
    }
    Some(match branches.get(exited.map_or(0, |index| index + 1)) {
        Some((id, branch)) => exit(state, id, branch, reason),
        None => canceled(by),
    })
}

fn exit(state: &RunState, id: &BranchId, branch: &Branch, reason: String) -> Event {
    Event::BranchExited(Box::new(BranchExited {
        generation: state.generation(),
        branch: id.clone(),
        node: branch.node.clone(),
        reason,
        point: point(branch),
    }))
}

/// Returns how many parallel nodes a branch is inside.
fn depth(state: &RunState, branch: &Branch) -> usize {
    let parent = |branch: &&Branch| branch.origin.as_ref().map(|origin| &**state.branch(&origin.parent));
    std::iter::successors(Some(branch), parent).count()
}

fn point(branch: &Branch) -> ExitPoint {
    let was_cut = || branch.last_failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Canceled);
    match &branch.at {
        Position::Open(open) if open.ordinal > 1 => ExitPoint::BeforeRetry,
        Position::Open(_) => ExitPoint::BeforeStage,
        Position::Waiting(_) => ExitPoint::AtQuestion,
        Position::Parallel(_) => ExitPoint::AtJoin,
        Position::Deciding if was_cut() => ExitPoint::InStage,
        Position::Deciding => ExitPoint::BeforeEdge,
    }
}
