//! Decisions at parallel nodes and fan-ins.
//!
//! [`next_step`] looks only at the state of the branches, not at an event. It begins the next branch of a parallel
//! node, cancels branches that are no longer needed, and joins the branches after the last one has ended. It is called
//! when no other decision is left, and it returns one event at a time.

use super::merge::merge;
use super::{BranchDecision, Choice, branch_name, child, failed, out_of_bounds, with_exits};
use crate::failure_signature;
use crate::run_state::{Branch, EndedBranch, OpenParallel, Position, RunState};
use glovebox_journal::event::{
    BranchCanceled, BranchEnd, BranchFinished, BranchId, BranchStarted, Event, FanInFinished, ParallelChild,
    ParallelJoined, ParallelStarted, StageFinished, StageReady, Task,
};
use glovebox_pipeline::ir::{ErrorPolicy, Handler, JoinPolicy, Node, NodeId, ParallelSettings, Pipeline};
use glovebox_pipeline::parallel::{JoinFault, Region};
use glovebox_record::{Failure, FailureClass, Status};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rule that chose a branch at a fan-in without a component.
const HEURISTIC: &str = "heuristic";

/// Returns the next events that follow from the state of the branches. Empty if all of them wait.
pub fn next_step(pipeline: &Pipeline, state: &RunState) -> Vec<Event> {
    match parallel_step(pipeline, state) {
        Some(event) => vec![event],
        None if state.is_ending() => Vec::new(),
        None => held_back(state),
    }
}

/// Returns the next event of a parallel node, or `None` if no parallel node has one or the run has ended. Unlike
/// [`next_step`], it never ends the run.
pub fn parallel_step(pipeline: &Pipeline, state: &RunState) -> Option<Event> {
    if state.is_ending() {
        return None;
    }
    let split = |(id, branch): (_, &Arc<Branch>)| {
        branch.parallel().map(|parallel| (id, Arc::clone(branch), Arc::clone(parallel)))
    };
    let mut steps = state.branches.iter().filter_map(split).filter_map(|(id, branch, parallel)| {
        ParallelDecision { pipeline, state, id, branch: &branch, parallel: &parallel }.next()
    });
    steps.next()
}

/// Ends the run if a branch has reached a limit of the run and no attempt of another branch is running.
fn held_back(state: &RunState) -> Vec<Event> {
    let is_held = |branch: &Arc<Branch>| branch.at == Position::Deciding;
    let has_begun = state.run.is_some() && state.branches.len() > 1;
    let is_stuck = has_begun && !state.is_under_way() && state.branches.values().any(is_held);
    let failure = out_of_bounds(state).filter(|_| is_stuck);
    failure.map_or_else(Vec::new, |failure| with_exits(state, failed(failure)))
}

fn setting(pipeline: &Pipeline, parallel: &NodeId) -> ParallelSettings {
    pipeline.node(parallel).map(|node| node.parallel).unwrap_or_default()
}

/// Decides the next step of one parallel node.
struct ParallelDecision<'a> {
    pipeline: &'a Pipeline,
    state: &'a RunState,
    id: &'a BranchId,
    branch: &'a Branch,
    parallel: &'a OpenParallel,
}

