//! What follows from an event: the engine's decisions, one at a time.
//!
//! Pure: no clock, no IO, no randomness. The same graph and the same journal give the same next step, on any machine, now or after
//! a crash. A decision is the event that states it; `stage.ready` is the one that makes work. Every chain of decisions ends in an
//! attempt to wait for or in `run.finished`, since each arrival at a node costs a step.

mod branch_name;
mod child;
mod due;
mod failure_source;
mod merge;
mod no_change;
mod parallel;
mod question;
mod recovery;
mod restart;
mod resume;
mod retry;
#[cfg(test)]
mod tests;
mod verification;
mod verify_limits;

use child::observation;
pub use due::{due, next_due};
pub use failure_source::UNFIXABLE;
pub use parallel::{next_step, parallel_step};
pub use resume::{resumes_at, visits_used_up};
pub use retry::finalize_attempt;

use crate::run_state::{Branch, RunState, is_of_budget};
use glovebox_journal::event::{
    BranchId, Event, GateUnmet, RouteCandidate, RouteTaken, RunFinished, RunResumed, RunStarted, StageFinished,
    StagePassed, StageReady, StageRetrying, Task, Verdict, Work,
};
use glovebox_pipeline::ir::{GateRequires, Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::route::{self, Candidate, FailureTarget};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use jiff::Timestamp;
use std::sync::Arc;

/// What follows from `cause`, which is already folded into `state`. Empty: wait for an attempt, or the run has ended.
pub fn decide(pipeline: &Pipeline, state: &RunState, cause: &Event) -> Vec<Event> {
    if state.verdict.is_some() {
        return Vec::new();
    }
    if let Some(by) = &state.canceled {
        // Nothing starts any more (decision cancel-wins-over-policies). An attempt that is under way is asked to stop, and its end leads
        // here.
        return if state.is_under_way() { Vec::new() } else { vec![canceled(by)] };
    }
    if let Some(failure) = spent(state).filter(|_| !waits(cause)) {
        return end_when_idle(state, failure);
    }
    let main = BranchId::main();
    let id = cause.branch().unwrap_or(&main);
    BranchDecision { pipeline, state, id, branch: state.branch(id) }.follow(cause)
}

/// True for events after which an attempt is waited for: time alone ends nothing there, the driver cuts the attempt.
fn waits(event: &Event) -> bool {
    matches!(event, Event::StageReady(_) | Event::StageStarted(_) | Event::RunResumed(_) | Event::CacheFilled(_))
        || matches!(event, Event::QuestionAsked(_) | Event::RunPaused(_) | Event::StageSteered(_))
}

/// The next step of one branch.
struct BranchDecision<'a> {
    pipeline: &'a Pipeline,
    state: &'a RunState,
    id: &'a BranchId,
    branch: &'a Branch,
}

