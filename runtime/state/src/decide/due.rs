//! What follows from time alone: forks whose time is over, and supervisors that look at their child.

use super::observation;
use crate::run_state::{Branch, Fork, RunState};
use glovebox_journal::event::{BranchId, Event, ForkExpired};
use glovebox_pipeline::ir::Pipeline;
use jiff::Timestamp;
use std::sync::Arc;

/// The next time at which [`due`] gives an event, if nothing happens until then.
pub fn next_due(state: &RunState) -> Option<Timestamp> {
    let open = forks(state).filter(|(_, fork)| !fork.has_expired);
    open.flat_map(|(_, fork)| [fork.due_at, fork.observe_at]).flatten().min()
}

/// The event of a fork whose time is over, or of a supervisor that looks at its child now.
pub fn due(pipeline: &Pipeline, state: &RunState, now: Timestamp) -> Option<Event> {
    expired(state, now).or_else(|| observed(pipeline, state, now))
}

fn expired(state: &RunState, now: Timestamp) -> Option<Event> {
    let is_late = |fork: &Fork| !fork.has_expired && fork.due_at.is_some_and(|due| due <= now);
    let (branch, fork) = forks(state).find(|(_, fork)| is_late(fork))?;
    let (node, visit, generation) = (fork.node.clone(), fork.visit, state.generation());
    Some(Event::ForkExpired(ForkExpired { generation, branch: branch.clone(), node, visit }))
}

fn observed(pipeline: &Pipeline, state: &RunState, now: Timestamp) -> Option<Event> {
    let is_due = |fork: &Fork| !fork.has_expired && fork.observe_at.is_some_and(|at| at <= now);
    let (branch, fork) = forks(state).find(|(_, fork)| is_due(fork))?;
    observation(pipeline, state, (branch, fork), now)
}

fn forks(state: &RunState) -> impl Iterator<Item = (&BranchId, &Arc<Fork>)> {
    state.branches.iter().filter_map(|(id, branch): (_, &Arc<Branch>)| Some((id, branch.fork()?)))
}