impl ParallelDecision<'_> {
    fn next(&self) -> Option<Event> {
        let ended = self.ended();
        if ended.is_none() && self.branch.canceled.is_none() {
            return self.begin_next();
        }
        let alive = self.parallel.children[..self.parallel.started].iter().filter_map(|child| {
            let branch = self.state.branches.get(&child.id)?;
            Some((&child.id, branch))
        });
        let alive: Vec<(&BranchId, &Arc<Branch>)> = alive.collect();
        if let Some((id, _)) = alive.iter().find(|(_, branch)| branch.canceled.is_none()) {
            return Some(self.cancel(id));
        }
        match (alive.is_empty(), ended) {
            (false, _) => None,
            (true, _) if self.branch.canceled.is_some() => Some(end_of(self.state, self.id, self.branch, None)),
            (true, Some((status, failure))) => Some(self.join(status, failure)),
            (true, None) => None,
        }
    }

    /// Returns the generation and the branch for the events of the parallel node.
    fn place(&self) -> (u32, BranchId) {
        (self.state.generation(), self.id.clone())
    }

    fn setting(&self) -> ParallelSettings {
        setting(self.pipeline, &self.parallel.node)
    }

    fn begin_next(&self) -> Option<Event> {
        let most = usize::try_from(self.setting().parallel_max).unwrap_or(usize::MAX);
        let child = self.parallel.children.get(self.parallel.started).filter(|_| self.parallel.running() < most)?;
        let (generation, parent) = self.place();
        let ParallelChild { id: branch, to, edge } = child.clone();
        let context = child::context_of(self.pipeline, self.parallel, self.branch);
        Some(Event::BranchStarted(BranchStarted { generation, branch, parent, to, edge, context }))
    }

    fn cancel(&self, id: &BranchId) -> Event {
        let reason = match &self.branch.canceled {
            Some(reason) => reason.to_string(),
            None => format!("the parallel node `{}` no longer needs this branch", self.parallel.node),
        };
        let (generation, parent) = self.place();
        Event::BranchCanceled(BranchCanceled { generation, branch: id.clone(), parent, reason })
    }

    fn join(&self, status: Status, failure: Option<Failure>) -> Event {
        let parallel = self.parallel;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (generation, branch) = self.place();
        Event::ParallelJoined(Box::new(ParallelJoined {
            generation,
            branch,
            node: parallel.node.clone(),
            visit: parallel.visit,
            join: parallel.join.clone(),
            status,
            succeeded: count(parallel.succeeded),
            failed: count(parallel.failed),
            canceled: count(parallel.canceled),
            never_started: count(parallel.children.len() - parallel.started),
            failure,
        }))
    }

    /// Returns how the parallel node ends by its policies, or `None` if more of its branches must end first
    /// (decision join-and-error-policies).
    fn ended(&self) -> Option<(Status, Option<Failure>)> {
        let OpenParallel { succeeded, failed, .. } = *self.parallel;
        let needed = self.setting().join.needed(self.parallel.children.len());
        let is_enough = self.setting().join != JoinPolicy::WaitAll && succeeded >= needed;
        let have_all = self.parallel.ended.len() == self.parallel.children.len();
        match self.setting().error {
            _ if self.parallel.has_expired => Some((Status::Fail, Some(self.too_late()))),
            _ if self.parallel.supervision_end.is_some() => {
                Some(child::end_of_supervision(self.pipeline, self.parallel))
            }
            ErrorPolicy::FailFast if failed > 0 => Some((Status::Fail, Some(self.first_failure()))),
            _ if is_enough => Some((Status::Success, None)),
            _ if !have_all => None,
            _ if succeeded == 0 => Some((Status::Fail, Some(self.first_failure()))),
            _ if self.setting().join != JoinPolicy::WaitAll => Some((Status::Fail, Some(self.too_few(needed)))),
            ErrorPolicy::Continue if failed > 0 => Some((Status::PartialSuccess, None)),
            _ => Some((Status::Success, None)),
        }
    }

    fn failures(&self) -> impl Iterator<Item = (&EndedBranch, &Failure)> {
        let failed = self.parallel.ended.iter().filter(|one| one.end.outcome == BranchEnd::Fail);
        failed.filter_map(|one| Some((&**one, one.end.failure.as_ref()?)))
    }

    /// Returns the failure of the branch that failed first, with its reason unchanged
    /// (decision reasons-stay-unchanged).
    fn first_failure(&self) -> Failure {
        let first = self.failures().next().map(|(_, failure)| failure.clone());
        first.unwrap_or_else(|| {
            let reason = format!("no branch of the parallel node `{}` succeeded", self.parallel.node);
            Failure::new(FailureClass::Deterministic, "parallel/failed", reason)
        })
    }

    fn too_late(&self) -> Failure {
        let node = &self.parallel.node;
        let reason = match self.pipeline.node(node).is_some_and(|node| node.child.is_some()) {
            true => format!("the child pipeline of `{node}` did not end within its `timeout`"),
            false => format!("the branches of the parallel node `{node}` did not end within its `timeout`"),
        };
        Failure::new(FailureClass::Budget, "limit/parallel_timeout", reason)
    }

    fn too_few(&self, needed: usize) -> Failure {
        let OpenParallel { node, children, succeeded, .. } = self.parallel;
        let cause = self.failures().next();
        let class = cause.map_or(FailureClass::Deterministic, |(_, failure)| failure.class);
        let cause = cause.map(|(one, failure)| format!("; branch `{}` failed: {}", one.end.branch, failure.reason));
        let policy = self.setting().join.as_str();
        let reason = format!(
            "`join_policy={policy}` of `{node}` needs {needed} branches to succeed, and {succeeded} of {} did{}",
            children.len(),
            cause.unwrap_or_default()
        );
        Failure::new(class, "parallel/too-few", reason)
    }
}

