//! What follows from an event: the engine's decisions, one at a time.
//!
//! Pure: no clock, no IO, no randomness. Whoever holds the same graph and the same journal takes the same next step, on any
//! machine, now or after a crash. A decision is the event that states it; `stage.ready` is the one that makes work. Every
//! chain of decisions ends in an attempt to wait for or in `run.finished`, since each arrival at a node costs a step.

mod mending;
mod retry;
#[cfg(test)]
mod tests;

pub use mending::UNFIXABLE;
pub use retry::finalize_attempt;

use crate::event::{
    BranchId, Event, GateUnmet, RouteCandidate, RouteTaken, RunFinished, StagePassed, StageReady, StageRetrying,
    Verdict,
};
use crate::state::RunState;
use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::route::{self, Candidate, FailureTarget};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use jiff::Timestamp;

/// What follows from `event`, which is already folded into `state`. Empty: wait for an attempt, or the run has ended.
pub fn schedule(pipeline: &Pipeline, state: &RunState, event: &Event) -> Vec<Event> {
    if state.verdict.is_some() {
        return Vec::new();
    }
    if let Some(by) = &state.canceled {
        // Nothing starts any more (seed 3); an attempt that is under way is told to stop, and its end comes here.
        let under_way = state.open.as_ref().is_some_and(|open| open.attempt_id.is_some());
        return if under_way { Vec::new() } else { vec![canceled(by)] };
    }
    if let Some(failure) = wall_failure(state, state.driven_ms).filter(|_| !waits(event)) {
        return vec![failed(failure)];
    }
    match event {
        Event::RunStarted(_) => arrive(pipeline, state, &pipeline.start),
        Event::StageFinished(finished) if finished.retrying => {
            vec![Event::StageRetrying(retry::after(pipeline, state, finished))]
        }
        Event::StageFinished(finished) => leave_stage(pipeline, state, &finished.attempt.task.node, &finished.outcome),
        Event::StageRetrying(retrying) => try_again(state, retrying),
        Event::StagePassed(passed) => route_from_control_node(pipeline, state, &passed.node),
        Event::RouteTaken(route) => arrive(pipeline, state, &route.to),
        Event::GateUnmet(unmet) => redirect_to_gate_target(state, unmet),
        Event::StageReady(_) | Event::StageStarted(_) | Event::RunResumed(_) | Event::CacheFilled(_) => Vec::new(),
        Event::RunCanceled(_) | Event::RunFinished(_) => Vec::new(),
    }
}

/// True for events after which an attempt is waited for: time alone ends nothing there, the driver cuts the attempt.
fn waits(event: &Event) -> bool {
    matches!(event, Event::StageReady(_) | Event::StageStarted(_) | Event::RunResumed(_) | Event::CacheFilled(_))
}

fn arrive(pipeline: &Pipeline, state: &RunState, id: &NodeId) -> Vec<Event> {
    let Some(node) = pipeline.node(id) else {
        return vec![failed(Failure::new(
            FailureClass::Internal,
            "route/unknown-node",
            format!("there is no node `{id}`"),
        ))];
    };
    if node.handler == Handler::Exit {
        return check_goal_gates(pipeline, state, node);
    }
    if let Some(failure) = steps_exceeded(state) {
        return vec![failed(failure)];
    }
    if let Some(failure) = mending::unfixable(pipeline, state, node) {
        return vec![failed(failure)];
    }
    let passed = |status| {
        let (generation, branch) = (state.generation(), BranchId::main());
        Event::StagePassed(StagePassed { generation, branch, node: id.clone(), visit: state.next_visit(id), status })
    };
    vec![match &node.handler {
        Handler::Start => passed(Status::Success),
        Handler::Conditional => passed(state.previous.status),
        Handler::Component(_) => Event::StageReady(StageReady { task: state.next_task(id), ordinal: 1, due_at: None }),
        Handler::Exit | Handler::Unavailable(_) => {
            let reason = format!("this version does not execute `{}`, the handler of node `{id}`", node.handler.name());
            failed(Failure::new(FailureClass::Contract, "handler/unavailable", reason))
        }
    }]
}

/// At an exit: every goal gate must be satisfied, one that was never visited is not (spec §3.4, design §9 #11).
fn check_goal_gates(pipeline: &Pipeline, state: &RunState, exit: &Node) -> Vec<Event> {
    let status = |node: &Node| state.outcomes.get(&node.id).map(|outcome| outcome.status);
    let unmet = |node: &&Node| node.goal_gate && !status(node).is_some_and(Status::satisfies_gate);
    let Some(gate) = pipeline.nodes.iter().find(unmet) else {
        let exit_node = Some(exit.id.clone());
        return vec![Event::RunFinished(RunFinished { status: Verdict::Success, exit_node, failure: None })];
    };
    if let Some(failure) = steps_exceeded(state) {
        return vec![failed(failure)];
    }
    vec![Event::GateUnmet(GateUnmet {
        generation: state.generation(),
        branch: BranchId::main(),
        exit_node: exit.id.clone(),
        gate: gate.id.clone(),
        status: status(gate),
        target: route::gate_target(pipeline, &gate.id).cloned(),
    })]
}

fn redirect_to_gate_target(state: &RunState, unmet: &GateUnmet) -> Vec<Event> {
    let Some(target) = &unmet.target else {
        let found = match unmet.status {
            Some(status) => format!("ended with `{}`", status.as_str()),
            None => "was never visited".to_owned(),
        };
        // The stage's own words stay readable in the run's reason (seed 3, failure causality).
        let cause = state.outcomes.get(&unmet.gate).and_then(|outcome| outcome.failure.as_ref());
        let cause = cause.map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
        let reason =
            format!("GoalGateUnsatisfied: goal gate `{}` {found} and no retry target is set{cause}", unmet.gate);
        return vec![failed(Failure::new(FailureClass::Deterministic, FailureCode::GATE_UNSATISFIED, reason))];
    };
    vec![Event::RouteTaken(RouteTaken {
        generation: unmet.generation,
        branch: unmet.branch.clone(),
        from: unmet.exit_node.clone(),
        to: target.clone(),
        how: "gate_target".into(),
        edge: None,
        candidates: Vec::new(),
    })]
}

