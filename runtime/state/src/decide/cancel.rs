//! The exits of the branches at the end of a run that none of them has reached: it was canceled, it is stalled, or it
//! used up a limit. Every branch exits where it is, and no branch chooses another edge
//! (decision cancel-wins-over-policies).

use super::canceled;
use super::parallel::end_of;
use crate::run_state::{Branch, Position, RunState, is_bound_of_run};
use glovebox_journal::event::{BranchExited, BranchId, Event, ExitPoint};
use glovebox_record::{Failure, FailureClass};
use std::cmp::Reverse;
use std::sync::Arc;

/// Returns the next event that ends a canceled run after `cause`: the exit of a branch, its end, or the end of the run.
/// `None` while an attempt is running: its end leads here again. A branch ends before the branch that it was split from.
pub(super) fn next(state: &RunState, by: &str, cause: &Event) -> Option<Event> {
    if state.is_under_way() {
        return None;
    }
    let reason = format!("canceled by {by}");
    let branches = in_order(state);
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

/// Returns the end of a run, after the exits of its open branches if the run failed. A resume continues the branches, so
/// unlike those of a canceled run, they do not end.
pub fn with_exits(state: &RunState, end: Event) -> Vec<Event> {
    let failure = end.run_finished().and_then(|ended| ended.failure.as_ref());
    let reason = failure.map(|failure| failure.reason.clone());
    let exits = reason.into_iter().flat_map(|reason| {
        let branches = in_order(state).into_iter();
        branches.map(move |(id, branch)| exit(state, id, branch, reason.clone()))
    });
    let mut events: Vec<Event> = exits.collect();
    events.push(end);
    events
}

/// Returns the open branches, each before the branch that it was split from.
fn in_order(state: &RunState) -> Vec<(&BranchId, &Arc<Branch>)> {
    let mut branches: Vec<(&BranchId, &Arc<Branch>)> = state.branches.iter().collect();
    branches.sort_by_key(|(id, branch)| (Reverse(depth(state, branch)), *id));
    branches
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
    let is_cut = |failure: &Failure| failure.class == FailureClass::Canceled || is_bound_of_run(failure);
    let was_cut = || branch.last_failure.as_ref().is_some_and(is_cut);
    match &branch.at {
        Position::Open(open) if open.ordinal > 1 => ExitPoint::BeforeRetry,
        Position::Open(_) => ExitPoint::BeforeStage,
        Position::Waiting(_) => ExitPoint::AtQuestion,
        Position::Parallel(_) => ExitPoint::AtJoin,
        Position::Deciding if was_cut() => ExitPoint::InStage,
        Position::Deciding => ExitPoint::BeforeEdge,
    }
}