/// Returns the end of a branch: at its fan-in, or with a failure.
pub(super) fn end_of(state: &RunState, id: &BranchId, branch: &Branch, failure: Option<Failure>) -> Event {
    let previous = &branch.previous;
    let canceled = branch.canceled.as_ref();
    let canceled = canceled.map(|why| Failure::new(FailureClass::Canceled, "branch/canceled", why.to_string()));
    let (outcome, failure) = match (canceled, failure, previous.status) {
        (Some(why), ..) => (BranchEnd::Canceled, Some(why)),
        (None, Some(failure), _) => (BranchEnd::Fail, Some(failure)),
        (None, None, Status::Fail | Status::Retry) => (BranchEnd::Fail, previous.failure.clone()),
        (None, None, Status::PartialSuccess) => (BranchEnd::PartialSuccess, None),
        (None, None, Status::Success | Status::Skipped) => (BranchEnd::Success, None),
    };
    Event::BranchFinished(Box::new(BranchFinished {
        generation: state.generation(),
        branch: id.clone(),
        parent: branch.origin.as_ref().map_or_else(BranchId::main, |origin| origin.parent.clone()),
        outcome,
        node: branch.node.clone(),
        score: branch.context.get("score").and_then(Value::as_f64).filter(|score| score.is_finite()).unwrap_or(0.0),
        notes: previous.notes.clone(),
        failure,
    }))
}