impl BranchDecision<'_> {
    fn follow(&self, cause: &Event) -> Vec<Event> {
        match cause {
            Event::RunStarted(started) => self.arrive(started.from.as_ref().unwrap_or(&self.pipeline.start)),
            Event::RunResumed(resumed) => resumed.from.as_ref().map_or_else(Vec::new, |from| self.arrive(from)),
            _ if self.branch.canceled.is_some() => self.acknowledge_cancel(),
            Event::StageFinished(finished) if finished.follow_up.retrying => {
                vec![Event::StageRetrying(retry::after(self.pipeline, self.state, finished))]
            }
            Event::StageFinished(finished) if finished.files.recoverable.is_some() => self.ask_recovery(finished),
            // The bound is higher now: a branch goes on at the stage that it stopped.
            Event::StageFinished(finished) if finished.outcome.failure.as_ref().is_some_and(is_of_budget) => {
                self.arrive(&finished.attempt.task.node)
            }
            Event::StageFinished(finished) if finished.follow_up.verifying => self.verify(&finished.attempt.task),
            Event::StageFinished(finished) => self.finish_stage(finished),
            Event::StageRetrying(retrying) => self.try_again(retrying),
            Event::StagePassed(passed) => self.leave_control_node(&passed.node),
            Event::RouteTaken(route) => self.follow_route(route),
            Event::LoopRestarted(restarted) => self.arrive(&restarted.to),
            Event::GateUnmet(unmet) => self.redirect_to_gate_target(unmet),
            Event::StageReady(_) | Event::StageStarted(_) | Event::CacheFilled(_) => Vec::new(),
            Event::StageSteered(_) => Vec::new(),
            Event::BranchStarted(started) => self.arrive(&started.to),
            Event::ParallelJoined(joined) => self.leave_parallel(joined),
            Event::FanInFinished(finished) if finished.verifying => self.verify(&finished.task()),
            Event::FanInFinished(finished) => {
                let outcome = Outcome::ended(finished.status, finished.failure.as_ref());
                self.leave_stage(&finished.node, &outcome)
            }
            // What follows there depends on other branches: see `next_step`.
            Event::ParallelStarted(_) | Event::ParallelExpired(_) | Event::ChildObserved(_) => Vec::new(),
            Event::BranchCanceled(_) | Event::BranchFinished(_) => Vec::new(),
            Event::QuestionAnswered(answered) if answered.recovery => self.decide_recovery(answered),
            Event::QuestionAnswered(answered) => self.leave_gate(answered),
            Event::RecoveryDecided(decided) => self.leave_decided(decided),
            Event::QuestionAsked(_) | Event::RunPaused(_) => Vec::new(),
            Event::RunCanceled(_) | Event::RunFinished(_) => Vec::new(),
        }
    }

    fn finish_stage(&self, finished: &StageFinished) -> Vec<Event> {
        let id = &finished.attempt.task.node;
        match self.pipeline.node(id) {
            Some(node) if finished.attempt.task.work == Work::Verify => self.leave_verified(node, &finished.outcome),
            Some(node) if node.handler.is_fan_in() => self.judged(node, finished),
            _ => self.leave_stage(id, &finished.outcome),
        }
    }

    fn arrive(&self, id: &NodeId) -> Vec<Event> {
        let Some(node) = self.pipeline.node(id) else {
            let reason = format!("there is no node `{id}`");
            return vec![failed(Failure::new(FailureClass::Internal, "route/unknown-node", reason))];
        };
        if let Some(ended) = self.end_at(node) {
            return ended;
        }
        if node.handler == Handler::Exit {
            return self.check_goal_gates(node);
        }
        if let Some(failure) = child::steps_exceeded(self.pipeline, self.branch, node) {
            return self.fail(failure);
        }
        if let Some(failure) = self.steps_exceeded() {
            return end_when_idle(self.state, failure);
        }
        let unfixable = || failure_source::unfixable(self.pipeline, self.state, self.branch, node);
        let bounds = self.visits_exceeded(node).or_else(|| self.effort_exceeded(node));
        if let Some(failure) = bounds.or_else(|| self.verified_too_often(node)).or_else(unfixable) {
            return self.fail(failure);
        }
        vec![match &node.handler {
            Handler::Start => self.passed(id, Status::Success),
            Handler::Conditional if self.is_to_verify(node) => return self.verify(&self.next_task(id)),
            Handler::Conditional => self.passed(id, self.branch.previous.status),
            Handler::ChildExit => return self.leave_child(node),
            Handler::Component(_) => {
                Event::StageReady(StageReady { task: self.next_task(id), ordinal: 1, due_at: self.cooled_at(id) })
            }
            Handler::Parallel => return self.begin_parallel(id),
            Handler::FanIn(_) => return self.fan_in(node),
            Handler::Human => self.ask(node),
            Handler::Exit | Handler::Unavailable(_) => {
                let handler = node.handler.name();
                let reason = format!("this version does not execute `{handler}`, the handler of node `{id}`");
                failed(Failure::new(FailureClass::Contract, "handler/unavailable", reason))
            }
        }]
    }

    fn steps_exceeded(&self) -> Option<Failure> {
        let failure = steps_exceeded(self.state)?;
        let cause = self.repeated_failure().map(|cause| format!(" {cause}")).unwrap_or_default();
        Some(Failure { reason: format!("{}{cause}", failure.reason), ..failure })
    }

    /// A node's own `max_visits`, or that of the graph.
    fn visits_exceeded(&self, node: &Node) -> Option<Failure> {
        let most = node.bounds.visits_max.filter(|most| self.branch.visits_counted(&node.id) >= *most)?;
        let cause = self.repeated_failure().map(|cause| format!(" {cause}")).unwrap_or_default();
        let reason = format!("node `{}` exceeded `max_visits` ({most}).{cause}", node.id);
        Some(Failure::new(FailureClass::Budget, "limit/max_visits", reason))
    }

    /// A node's own `max_steps` or `max_wall_time`, over all branches and generations.
    fn effort_exceeded(&self, node: &Node) -> Option<Failure> {
        let failure = retry::steps_of_node_exceeded(self.state, node)
            .or_else(|| time_of_node_exceeded(self.state, node, self.state.at?))?;
        let cause = self.repeated_failure().map(|cause| format!(". {cause}")).unwrap_or_default();
        Some(Failure { reason: format!("{}{cause}", failure.reason), ..failure })
    }

    /// The failure behind a loop that does not end: that of the stage which failed most often in a row in the same way.
    fn repeated_failure(&self) -> Option<String> {
        let (node, history) = self.branch.nodes.iter().max_by_key(|(_, history)| history.alike)?;
        let failure = history.outcome.as_ref()?.failure.as_ref()?;
        match history.alike {
            0 => None,
            1 => Some(format!("The last failure of `{node}`: {}", failure.reason)),
            times => Some(format!("`{node}` failed {times} times in a row in the same way: {}", failure.reason)),
        }
    }

    /// The end of a loop in which a stage fails again and again in the same way (decision same-failure-ends-a-loop). Its own reason stays
    /// readable.
    fn cycle(&self, node: &NodeId, outcome: &Outcome) -> Option<Failure> {
        let (same, limit) = (self.branch.nodes.get(node)?.same, self.pipeline.signature_limit);
        let reason = || {
            let cause = cause_of(node, outcome).reason;
            format!(
                "node `{node}` failed {same} times in the same way, `loop_restart_signature_limit` is {limit}: {cause}"
            )
        };
        (same >= limit).then(|| Failure::new(FailureClass::Deterministic, FailureCode::FAILURE_CYCLE, reason()))
    }

    fn passed(&self, node: &NodeId, status: Status) -> Event {
        let Task { generation, branch, node, visit, .. } = self.next_task(node);
        Event::StagePassed(StagePassed { generation, branch, node, visit, status })
    }

    /// Generation and branch of what is said here.
    fn place(&self) -> (u32, BranchId) {
        (self.state.generation(), self.id.clone())
    }

    /// The task that an arrival at a working node begins.
    fn next_task(&self, node: &NodeId) -> Task {
        Task::for_handler(self.state.generation(), self.id, node, self.branch.next_visit(node))
    }

    /// At an exit: every goal gate must be satisfied, one that was never visited is not (spec §3.4, decision unvisited-gates-are-unmet).
    fn check_goal_gates(&self, exit: &Node) -> Vec<Event> {
        let Some(gate) = self.unmet_gate(exit) else {
            return match self.without_checks() {
                Some(stage) => vec![self.gate_unmet(exit, stage, None)],
                None if exit.checks.verification.is_some() => self.verify(&self.next_task(&exit.id)),
                None => vec![succeeded(exit)],
            };
        };
        if let Some(failure) = self.steps_exceeded() {
            return vec![failed(failure)];
        }
        let target = route::gate_target(self.pipeline, &gate.id);
        vec![self.gate_unmet(exit, gate, target)]
    }

    /// The first goal gate of an exit's own file that is not satisfied: a child's are checked at the child's exits.
    fn unmet_gate(&self, exit: &Node) -> Option<&Node> {
        let is_met = |node: &Node| self.satisfies_gate(&node.id) && !self.lacks_receipt(node);
        let unmet = |node: &&Node| node.checks.goal_gate && node.child_of == exit.child_of && !is_met(node);
        self.pipeline.nodes.iter().find(unmet)
    }

    /// The first stage whose last visit dropped checks of the operator: the run proves less than its operator asks for.
    fn without_checks(&self) -> Option<&Node> {
        self.pipeline.nodes.iter().find(|node| !self.dropped_checks(&node.id).is_empty())
    }

    fn dropped_checks(&self, node: &NodeId) -> &[String] {
        self.branch.nodes.get(node).map(|history| &*history.dropped).unwrap_or_default()
    }

    fn satisfies_gate(&self, gate: &NodeId) -> bool {
        self.branch.status(gate).is_some_and(Status::satisfies_gate)
    }

    fn lacks_receipt(&self, gate: &Node) -> bool {
        gate.checks.gate_requires == GateRequires::Receipt && !self.branch.is_proven(&gate.id)
    }

    fn gate_unmet(&self, exit: &Node, gate: &Node, target: Option<&NodeId>) -> Event {
        let (generation, branch) = self.place();
        Event::GateUnmet(GateUnmet {
            generation,
            branch,
            exit_node: exit.id.clone(),
            gate: gate.id.clone(),
            status: self.branch.status(&gate.id),
            lacks_receipt: self.satisfies_gate(&gate.id) && self.lacks_receipt(gate),
            dropped_checks: self.dropped_checks(&gate.id).to_vec(),
            target: target.cloned(),
        })
    }

    fn redirect_to_gate_target(&self, unmet: &GateUnmet) -> Vec<Event> {
        let Some(target) = &unmet.target else {
            if !unmet.dropped_checks.is_empty() {
                let dropped = unmet.dropped_checks.join("`, `");
                let reason = format!("`{}` dropped checks of the verify contract: `{dropped}`", unmet.gate);
                return self.fail(Failure::new(FailureClass::Deterministic, FailureCode::CHECK_DROPPED, reason));
            }
            let found = match unmet.status {
                Some(status) if unmet.lacks_receipt => {
                    format!("ended with `{}` but without a receipt (`gate_requires=receipt`)", status.as_str())
                }
                Some(status) => format!("ended with `{}`", status.as_str()),
                None if self.branch.was_skipped(&unmet.gate) => {
                    "ended with `skipped`, which proves nothing,".to_owned()
                }
                None if self.branch.visits_counted(&unmet.gate) > 0 => {
                    "was visited only in a branch whose changes were not taken".to_owned()
                }
                None => "was never visited".to_owned(),
            };
            // The stage's own words stay readable in the run's reason (decision reasons-stay-unchanged).
            let cause = self.branch.outcome(&unmet.gate).and_then(|outcome| outcome.failure.as_ref());
            let cause = cause.map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
            let reason =
                format!("GoalGateUnsatisfied: goal gate `{}` {found} and no retry target is set{cause}", unmet.gate);
            return self.fail(Failure::new(FailureClass::Deterministic, FailureCode::GATE_UNSATISFIED, reason));
        };
        self.route(&unmet.exit_node, target, Choice { how: "gate_target", edge: None, candidates: Vec::new() })
    }

    fn try_again(&self, retrying: &StageRetrying) -> Vec<Event> {
        if let Some(failure) = self.steps_exceeded() {
            return end_when_idle(self.state, failure);
        }
        let due_at = Some(retrying.due_at);
        vec![Event::StageReady(StageReady { task: retrying.task.clone(), ordinal: retrying.ordinal, due_at })]
    }

    /// Out of a stage: a failure goes where failures go (spec §3.7, decision failure-routes), anything else along an edge.
    fn leave_stage(&self, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
        if !matches!(outcome.status, Status::Fail | Status::Retry) {
            return self.follow_edge(node, outcome);
        }
        let lookup = |key: &str| self.branch.context.text(key);
        let found = route::failure_target(self.pipeline, node, &answer(outcome), &lookup);
        let (to, edge) = match &found.target {
            FailureTarget::Edge(index) => (&self.pipeline.edges[index.0].to, Some(index.0)),
            FailureTarget::Node(target) => (target, None),
            FailureTarget::Stop => {
                let repeated = self.not_verified_again(node, None);
                return self.fail(repeated.unwrap_or_else(|| cause_of(node, outcome)));
            }
        };
        if let Some(failure) = self.not_verified_again(node, Some(to)) {
            return self.fail(failure);
        }
        if let Some(failure) = self.cycle(node, outcome) {
            return self.fail(failure);
        }
        self.route(node, to, Choice { how: found.how.as_str(), edge, candidates: found.candidates })
    }

    /// Out of start, or out of a diamond with the outcome it passes on (decision diamonds-pass-outcomes-through).
    fn leave_control_node(&self, node: &NodeId) -> Vec<Event> {
        let is_child_exit = || self.pipeline.node(node).is_some_and(|node| node.handler == Handler::ChildExit);
        match self.pipeline.start == *node || is_child_exit() {
            true => self.follow_edge(node, &Outcome::new(Status::Success)),
            false => self.follow_edge(node, &self.branch.previous),
        }
    }

    /// Along the edge that fits, or the run fails: never the first edge, never silent success (decision no-route-fails-the-run).
    fn follow_edge(&self, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
        let lookup = |key: &str| self.branch.context.text(key);
        let selection = route::select(self.pipeline, node, &answer(outcome), &lookup);
        let Some(index) = selection.edge else {
            if matches!(outcome.status, Status::Fail | Status::Retry) {
                return self.fail(cause_of(node, outcome));
            }
            let reason = format!("no route from node {node} for outcome {}", outcome.status.as_str());
            // What was left undone is the reason for this outcome.
            let is_told = outcome.status == Status::PartialSuccess && !outcome.notes.is_empty();
            let reason = if is_told { format!("{reason}: {}", outcome.notes) } else { reason };
            return self.fail(Failure::new(FailureClass::Deterministic, "route/none", reason));
        };
        let choice = Choice { how: selection.how.as_str(), edge: Some(index.0), candidates: selection.candidates };
        self.route(node, &self.pipeline.edges[index.0].to, choice)
    }

    fn route(&self, from: &NodeId, to: &NodeId, choice: Choice) -> Vec<Event> {
        let named = |candidate: Candidate| RouteCandidate {
            edge: candidate.edge.0,
            to: self.pipeline.edges[candidate.edge.0].to.clone(),
            condition: candidate.condition_text,
            matched: candidate.matched,
            reason: candidate.reason,
        };
        let (generation, branch) = self.place();
        vec![Event::RouteTaken(RouteTaken {
            generation,
            branch,
            from: from.clone(),
            to: to.clone(),
            how: choice.how.to_owned(),
            edge: choice.edge,
            candidates: choice.candidates.into_iter().map(named).collect(),
        })]
    }
}

