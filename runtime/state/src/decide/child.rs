//! Decisions in a child pipeline. Its stages are the only branch of a parallel node (`glovebox_pipeline::child`).

use super::BranchDecision;
use crate::run_state::{Branch, OpenParallel, OpenTask, RunState};
use glovebox_journal::event::{BranchId, ChildObserved, Event, StageSteered, SupervisionEnd};
use glovebox_pipeline::ir::{Child, Node, NodeId, Pipeline};
use glovebox_record::{Failure, FailureClass, MessageId, Outcome, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the child pipeline that a parallel node runs.
fn child<'p>(pipeline: &'p Pipeline, parallel: &NodeId) -> Option<&'p Child> {
    pipeline.node(parallel)?.child.as_deref()
}

/// Returns the initial context of a parallel node's child: the keys that the node lists, and the child's goal. Returns
/// `None` for any other parallel node.
pub(super) fn context_of(
    pipeline: &Pipeline,
    parallel: &OpenParallel,
    branch: &Branch,
) -> Option<BTreeMap<String, Value>> {
    let child = child(pipeline, &parallel.node)?;
    let named = child.context_in.iter().filter_map(|key| Some((key.to_string(), branch.context.get(key)?.clone())));
    let goal = ("graph.goal".to_owned(), Value::String(child.goal.to_string()));
    Some(named.chain([goal]).collect())
}

/// Returns the context updates from the child that a parallel node ran.
pub(super) fn context_from(pipeline: &Pipeline, parallel: &OpenParallel, branch: &Branch) -> BTreeMap<String, Value> {
    let mut context = child(pipeline, &parallel.node).map(|child| named_out(child, branch)).unwrap_or_default();
    context.extend(end_in_context(pipeline, &parallel.node, Status::Success));
    context
}

fn named_out(child: &Child, branch: &Branch) -> BTreeMap<String, Value> {
    let named = child.context_out.iter();
    named.filter_map(|key| Some((key.to_string(), branch.context.get(key)?.clone()))).collect()
}

/// Returns the context updates for the end of a supervisor's child (spec §4.11). Empty for any other parallel node.
pub(super) fn end_in_context(pipeline: &Pipeline, parallel: &NodeId, status: Status) -> BTreeMap<String, Value> {
    if child(pipeline, parallel).is_none_or(|child| child.supervision.is_none()) {
        return BTreeMap::new();
    }
    let (status, outcome) = if status == Status::Fail { ("failed", "fail") } else { ("completed", "success") };
    [("stack.child.status", status), ("stack.child.outcome", outcome)]
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .into()
}