impl BranchDecision<'_> {
    /// Ends a branch of a parallel node. On the main branch, ends the run.
    pub(super) fn fail(&self, failure: Failure) -> Vec<Event> {
        match self.branch.origin {
            Some(_) => vec![end_of(self.state, self.id, self.branch, Some(failure))],
            None => vec![failed(failure)],
        }
    }

    /// Returns the end of a canceled branch. Returns no event while an attempt of the branch is running or the branch
    /// has branches of its own.
    pub(super) fn acknowledge_cancel(&self) -> Vec<Event> {
        match self.branch.is_under_way() || self.branch.parallel().is_some() {
            true => Vec::new(),
            false => vec![end_of(self.state, self.id, self.branch, None)],
        }
    }

    /// Ends the branch at its fan-in. An exit also ends the branch, with a failure, because a branch must not reach an
    /// exit.
    pub(super) fn end_at(&self, node: &Node) -> Option<Vec<Event>> {
        let origin = self.branch.origin.as_ref()?;
        if node.id == origin.join {
            return Some(vec![end_of(self.state, self.id, self.branch, None)]);
        }
        let reason =
            || format!("branch `{}` reached the exit `{}` before the fan-in `{}`", self.id, node.id, origin.join);
        let failure = || Failure::new(FailureClass::Contract, "parallel/exit", reason());
        (node.handler == Handler::Exit).then(|| self.fail(failure()))
    }

    pub(super) fn begin_parallel(&self, id: &NodeId) -> Vec<Event> {
        let visit = self.branch.next_visit(id);
        let join = match self.pipeline.region(id) {
            Ok(Region { join, .. }) => join.clone(),
            Err(fault) => {
                let reason = match fault {
                    JoinFault::Exit(exit) => format!("a branch of the parallel node `{id}` leads to the exit `{exit}`"),
                    JoinFault::Back(to) => {
                        format!("a branch of the parallel node `{id}` leads back to the parallel node `{to}`")
                    }
                    _ => format!("the branches of the parallel node `{id}` do not meet in one fan-in"),
                };
                return self.fail(Failure::new(FailureClass::Contract, "parallel/join", reason));
            }
        };
        let targets: Vec<(usize, &NodeId)> =
            self.pipeline.outgoing(id).map(|(index, edge)| (index.0, &edge.to)).collect();
        let first_nodes = targets.iter().map(|(_, to)| *to);
        let names = branch_name::of(self.pipeline, self.id, id, visit, self.state.generation(), first_nodes);
        let children =
            names.into_iter().zip(targets).map(|(id, (edge, to))| ParallelChild { id, to: to.clone(), edge });
        let Task { generation, branch, node, visit, .. } = self.next_task(id);
        let due_at = self.pipeline.node(id).and_then(|node| node.bounds.timeout).map(|timeout| self.due(timeout));
        vec![Event::ParallelStarted(ParallelStarted {
            generation,
            branch,
            node,
            visit,
            join,
            children: children.collect(),
            due_at,
            observe_at: self.first_look(id),
        })]
    }

    /// Leaves a parallel node: to its own retry target if it failed and has one, otherwise to the fan-in.
    pub(super) fn leave_parallel(&self, joined: &ParallelJoined) -> Vec<Event> {
        let node = self.pipeline.node(&joined.node).filter(|_| joined.status == Status::Fail);
        let target = node.and_then(|node| match (&node.routing.retry_target, &node.routing.fallback_retry_target) {
            (Some(target), _) => Some(("retry_target", target)),
            (None, Some(target)) => Some(("fallback_retry_target", target)),
            (None, None) => None,
        });
        let (how, to) = target.unwrap_or(("join", &joined.join));
        self.route(&joined.node, to, Choice { how, edge: None, candidates: Vec::new() })
    }

    /// Decides at a fan-in: fails if the parallel node failed, asks the component if there is one, and otherwise
    /// compares the outcomes (spec §4.9).
    pub(super) fn fan_in(&self, node: &Node) -> Vec<Event> {
        let visit = self.branch.next_visit(&node.id);
        let Some(parallel) = &self.branch.joined else {
            let reason = "No parallel results to evaluate";
            let failure = Failure::new(FailureClass::Deterministic, "fan_in/no-results", reason);
            return vec![self.unmerged(node, visit, failure)];
        };
        let failure = || {
            let reasons = [&self.branch.previous.failure, &self.branch.last_failure];
            reasons.into_iter().flatten().next().cloned()
        };
        match &node.handler {
            _ if parallel.status == Some(Status::Fail) => {
                let unspoken =
                    || Failure::new(FailureClass::Deterministic, "parallel/failed", "the parallel node failed");
                vec![self.unmerged(node, visit, failure().unwrap_or_else(unspoken))]
            }
            Handler::FanIn(Some(_)) => {
                vec![Event::StageReady(StageReady { task: self.next_task(&node.id), ordinal: 1, due_at: None })]
            }
            _ => match best(parallel) {
                Some(best) => vec![self.merged(node, visit, parallel, best)],
                None => Vec::new(),
            },
        }
    }

    /// Merges the branch that a component chose. The component names it by the id of the branch or by its first node.
    pub(super) fn judged(&self, node: &Node, finished: &StageFinished) -> Vec<Event> {
        let (visit, outcome) = (finished.attempt.task.visit, &finished.outcome);
        let Some(parallel) = &self.branch.joined else { return self.leave_stage(&node.id, outcome) };
        if !outcome.status.satisfies_gate() {
            return vec![self.unmerged(node, visit, super::cause_of(&node.id, outcome))];
        }
        let said = outcome.context_updates.get("last_response").and_then(Value::as_str);
        let named = outcome.preferred_label.iter().chain(&outcome.suggested_next_ids).map(String::as_str);
        let mut found = named.filter_map(|name| candidate(parallel, name));
        let named = found.next().or_else(|| said.and_then(|said| mentioned(parallel, said)));
        // A simulated model chooses no branch, so the outcomes are compared.
        let is_simulated = self.state.run.as_ref().is_some_and(|run| run.model.simulated.contains(&node.id));
        match named.or_else(|| best(parallel).filter(|_| is_simulated)) {
            Some(best) => vec![self.merged(node, visit, parallel, best)],
            None => {
                let ids: Vec<&str> = parallel.candidates().map(|one| one.end.branch.as_str()).collect();
                let reason = format!(
                    "fan-in `{}` named no branch, expected one of {} as its preferred label",
                    node.id,
                    ids.join(", ")
                );
                let failure = Failure::new(FailureClass::Contract, "fan_in/no-choice", reason);
                vec![self.unmerged(node, visit, failure)]
            }
        }
    }

    fn merged(&self, node: &Node, visit: u32, parallel: &OpenParallel, best: &EndedBranch) -> Event {
        let taken = merge(parallel, best, node.parallel.merge);
        let failure = (!taken.conflicts.is_empty()).then(|| {
            let paths: Vec<&str> = taken.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
            let reason = format!("branches changed the same paths in different ways: {}", paths.join(", "));
            Failure::new(FailureClass::Deterministic, "fan_in/conflict", reason)
        });
        let is_whole = failure.is_none();
        Event::FanInFinished(Box::new(FanInFinished {
            status: if is_whole { Status::Success } else { Status::Fail },
            signature: failure.as_ref().and_then(failure_signature::of_failure),
            failure,
            best: Some(best.end.branch.clone()),
            best_outcome: Some(best.end.outcome),
            merged: taken.merged,
            changes: taken.changes,
            conflicts: taken.conflicts,
            context: child::context_from(self.pipeline, parallel, &best.branch),
            verifying: is_whole && node.checks.verification.is_some(),
            ..self.fan_in_finished(node, visit)
        }))
    }

    fn unmerged(&self, node: &Node, visit: u32, failure: Failure) -> Event {
        let finished = self.fan_in_finished(node, visit);
        let parallel = self.branch.joined.as_ref().map(|parallel| &parallel.node);
        Event::FanInFinished(Box::new(FanInFinished {
            context: parallel
                .map(|parallel| child::end_in_context(self.pipeline, parallel, Status::Fail))
                .unwrap_or_default(),
            signature: failure_signature::of_failure(&failure),
            failure: Some(failure),
            ..finished
        }))
    }

    fn fan_in_finished(&self, node: &Node, visit: u32) -> FanInFinished {
        let (generation, branch) = self.place();
        FanInFinished {
            generation,
            branch,
            node: node.id.clone(),
            visit,
            judge: node.handler.component().map_or(HEURISTIC, |name| name.as_str()).to_owned(),
            status: Status::Fail,
            best: None,
            best_outcome: None,
            merged: Vec::new(),
            changes: Vec::new(),
            conflicts: Vec::new(),
            failure: None,
            signature: None,
            context: BTreeMap::new(),
            verifying: false,
        }
    }
}

