//! Decides at which node a resume of a failed run begins: at the first failed stage that can still be fixed.
//!
//! A failure is handled if its stage has passed since. It is also handled if an edge for the failure led to the node
//! that follows the stage after a success. A handled failure is not a place to resume from. The chain of failures comes
//! from the state, and the targets of edges are computed here.

use super::answer;
use crate::run_state::{Branch, Prospects, RunState};
use glovebox_journal::event::{NodeId, RunFinished, RunResumed};
use glovebox_pipeline::fixability::leads_to;
use glovebox_pipeline::ir::{Handler, Pipeline};
use glovebox_pipeline::route;
use glovebox_record::{Failure, FailureClass, Outcome, Status};

/// Returns the stage at which a resume of a run with this end begins. Returns `None` if the run continues where it
/// stopped, or if no failed stage has visits left.
pub fn resumes_at<'a>(pipeline: &Pipeline, state: &'a RunState, ended: &RunFinished) -> Option<&'a NodeId> {
    let branch = state.main();
    let prospects = Prospects {
        can_be_visited: &|id| {
            let most = pipeline.node(id).map(|node| node.bounds.visits_max);
            most.is_some_and(|most| most.is_none_or(|most| branch.visits_counted(id) < most))
        },
        is_handled: &|id| is_handled(pipeline, branch, id),
        should_fix: &|next, failed| leads_to(pipeline, next, failed),
    };
    state.resumes_at(ended, &prospects)
}

/// Returns the limit that a resume would reach immediately: the run failed, the resume names no node to begin at, and
/// no failed stage has visits left.
pub fn visits_used_up(pipeline: &Pipeline, state: &RunState, resumed: &RunResumed) -> Option<Failure> {
    let ended = state.verdict.as_deref().filter(|ended| resumed.from.is_none() && state.repeats_a_stage(ended))?;
    let node = pipeline.node(state.ended_at()?).filter(|_| resumes_at(pipeline, state, ended).is_none())?;
    let most = node.bounds.visits_max?;
    let reason =
        format!("node `{}` has used up `max_visits` ({most}), and no other failed stage has visits left", node.id);
    Some(Failure::new(FailureClass::Budget, "limit/max_visits", reason))
}

fn is_handled(pipeline: &Pipeline, branch: &Branch, stage: &NodeId) -> bool {
    let has_passed = || branch.status(stage).is_some_and(Status::satisfies_gate);
    let Some(visited) = branch.visited_since_failure(stage) else { return has_passed() };
    after_success(pipeline, branch, stage).is_some_and(|after| visited.contains(&after))
}

/// Returns the stage that would have followed if `stage` had passed. Diamonds are skipped.
fn after_success<'p>(pipeline: &'p Pipeline, branch: &Branch, stage: &NodeId) -> Option<&'p NodeId> {
    let (success, lookup) = (Outcome::new(Status::Success), |key: &str| branch.context.text(key));
    let follow = |from: &NodeId| {
        let edge = route::select(pipeline, from, &answer(&success), &lookup).edge?;
        pipeline.edges.get(edge.0).and_then(|edge| pipeline.node(&edge.to))
    };
    let way = std::iter::successors(follow(stage), |node| follow(&node.id)).take(pipeline.nodes.len());
    way.into_iter().find(|node| node.handler != Handler::Conditional).map(|node| &node.id)
}