/// How the next node was chosen.
struct Choice {
    how: &'static str,
    edge: Option<usize>,
    candidates: Vec<Candidate>,
}

fn answer(outcome: &Outcome) -> Answer<'_> {
    Answer {
        status: outcome.status,
        preferred_label: outcome.preferred_label.as_deref().unwrap_or(""),
        suggested_next_ids: &outcome.suggested_next_ids,
    }
}

/// The end of a run that met one of its bounds. Attempts of other branches come to their end first; with the last of them the run ends.
fn end_when_idle(state: &RunState, failure: Failure) -> Vec<Event> {
    if state.is_under_way() { Vec::new() } else { vec![failed(failure)] }
}

/// The bound that the run has met, if any.
fn out_of_bounds(state: &RunState) -> Option<Failure> {
    steps_exceeded(state).or_else(|| spent(state))
}

/// The bound on time, tokens or money that the run has met.
fn spent(state: &RunState) -> Option<Failure> {
    wall_failure(state, state.driven_ms).or_else(|| state.overspent.clone())
}

fn steps_exceeded(state: &RunState) -> Option<Failure> {
    let steps_max = state.run.as_ref().map_or(0, |run| run.bounds.steps_max);
    let reason = || format!("Pipeline exceeded maximum step count ({steps_max}). Use --max-steps to increase.");
    (state.steps >= steps_max).then(|| Failure::new(FailureClass::Budget, FailureCode::RUN_STEPS, reason()))
}

