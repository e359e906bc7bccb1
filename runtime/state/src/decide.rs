//! The decisions of the engine: which events follow from an event.
//!
//! The functions are pure: no clock, no IO, no randomness. The same graph and the same journal give the same next step,
//! on any machine, now or after a crash. Each decision is an event, and `stage.ready` is the event that creates work.
//! Every chain of decisions ends at an event after which the run waits, or with `run.finished`, because each arrival at
//! a node costs a step.

mod branch_name;
mod cancel;
mod child;
mod cycle;
mod due;
mod failure_source;
mod infra;
mod lost_sandbox;
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

pub use cancel::with_exits;
use child::observation;
use cycle::Refusal;
pub use due::{due, next_due};
pub use failure_source::UNFIXABLE;
pub use infra::is_of_machine;
pub use parallel::{next_step, parallel_step};
pub use resume::{resumes_at, visits_used_up};
pub use retry::finalize_attempt;

use crate::run_state::{Branch, RunState, is_of_budget};
use glovebox_journal::event::{
    Attempt, BranchId, Event, GateUnmet, RouteCandidate, RouteTaken, RunFinished, RunResumed, RunStarted,
    StageFinished, StageHeld, StagePassed, StageReady, StageRetrying, Task, Verdict, Work,
};
use glovebox_pipeline::ir::{GateRequires, Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::route::{self, Candidate, FailureTarget};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use jiff::Timestamp;
use std::sync::Arc;

/// Returns the events that follow from `cause`, which is already folded into `state`. An empty result means that the
/// branch waits, for example for an attempt or an answer, or that the run has ended.
pub fn decide(pipeline: &Pipeline, state: &RunState, cause: &Event) -> Vec<Event> {
    if state.verdict.is_some() {
        return Vec::new();
    }
    if let Some(by) = &state.canceled {
        // Nothing new starts (decision cancel-wins-over-policies). Running attempts are asked to stop, and their ends
        // lead here.
        return cancel::next(state, by, cause).into_iter().collect();
    }
    // The end of the run was appended together with the exits.
    if matches!(cause, Event::BranchExited(_)) {
        return Vec::new();
    }
    if let Some(failure) = &state.stalled {
        return end_when_idle(state, failure.clone());
    }
    if let Some(failure) = spent(state).filter(|_| !waits(cause)) {
        return end_when_idle(state, failure);
    }
    let main = BranchId::main();
    let id = cause.branch().unwrap_or(&main);
    BranchDecision { pipeline, state, id, branch: state.branch(id) }.follow(cause)
}

/// Returns the end of a branch whose next edge is refused. On the main branch, that is the end of the run.
pub fn refuse_edge(pipeline: &Pipeline, state: &RunState, id: &BranchId, failure: Failure) -> Vec<Event> {
    BranchDecision { pipeline, state, id, branch: state.branch(id) }.fail(failure)
}

/// Returns true for events after which the run waits, for example for an attempt. At such an event, an expired time
/// limit does not end the run: the driver cancels the attempt.
fn waits(event: &Event) -> bool {
    matches!(event, Event::StageReady(_) | Event::StageStarted(_) | Event::RunResumed(_) | Event::CacheFilled(_))
        || matches!(event, Event::RunTakenOver(_))
        || matches!(event, Event::QuestionAsked(_) | Event::RunPaused(_) | Event::StageSteered(_))
        || matches!(event, Event::StatusIngested(_))
}

/// Decides the next step of one branch.
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
            // The limit was raised: the branch continues at the stage that the limit stopped.
            Event::StageFinished(finished) if finished.outcome.failure.as_ref().is_some_and(is_of_budget) => {
                self.arrive(&finished.attempt.task.node)
            }
            Event::StageFinished(finished) if finished.follow_up.verifying => self.verify(&finished.attempt.task),
            Event::StageFinished(finished) => self.finish_stage(finished),
            Event::StageHeld(held) => self.wait_for_quota(held),
            Event::StageRetrying(retrying) => self.try_again(retrying),
            Event::StagePassed(passed) => self.leave_control_node(&passed.node),
            Event::RouteTaken(route) => self.follow_route(route),
            Event::LoopRestarted(restarted) => self.arrive(&restarted.to),
            Event::GateUnmet(unmet) => self.redirect_to_gate_target(unmet),
            Event::StageReady(_) | Event::StageStarted(_) | Event::CacheFilled(_) => Vec::new(),
            Event::RunTakenOver(_) => Vec::new(),
            Event::StageSteered(_) | Event::StatusIngested(_) => Vec::new(),
            Event::BranchStarted(started) => self.arrive(&started.to),
            Event::ParallelJoined(joined) => self.leave_parallel(joined),
            Event::FanInFinished(finished) if finished.verifying => self.verify(&finished.task()),
            Event::FanInFinished(finished) => {
                let outcome = Outcome::ended(finished.status, finished.failure.as_ref());
                self.leave_stage(&finished.node, &outcome)
            }
            // The next step depends on other branches: see `next_step`.
            Event::ParallelStarted(_) | Event::ParallelExpired(_) => Vec::new(),
            Event::ChildObserved(observed) => self.steer_child(observed),
            Event::BranchCanceled(_) | Event::BranchFinished(_) => Vec::new(),
            Event::QuestionAnswered(answered) if answered.recovery => self.decide_recovery(answered),
            Event::QuestionAnswered(answered) => self.leave_gate(answered),
            Event::RecoveryDecided(decided) => self.leave_decided(decided),
            Event::QuestionAsked(_) | Event::RunPaused(_) => Vec::new(),
            Event::RunCanceled(_) | Event::RunFinished(_) => Vec::new(),
            // The end of a stalled run follows from the state.
            Event::RunStalled(_) => Vec::new(),
            Event::CycleBroken(broken) => self.end_cycle(broken),
            Event::BranchExited(_) => Vec::new(),
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
        let unfixable = || failure_source::unfixable(self.pipeline, self.state, self.branch, node).map(Refusal::from);
        let bounds = self.visits_exceeded(node).or_else(|| self.effort_exceeded(node)).map(Refusal::from);
        if let Some(refusal) = bounds.or_else(|| self.verified_too_often(node)).or_else(unfixable) {
            return self.refuse(id, refusal);
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

    /// Returns the failure if the node has used up its `max_visits`. The value of the graph is the default.
    fn visits_exceeded(&self, node: &Node) -> Option<Failure> {
        let most = node.bounds.visits_max.filter(|most| self.branch.visits_counted(&node.id) >= *most)?;
        let cause = self.repeated_failure().map(|cause| format!(" {cause}")).unwrap_or_default();
        let reason = format!("node `{}` exceeded `max_visits` ({most}).{cause}", node.id);
        Some(Failure::new(FailureClass::Budget, "limit/max_visits", reason))
    }

    /// Returns the failure if the node has used up its own `max_steps` or `max_wall_time`, counted over all branches
    /// and generations.
    fn effort_exceeded(&self, node: &Node) -> Option<Failure> {
        let failure = retry::steps_of_node_exceeded(self.state, node)
            .or_else(|| time_of_node_exceeded(self.state, node, self.state.at?))?;
        let cause = self.repeated_failure().map(|cause| format!(". {cause}")).unwrap_or_default();
        Some(Failure { reason: format!("{}{cause}", failure.reason), ..failure })
    }

    /// Describes the failure that keeps a loop going: the failure of the stage with the most consecutive failures of
    /// the same kind.
    fn repeated_failure(&self) -> Option<String> {
        let failing =
            self.branch.nodes.iter().filter_map(|(node, history)| Some((node, history, history.last_failure()?)));
        let (node, history, failure) = failing.max_by_key(|(_, history, _)| history.repetition.in_a_row)?;
        let repeated = history.repetition.describe_row(node);
        let failed = repeated.unwrap_or_else(|| format!("The last failure of `{node}`"));
        Some(format!("{failed}: {}", failure.reason))
    }

    fn passed(&self, node: &NodeId, status: Status) -> Event {
        let Task { generation, branch, node, visit, .. } = self.next_task(node);
        Event::StagePassed(StagePassed { generation, branch, node, visit, status })
    }

    /// Returns the generation and the branch for the events of this decision.
    fn place(&self) -> (u32, BranchId) {
        (self.state.generation(), self.id.clone())
    }

    /// Returns the task for an arrival at a stage.
    fn next_task(&self, node: &NodeId) -> Task {
        Task::for_handler(self.state.generation(), self.id, node, self.branch.next_visit(node))
    }

    /// Decides at an exit: every goal gate must be satisfied, and a gate that was never visited is not satisfied
    /// (spec §3.4, decision unvisited-gates-are-unmet).
    fn check_goal_gates(&self, exit: &Node) -> Vec<Event> {
        let Some(gate) = self.unmet_gate(exit) else {
            return match self.without_checks() {
                Some(stage) => vec![self.gate_unmet(exit, stage, None)],
                None if exit.checks.verification.is_some() => self.verify(&self.next_task(&exit.id)),
                None => vec![succeeded(exit)],
            };
        };
        if let Some(failure) = self.steps_exceeded() {
            return end_when_idle(self.state, failure);
        }
        let target = route::gate_target(self.pipeline, &gate.id);
        vec![self.gate_unmet(exit, gate, target)]
    }

    /// Returns the first unsatisfied goal gate in the pipeline file of the exit. The goal gates of a child pipeline are
    /// checked at the exits of the child.
    fn unmet_gate(&self, exit: &Node) -> Option<&Node> {
        let is_met = |node: &Node| self.satisfies_gate(&node.id) && !self.lacks_receipt(node);
        let unmet = |node: &&Node| node.checks.goal_gate && node.child_of == exit.child_of && !is_met(node);
        self.pipeline.nodes.iter().find(unmet)
    }

    /// Returns the first stage whose last visit skipped commands of the verify contract. A run with such a stage proves
    /// less than the operator asks for.
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
                let reason = format!("`{}` skipped commands of the verify contract: `{dropped}`", unmet.gate);
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
            // The run's reason contains the stage's own reason unchanged (decision reasons-stay-unchanged).
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

    /// Makes an attempt ready again at the time at which its provider's quota resumes. The queue is the timer, so that a
    /// killed and resumed run waits for the same time.
    fn wait_for_quota(&self, held: &StageHeld) -> Vec<Event> {
        let Attempt { task, ordinal, .. } = held.attempt.clone();
        vec![Event::StageReady(StageReady { task, ordinal, due_at: Some(held.resume_at) })]
    }

    /// Leaves a stage: after a failure along the failure route (spec §3.7, decision failure-routes), otherwise along an
    /// edge.
    fn leave_stage(&self, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
        if !matches!(outcome.status, Status::Fail | Status::Retry) {
            return self.follow_edge(node, outcome);
        }
        let lookup = |key: &str| self.branch.context.text(key);
        let found = route::failure_target(self.pipeline, node, &answer(outcome), &lookup);
        if self.misleads(outcome, &found.target) {
            return self.fail(cause_of(node, outcome));
        }
        let (to, edge) = match &found.target {
            FailureTarget::Edge(index) => (&self.pipeline.edges[index.0].to, Some(index.0)),
            FailureTarget::Node(target) => (target, None),
            FailureTarget::Stop => {
                let repeated = self.not_verified_again(node, None);
                return self.refuse(node, repeated.unwrap_or_else(|| cause_of(node, outcome).into()));
            }
        };
        if let Some(refusal) = self.not_verified_again(node, Some(to)).or_else(|| self.cycle(node, outcome)) {
            return self.refuse(node, refusal);
        }
        self.route(node, to, Choice { how: found.how.as_str(), edge, candidates: found.candidates })
    }

    /// Leaves the start node, or a diamond with the outcome that it passes on
    /// (decision diamonds-pass-outcomes-through).
    fn leave_control_node(&self, node: &NodeId) -> Vec<Event> {
        let is_child_exit = || self.pipeline.node(node).is_some_and(|node| node.handler == Handler::ChildExit);
        match self.pipeline.start == *node || is_child_exit() {
            true => self.follow_edge(node, &Outcome::new(Status::Success)),
            false => self.follow_edge(node, &self.branch.previous),
        }
    }

    /// Follows the edge that matches, or fails the run. There is no default to the first edge and no silent success
    /// (decision no-route-fails-the-run).
    fn follow_edge(&self, node: &NodeId, outcome: &Outcome) -> Vec<Event> {
        let lookup = |key: &str| self.branch.context.text(key);
        let selection = route::select(self.pipeline, node, &answer(outcome), &lookup);
        let Some(index) = selection.edge else {
            if matches!(outcome.status, Status::Fail | Status::Retry) {
                return self.fail(cause_of(node, outcome));
            }
            let reason = format!("no route from node {node} for outcome {}", outcome.status.as_str());
            // The notes of a partial success say what was not done.
            let is_told = outcome.status == Status::PartialSuccess && !outcome.notes.is_empty();
            let reason = if is_told { format!("{reason}: {}", outcome.notes) } else { reason };
            return self.fail(Failure::new(FailureClass::Deterministic, "route/none", reason));
        };
        if self.misleads(outcome, &FailureTarget::Edge(index)) {
            return self.fail(cause_of(node, outcome));
        }
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

/// Ends a run that is stalled or reached one of its limits, once no attempt of any branch is running.
fn end_when_idle(state: &RunState, failure: Failure) -> Vec<Event> {
    if state.is_under_way() { Vec::new() } else { with_exits(state, failed(failure)) }
}

/// Returns the failure if the run has reached one of its limits.
fn out_of_bounds(state: &RunState) -> Option<Failure> {
    steps_exceeded(state).or_else(|| spent(state))
}

/// Returns the failure if the run has reached its limit on time, tokens or money.
fn spent(state: &RunState) -> Option<Failure> {
    wall_failure(state, state.driven_ms).or_else(|| state.overspent.clone())
}

fn steps_exceeded(state: &RunState) -> Option<Failure> {
    let steps_max = state.run.as_ref().map_or(0, |run| run.bounds.steps_max);
    let reason = || format!("Pipeline exceeded maximum step count ({steps_max}). Use --max-steps to increase.");
    (state.steps >= steps_max).then(|| Failure::new(FailureClass::Budget, FailureCode::RUN_STEPS, reason()))
}

/// Returns the failure if a resume with these limits would end immediately, because the run has already used up one of
/// them.
pub fn limit_reached(state: &RunState, resumed: &RunResumed) -> Option<Failure> {
    let run = state.run.as_deref()?.clone().resumed(resumed);
    let under_terms = RunState { run: Some(Arc::new(run)), ..state.clone() };
    let overspent = || overspent_again(state, under_terms.run.as_deref()?);
    steps_exceeded(&under_terms).or_else(|| wall_failure(&under_terms, under_terms.driven_ms)).or_else(overspent)
}

/// Returns the spending failure that ended the run, unless the resume raises that limit. Without a higher limit, the
/// same model call would fail again.
fn overspent_again(state: &RunState, terms: &RunStarted) -> Option<Failure> {
    let (before, now) = (state.run.as_ref()?.bounds.spend_max, terms.bounds.spend_max);
    let is_raised = |failure: &Failure| match failure.code == FailureCode::RUN_TOKENS {
        true => now.tokens_max > before.tokens_max,
        false => now.cost_max > before.cost_max,
    };
    let failure = state.verdict.as_ref()?.failure.as_ref();
    failure.filter(|failure| is_of_budget(failure) && !is_raised(failure)).cloned()
}

/// Returns `run.finished` if the run has no time left at `now`. The run must have no running attempt.
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

/// Returns the failure if the node has used up its `max_wall_time` at `now`.
pub fn time_of_node_exceeded(state: &RunState, node: &Node, now: Timestamp) -> Option<Failure> {
    let most = node.bounds.wall_max?;
    let reason = || format!("node `{}` exceeded `max_wall_time` ({} ms)", node.id, most.as_millis());
    let is_over = state.node_usages.of(&node.id).time(now) >= most;
    is_over.then(|| Failure::new(FailureClass::Budget, FailureCode::NODE_WALL_TIME, reason()))
}

/// Returns the stage's own failure, unchanged.
fn cause_of(node: &NodeId, outcome: &Outcome) -> Failure {
    let unspoken =
        || Failure::new(FailureClass::Deterministic, FailureCode::STAGE_FAILED, format!("stage `{node}` failed"));
    outcome.failure.clone().unwrap_or_else(unspoken)
}

fn canceled(by: &str) -> Event {
    failed(Failure::new(FailureClass::Canceled, FailureCode::RUN_CANCELED, format!("canceled by {by}")))
}

/// Returns the end of a run that succeeded at an exit.
fn succeeded(exit: &Node) -> Event {
    let exit_node = Some(exit.id.clone());
    Event::RunFinished(RunFinished {
        status: Verdict::Success,
        exit_node,
        failure: None,
        resumes_at: None,
        artifact: None,
    })
}

/// Returns the end of a run that failed.
pub fn failed(failure: Failure) -> Event {
    Event::RunFinished(RunFinished {
        status: Verdict::Fail,
        exit_node: None,
        failure: Some(failure),
        resumes_at: None,
        artifact: None,
    })
}