fn try_again(state: &RunState, retrying: &StageRetrying) -> Vec<Event> {
    if let Some(failure) = steps_exceeded(state) {
        return vec![failed(failure)];
    }
    let due_at = Some(retrying.due_at);
    vec![Event::StageReady(StageReady { task: retrying.task.clone(), ordinal: retrying.ordinal, due_at })]
}

/// Out of a stage: a failure goes where failures go (spec §3.7, design §9 #2), anything else along an edge.
fn leave_stage(pipeline: &Pipeline, state: &RunState, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
    if !matches!(outcome.status, Status::Fail | Status::Retry) {
        return follow_edge(pipeline, state, node, outcome);
    }
    let lookup = |key: &str| state.context.text(key);
    let found = route::failure_target(pipeline, node, &answer(outcome), &lookup);
    let (to, edge) = match &found.target {
        FailureTarget::Edge(index) => (pipeline.edges[index.0].to.clone(), Some(index.0)),
        FailureTarget::Node(target) => (target.clone(), None),
        FailureTarget::Stop => return vec![failed(cause_of(node, outcome))],
    };
    vec![Event::RouteTaken(RouteTaken {
        generation: state.generation(),
        branch: BranchId::main(),
        from: node.clone(),
        to,
        how: found.how.as_str().to_owned(),
        edge,
        candidates: candidates(pipeline, found.candidates),
    })]
}

/// Out of start, or out of a diamond with the outcome it passes on (design §9 #3).
fn route_from_control_node(pipeline: &Pipeline, state: &RunState, node: &NodeId) -> Vec<Event> {
    let is_start = pipeline.start == *node;
    let nothing_yet = Outcome::of(Status::Success);
    follow_edge(pipeline, state, node, if is_start { &nothing_yet } else { &state.previous })
}

/// Along the edge that fits, or the run fails: never the first edge, never silent success (design §9 #4).
fn follow_edge(pipeline: &Pipeline, state: &RunState, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
    let lookup = |key: &str| state.context.text(key);
    let selection = route::select(pipeline, node, &answer(outcome), &lookup);
    let Some(index) = selection.edge else {
        if outcome.status == Status::Fail {
            return vec![failed(cause_of(node, outcome))];
        }
        let reason = format!("no route from node {node} for outcome {}", outcome.status.as_str());
        return vec![failed(Failure::new(FailureClass::Deterministic, "route/none", reason))];
    };
    vec![Event::RouteTaken(RouteTaken {
        generation: state.generation(),
        branch: BranchId::main(),
        from: node.clone(),
        to: pipeline.edges[index.0].to.clone(),
        how: selection.how.as_str().to_owned(),
        edge: Some(index.0),
        candidates: candidates(pipeline, selection.candidates),
    })]
}

fn answer(outcome: &Outcome) -> Answer<'_> {
    Answer {
        status: outcome.status,
        preferred_label: outcome.preferred_label.as_deref().unwrap_or(""),
        suggested_next_ids: &outcome.suggested_next_ids,
    }
}

fn candidates(pipeline: &Pipeline, found: Vec<Candidate>) -> Vec<RouteCandidate> {
    let named = |candidate: Candidate| RouteCandidate {
        edge: candidate.edge.0,
        to: pipeline.edges[candidate.edge.0].to.clone(),
        condition: candidate.condition_text,
        matched: candidate.matched,
        reason: candidate.reason,
    };
    found.into_iter().map(named).collect()
}

fn steps_exceeded(state: &RunState) -> Option<Failure> {
    let steps_max = state.run.as_ref().map_or(0, |run| run.steps_max);
    let reason = || format!("Pipeline exceeded maximum step count ({steps_max}). Use --max-steps to increase.");
    (state.steps >= steps_max).then(|| Failure::new(FailureClass::Budget, "limit/max_steps", reason()))
}

/// The end of a run that has no time left at `now`, while nothing of it is under way.
pub fn out_of_time(state: &RunState, now: Timestamp) -> Option<Event> {
    let since = state.at.map_or(0, |at| now.as_millisecond().saturating_sub(at.as_millisecond()));
    let driven_ms = state.driven_ms.saturating_add(u64::try_from(since).unwrap_or(0));
    wall_failure(state, driven_ms).map(failed)
}

fn wall_failure(state: &RunState, driven_ms: u64) -> Option<Failure> {
    let wall_max_ms = state.run.as_ref()?.wall_max_ms?;
    let reason = || format!("Pipeline exceeded maximum wall time ({wall_max_ms} ms). Use --max-wall-time to increase.");
    (driven_ms >= wall_max_ms).then(|| Failure::new(FailureClass::Budget, "limit/max_wall_time", reason()))
}

/// The stage's own failure, unchanged.
fn cause_of(node: &NodeId, outcome: &Outcome) -> Failure {
    let unspoken =
        || Failure::new(FailureClass::Deterministic, FailureCode::STAGE_FAILED, format!("stage `{node}` failed"));
    outcome.failure.clone().unwrap_or_else(unspoken)
}

fn canceled(by: &str) -> Event {
    failed(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, format!("canceled by {by}")))
}

/// The end of a run that failed.
pub(crate) fn failed(failure: Failure) -> Event {
    Event::RunFinished(RunFinished { status: Verdict::Fail, exit_node: None, failure: Some(failure) })
}