/// The limit that the run has used up, if a resume under these terms would end it at once.
pub fn limit_reached(state: &RunState, resumed: &RunResumed) -> Option<Failure> {
    let run = state.run.as_deref()?.clone().resumed(resumed);
    let under_terms = RunState { run: Some(Arc::new(run)), ..state.clone() };
    let overspent = || overspent_again(state, under_terms.run.as_deref()?);
    steps_exceeded(&under_terms).or_else(|| wall_failure(&under_terms, under_terms.driven_ms)).or_else(overspent)
}

/// The bound on spending that ended a run, unless the terms raise it: the call that met it would meet it again.
fn overspent_again(state: &RunState, terms: &RunStarted) -> Option<Failure> {
    let (before, now) = (state.run.as_ref()?.bounds.spend_max, terms.bounds.spend_max);
    let is_raised = |failure: &Failure| match failure.code == FailureCode::RUN_TOKENS {
        true => now.tokens_max > before.tokens_max,
        false => now.cost_max > before.cost_max,
    };
    let failure = state.verdict.as_ref()?.failure.as_ref();
    failure.filter(|failure| is_of_budget(failure) && !is_raised(failure)).cloned()
}

/// The end of a run that has no time left at `now`, while nothing of it is under way.
pub fn out_of_time(state: &RunState, now: Timestamp) -> Option<Event> {
    let since = state.at.map_or(0, |at| now.as_millisecond().saturating_sub(at.as_millisecond()));
    let driven_ms = state.driven_ms.saturating_add(u64::try_from(since).unwrap_or(0));
    wall_failure(state, driven_ms).map(failed)
}