/// Returns the observation of a supervisor: the state of its child, its steering message, and whether it ends the
/// child.
pub(super) fn observation(
    pipeline: &Pipeline,
    state: &RunState,
    id: &BranchId,
    parallel: &OpenParallel,
    now: Timestamp,
) -> Option<Event> {
    let child = child(pipeline, &parallel.node)?;
    let supervision = child.supervision.as_ref()?;
    let running = parallel.children.iter().find_map(|child| state.branches.get(&child.id))?;
    let stage = running.node.as_ref().map(NodeId::to_string).unwrap_or_default();
    let seen = [("stack.child.status", "running".to_owned()), ("stack.child.stage", stage)];
    let mut context = named_out(child, running);
    context.extend(seen.map(|(key, value)| (key.to_owned(), Value::from(value))));
    let cycle = parallel.cycle.saturating_add(1);
    context.insert("stack.child.cycle".to_owned(), Value::from(cycle));
    let around = state.branch(id);
    let lookup = |key: &str| context.get(key).map_or_else(|| around.context.text(key), text);
    let outcome = Outcome::new(running.previous.status);
    let is_done = supervision.stop.as_ref().is_some_and(|stop| stop.holds(&super::answer(&outcome), &lookup));
    let ends = match is_done {
        true => Some(SupervisionEnd::StopCondition),
        false => (cycle >= supervision.cycles_max).then_some(SupervisionEnd::MaxCycles),
    };
    let wait = SignedDuration::try_from(supervision.interval).unwrap_or(SignedDuration::MAX);
    Some(Event::ChildObserved(Box::new(ChildObserved {
        generation: state.generation(),
        branch: id.to_owned(),
        node: parallel.node.to_owned(),
        visit: parallel.visit,
        cycle,
        steering: supervision.steering.as_ref().filter(|_| cycle == 1).map(ToString::to_string),
        observe_at: ends.is_none().then(|| now.checked_add(wait).unwrap_or(Timestamp::MAX)),
        ends,
        context,
    })))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns how a parallel node ends if its supervisor has ended the child.
pub(super) fn end_of_supervision(pipeline: &Pipeline, parallel: &OpenParallel) -> (Status, Option<Failure>) {
    match parallel.supervision_end {
        Some(SupervisionEnd::StopCondition) => (Status::Success, None),
        _ => {
            let supervision = child(pipeline, &parallel.node).and_then(|child| child.supervision.as_ref());
            let most = supervision.map_or(parallel.cycle, |supervision| supervision.cycles_max);
            let reason = format!(
                "Max cycles exceeded: `{}` polled its child pipeline {most} times (`manager.max_cycles`)",
                parallel.node
            );
            (Status::Fail, Some(Failure::new(FailureClass::Budget, "limit/max_cycles", reason)))
        }
    }
}

/// Returns the failure if this stage would exceed the child's own `max_steps`.
pub(super) fn steps_exceeded(pipeline: &Pipeline, branch: &Branch, node: &Node) -> Option<Failure> {
    let owner = node.child_of.as_ref()?;
    let most = child(pipeline, owner)?.steps_max?;
    let before = branch.origin.as_ref().map_or(0, |origin| origin.branch.completed.total());
    (branch.completed.total().saturating_sub(before) >= most).then(|| {
        let reason = format!("the child pipeline of `{owner}` exceeded its `max_steps` ({most}).");
        Failure::new(FailureClass::Budget, "limit/child_max_steps", reason)
    })
}

impl BranchDecision<'_> {
    /// Returns the time at which a supervisor first observes its child.
    pub(super) fn first_look(&self, parallel: &NodeId) -> Option<Timestamp> {
        child(self.pipeline, parallel)?.supervision.as_ref().map(|supervision| self.due(supervision.interval))
    }

    /// Gives the message of a supervisor to the agents of its child that are at work, as `glovebox steer` does. Stages that
    /// start later find it in their context.
    pub(super) fn steer_child(&self, observed: &ChildObserved) -> Vec<Event> {
        let (Some(text), Some(parallel)) = (&observed.steering, self.branch.parallel()) else { return Vec::new() };
        let message = MessageId::new(format!("{}.{}.{}", observed.node, observed.visit, observed.cycle));
        let mut inside: Vec<&BranchId> = parallel.children.iter().map(|child| &child.id).collect();
        let mut steered = Vec::new();
        while let Some(branch) = inside.pop().and_then(|id| self.state.branches.get(id)) {
            inside.extend(branch.parallel().iter().flat_map(|inner| inner.children.iter().map(|child| &child.id)));
            let asks = |open: &&OpenTask| self.pipeline.node(&open.task.node).is_some_and(Node::asks_model);
            let open = branch.open().filter(asks).filter(|open| self.state.has_room(open, &message));
            steered.extend(open.and_then(|open| Some(open.attempt(open.attempt_id.as_ref()?))).map(|attempt| {
                Event::StageSteered(Box::new(StageSteered {
                    attempt,
                    message: message.clone(),
                    by: observed.node.to_string(),
                    sent_at: self.state.at.unwrap_or_default(),
                    text: text.clone(),
                }))
            }));
        }
        steered
    }

    /// Decides at an exit of a child pipeline. If the goal gates of the child are met, the child has succeeded,
    /// whatever the status of its last stage.
    pub(super) fn leave_child(&self, exit: &Node) -> Vec<Event> {
        let Some(gate) = self.unmet_gate(exit) else {
            return match exit.checks.verification {
                Some(_) => self.verify(&self.next_task(&exit.id)),
                None => vec![self.passed(&exit.id, Status::Success)],
            };
        };
        let targets = [gate, exit].map(|node| [&node.routing.retry_target, &node.routing.fallback_retry_target]);
        let target = targets.into_iter().flatten().flatten().next();
        vec![self.gate_unmet(exit, gate, target)]
    }
}
