//! Events that follow from time alone: a parallel node reaches its time limit, or a supervisor observes its child.

use super::observation;
use crate::run_state::{Branch, OpenParallel, RunState};
use glovebox_journal::event::{BranchId, Event, ParallelExpired};
use glovebox_pipeline::ir::Pipeline;
use jiff::Timestamp;
use std::sync::Arc;

/// Returns the next time at which [`due`] returns an event if nothing else happens.
pub fn next_due(state: &RunState) -> Option<Timestamp> {
    let open = open_parallel_nodes(state).filter(|(_, parallel)| !parallel.has_expired);
    open.flat_map(|(_, parallel)| [parallel.due_at, parallel.observe_at]).flatten().min()
}

/// Returns the event of a parallel node that has reached its time limit, or of a supervisor that observes its child at
/// `now`.
pub fn due(pipeline: &Pipeline, state: &RunState, now: Timestamp) -> Option<Event> {
    expired(state, now).or_else(|| observed(pipeline, state, now))
}

fn expired(state: &RunState, now: Timestamp) -> Option<Event> {
    let is_late = |parallel: &OpenParallel| !parallel.has_expired && parallel.due_at.is_some_and(|due| due <= now);
    let (branch, parallel) = open_parallel_nodes(state).find(|(_, parallel)| is_late(parallel))?;
    let (node, visit, generation) = (parallel.node.clone(), parallel.visit, state.generation());
    Some(Event::ParallelExpired(ParallelExpired { generation, branch: branch.clone(), node, visit }))
}

fn observed(pipeline: &Pipeline, state: &RunState, now: Timestamp) -> Option<Event> {
    let is_due = |parallel: &OpenParallel| !parallel.has_expired && parallel.observe_at.is_some_and(|at| at <= now);
    let (branch, parallel) = open_parallel_nodes(state).find(|(_, parallel)| is_due(parallel))?;
    observation(pipeline, state, branch, parallel, now)
}

fn open_parallel_nodes(state: &RunState) -> impl Iterator<Item = (&BranchId, &Arc<OpenParallel>)> {
    state.branches.iter().filter_map(|(id, branch): (_, &Arc<Branch>)| Some((id, branch.parallel()?)))
}