fn wall_failure(state: &RunState, driven_ms: u64) -> Option<Failure> {
    let wall_max_ms = state.run.as_ref()?.bounds.wall_max_ms?;
    let reason = || format!("Pipeline exceeded maximum wall time ({wall_max_ms} ms). Use --max-wall-time to increase.");
    (driven_ms >= wall_max_ms).then(|| Failure::new(FailureClass::Budget, FailureCode::RUN_WALL_TIME, reason()))
}

/// The failure of a node that has used up its `max_wall_time` at a moment.
pub fn time_of_node_exceeded(state: &RunState, node: &Node, now: Timestamp) -> Option<Failure> {
    let most = node.bounds.wall_max?;
    let reason = || format!("node `{}` exceeded `max_wall_time` ({} ms)", node.id, most.as_millis());
    let is_over = state.efforts.of(&node.id).time(now) >= most;
    is_over.then(|| Failure::new(FailureClass::Budget, FailureCode::NODE_WALL_TIME, reason()))
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

/// The end of a run that succeeded at an exit.
fn succeeded(exit: &Node) -> Event {
    let exit_node = Some(exit.id.clone());
    Event::RunFinished(RunFinished { status: Verdict::Success, exit_node, failure: None, resumes_at: None })
}

/// The end of a run that failed.
pub fn failed(failure: Failure) -> Event {
    Event::RunFinished(RunFinished { status: Verdict::Fail, exit_node: None, failure: Some(failure), resumes_at: None })
}