/// Compares branches by outcome, then by score, then by id (spec §4.9).
fn best(parallel: &OpenParallel) -> Option<&EndedBranch> {
    parallel.candidates().min_by(|one, other| {
        let is_partial = |one: &EndedBranch| one.end.outcome != BranchEnd::Success;
        let by_outcome = is_partial(one).cmp(&is_partial(other));
        let by_score = other.end.score.total_cmp(&one.end.score);
        by_outcome.then(by_score).then_with(|| one.end.branch.cmp(&other.end.branch))
    })
}

/// Returns the candidate with this id, or the only candidate with this first node.
fn candidate<'f>(parallel: &'f OpenParallel, name: &str) -> Option<&'f EndedBranch> {
    let name = name.trim();
    if let Some(found) = parallel.candidates().find(|one| one.end.branch == *name) {
        return Some(found);
    }
    let mut found = parallel.candidates().filter(|one| one.first == *name);
    found.next().filter(|_| found.next().is_none())
}

/// Returns the only candidate whose id occurs as a word in a text.
fn mentioned<'f>(parallel: &'f OpenParallel, text: &str) -> Option<&'f EndedBranch> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_word = |name: &str| text.split(|letter| !is_part(letter)).any(|word| word == name);
    let mut found = parallel.candidates().filter(|one| is_word(one.end.branch.as_str()));
    found.next().filter(|_| found.next().is_none())
}
