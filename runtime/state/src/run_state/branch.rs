//! Where one branch of a run stands: its position, its context and what came of its nodes.
//!
//! Maps share structure with their earlier versions, so a copy to decide on costs the same after the first stage and after the
//! ten-thousandth. A branch reads nothing of another branch.

pub(crate) mod authors;
pub(crate) mod failure_chain;
pub(crate) mod history;
pub(crate) mod parallel;
pub(crate) mod pending_outcome;
pub(crate) mod question;
pub(crate) mod results;
pub(crate) mod verify_failures;

use super::conversations::Conversations;
use super::spending::is_bound_of_run;
use super::visits::Visits;
use crate::context::{Context, ContextKey};
use authors::Authors;
use failure_chain::FailureChain;
use glovebox_journal::event::{
    Attempt, AttemptId, Event, FileChange, NodeId, StageFinished, StagePassed, StageReady, Task, Work,
};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, Outcome, Status};
use history::NodeHistory;
use jiff::Timestamp;
use parallel::{OpenParallel, Origin};
use pending_outcome::{FailedStage, Unverified};
use question::Wait;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of artifacts that hold what a stage printed end like this.
const OUTPUT_ENDINGS: [&str; 4] = [".stdout.txt", ".stderr.txt", ".output", ".verify_output"];

/// The key with the class of the failure that led here.
const FAILURE_CLASS: &str = "failure_class";

/// True for the name of an artifact with what a stage's commands printed.
pub fn is_output(artifact: &str) -> bool {
    OUTPUT_ENDINGS.iter().any(|ending| artifact.ends_with(ending))
}

/// The attempt that is ready or under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The task.
    pub task: Task,
    /// Which attempt of it.
    pub ordinal: u32,
    /// Not before this moment.
    pub due_at: Option<Timestamp>,
    /// Its last `stage.ready`: a delivery of an earlier one is out of date.
    pub ready_seq: u64,
    /// The last record about the task; while an attempt is under way this is its fencing token.
    pub head: u64,
    /// The attempt that claimed it, if one did.
    pub attempt_id: Option<AttemptId>,
}

impl OpenTask {
    /// The attempt as one that has this id.
    pub fn attempt(&self, id: &AttemptId) -> Attempt {
        Attempt { task: self.task.clone(), ordinal: self.ordinal, id: id.clone() }
    }
}

/// The wait of a branch.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Position {
    /// For nothing: the event that moved it decides what follows, or the run has ended.
    #[default]
    Deciding,
    /// For an attempt.
    Open(OpenTask),
    /// For the branches of a parallel node.
    Forked(Arc<OpenParallel>),
    /// For something that no attempt brings.
    Waiting(Wait),
}

/// One branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The last record about the branch itself; 0 before the first.
    pub head: u64,
    /// Its wait.
    pub at: Position,
    /// The node it is at; the exit when it has ended there.
    pub node: Option<NodeId>,
    /// Its context.
    pub context: Context,
    /// The last answers of its own stages: the values of the answer keys.
    pub answers: Context,
    /// The outcome that a diamond passes on: the last that was recorded.
    pub previous: Arc<Outcome>,
    /// The history of each visited node.
    pub nodes: RedBlackTreeMapSync<NodeId, NodeHistory>,
    /// Its finished visits; a branch of a parallel node begins with those before the parallel node.
    pub completed: Visits,
    /// Nodes that a branch of a parallel node visited itself.
    pub visited: RedBlackTreeSetSync<NodeId>,
    /// Nodes whose last outcome is a failure, by their last visit among all finished ones.
    pub(crate) failing: RedBlackTreeMapSync<u64, NodeId>,
    /// The last change of each path.
    pub changes: RedBlackTreeMapSync<ScopePath, FileChange>,
    /// The stages that changed each path.
    pub authors: Authors,
    /// The conversations that its stages can continue.
    pub conversations: Conversations,
    /// The failure that led here; none after a success.
    pub last_failure: Option<Failure>,
    /// The stage that has this failure. The next stage may have to fix it.
    pub last_failed: Option<Arc<FailedStage>>,
    /// The stages whose failures led here, one after another.
    pub failure_chain: FailureChain,
    /// The attempt whose disallowed writes wait for a decision.
    pub held: Option<Arc<StageFinished>>,
    /// The subject of its open verification, or of the last one that led to a repetition.
    pub unverified: Option<Arc<Unverified>>,
    /// The parallel node that it began at; none for the branch that the run began with.
    pub origin: Option<Arc<Origin>>,
    /// Why its parallel node does not need it any more.
    pub canceled: Option<Arc<str>>,
    /// The parallel node whose branches have ended, until a fan-in has chosen one.
    pub joined: Option<Arc<OpenParallel>>,
}

impl Default for Branch {
    fn default() -> Self {
        Self {
            head: 0,
            at: Position::default(),
            node: None,
            context: Context::default(),
            answers: Context::default(),
            previous: Arc::new(Outcome::new(Status::Success)),
            nodes: RedBlackTreeMapSync::new_sync(),
            completed: Visits::default(),
            visited: RedBlackTreeSetSync::new_sync(),
            failing: RedBlackTreeMapSync::new_sync(),
            changes: RedBlackTreeMapSync::new_sync(),
            authors: Authors::default(),
            conversations: Conversations::default(),
            last_failure: None,
            last_failed: None,
            failure_chain: FailureChain::default(),
            held: None,
            unverified: None,
            origin: None,
            canceled: None,
            joined: None,
        }
    }
}

impl Branch {
    /// The attempt that is ready or under way.
    pub fn open(&self) -> Option<&OpenTask> {
        match &self.at {
            Position::Open(open) => Some(open),
            Position::Deciding | Position::Forked(_) | Position::Waiting(_) => None,
        }
    }

    /// The last outcome of a node.
    pub fn outcome(&self, node: &NodeId) -> Option<&Outcome> {
        self.nodes.get(node)?.outcome.as_deref()
    }

    /// The last status of a node.
    pub fn status(&self, node: &NodeId) -> Option<Status> {
        self.outcome(node).map(|outcome| outcome.status)
    }

    /// True when the last visit of a node ended with `skipped`.
    pub fn was_skipped(&self, node: &NodeId) -> bool {
        self.nodes.get(node).is_some_and(|history| history.skipped)
    }

    /// True when a verifier's command passed in the last visit of a node.
    pub fn is_proven(&self, node: &NodeId) -> bool {
        self.nodes.get(node).is_some_and(|history| history.proven)
    }

    /// Nodes whose last outcome is a failure; the one that was visited last comes first.
    pub fn failing(&self) -> impl Iterator<Item = &NodeId> {
        self.failing.iter().rev().map(|(_, node)| node)
    }

    /// The visit that the next arrival at a node begins.
    pub fn next_visit(&self, node: &NodeId) -> u32 {
        self.nodes.get(node).map_or(0, |history| history.visits).saturating_add(1)
    }

    /// The visits of a node that count for its bound.
    pub fn visits_counted(&self, node: &NodeId) -> u32 {
        self.nodes.get(node).map_or(0, |history| history.counted)
    }

    /// True while an attempt of it is under way.
    pub fn is_under_way(&self) -> bool {
        self.open().is_some_and(|open| open.attempt_id.is_some())
    }

    /// Folds in an event about the branch or about a task of it. True when the event begins a step.
    pub(crate) fn fold(&mut self, event: &Event) -> bool {
        self.conversations.fold(event);
        match event {
            Event::StageReady(ready) => return self.ready(ready),
            Event::StageStarted(started) => {
                if let Some(open) = self.open_task(&started.attempt.task) {
                    open.attempt_id = Some(started.attempt.id.clone());
                }
            }
            Event::StageFinished(finished) => self.finish_attempt(finished),
            Event::StageRetrying(retrying) => self.count_retry(&retrying.task.node),
            Event::StagePassed(passed) => self.pass(passed),
            Event::GateUnmet(unmet) => self.note_unmet_gate(unmet),
            Event::ParallelStarted(started) => self.begin_parallel(started),
            Event::ParallelExpired(_) => self.expire_parallel(),
            Event::ChildObserved(observed) => self.observe_child(observed),
            Event::BranchCanceled(canceled) => self.canceled = Some(canceled.reason.as_str().into()),
            Event::ParallelJoined(joined) => self.join_parallel(joined),
            Event::FanInFinished(finished) => return self.finish_fan_in(finished),
            Event::QuestionAsked(asked) => self.ask(asked),
            Event::QuestionAnswered(answered) => self.answer(answered),
            Event::RecoveryDecided(decided) => self.settle_held(decided),
            _ => {}
        }
        matches!(event, Event::StagePassed(_) | Event::GateUnmet(_) | Event::ParallelStarted(_))
            || matches!(event, Event::QuestionAsked(asked) if asked.recovery.is_none())
    }

    /// The open task, if it is this one.
    pub(crate) fn open_task(&mut self, task: &Task) -> Option<&mut OpenTask> {
        match &mut self.at {
            Position::Open(open) if open.task == *task => Some(open),
            _ => None,
        }
    }

    /// Drops the claim on the open task: what its attempt would have done does not count.
    pub(crate) fn abandon_attempt(&mut self) {
        if let Position::Open(open) = &mut self.at {
            open.attempt_id = None;
        }
    }

    /// Forgets the model turns of all nodes.
    pub(crate) fn forget_turns(&mut self) {
        let nodes =
            self.nodes.iter().map(|(node, history)| (node.clone(), NodeHistory { turns: 0, ..history.clone() }));
        self.nodes = nodes.collect();
    }

    /// Ends the branch, at an exit when it reached one.
    pub(crate) fn end(&mut self, exit: Option<&NodeId>) {
        self.at = Position::Deciding;
        if let Some(exit) = exit {
            self.stand_at(exit);
        }
    }

    /// Forgets what it waited for. A fan-in that it begins again at still has its branches to choose from.
    pub(crate) fn begin_again(&mut self, from: &NodeId) {
        self.end(None);
        self.forget_verify_failures();
        self.failure_chain.begin_again(from);
        (self.unverified, self.held) = (None, None);
        self.joined = self.joined.take().filter(|parallel| parallel.join == *from);
    }

    pub(crate) fn update(&mut self, node: &NodeId, change: impl FnOnce(&mut NodeHistory)) {
        let mut history = self.nodes.get(node).cloned().unwrap_or_default();
        change(&mut history);
        self.nodes.insert_mut(node.clone(), history);
    }

    fn stand_at(&mut self, node: &NodeId) {
        self.node = Some(node.clone());
        self.context.set("current_node", Value::String(node.to_string()));
    }

    pub(crate) fn arrive(&mut self, node: &NodeId, visit: u32) {
        self.update(node, |history| {
            let is_new = visit > history.visits;
            history.counted = history.counted.saturating_add(u32::from(is_new));
            history.unchanged = if is_new { 0 } else { history.unchanged };
            history.visits = visit;
        });
        self.stand_at(node);
    }

    /// True for another attempt; false for one that waits already and is made ready again by a resume.
    fn ready(&mut self, ready: &StageReady) -> bool {
        if let Some(open) = self.open_task(&ready.task).filter(|open| open.ordinal == ready.ordinal) {
            open.due_at = ready.due_at;
            return false;
        }
        self.arrive(&ready.task.node, ready.task.visit);
        self.at = Position::Open(OpenTask {
            task: ready.task.clone(),
            ordinal: ready.ordinal,
            due_at: ready.due_at,
            ready_seq: 0,
            head: 0,
            attempt_id: None,
        });
        true
    }

    fn finish_attempt(&mut self, finished: &StageFinished) {
        let node = &finished.attempt.task.node;
        let is_verification = finished.attempt.task.work == Work::Verify;
        self.update(node, |history| {
            history.attempts = history.attempts.saturating_add(u32::from(!is_verification));
            history.turns = history.turns.saturating_add(u64::from(finished.model.turns_used));
            let is_repeated = finished.follow_up.no_change && finished.follow_up.retrying && !is_verification;
            history.unchanged = history.unchanged.saturating_add(u32::from(is_repeated));
        });
        finished.files.changes.iter().for_each(|change| self.note_change(node, change));
        self.abandon_attempt();
        if !is_verification {
            // What an earlier attempt left is of no concern any more.
            self.unverified = None;
        }
        if finished.files.recoverable.is_some() {
            self.at = Position::Deciding;
            self.held = Some(Arc::new(finished.clone()));
            return;
        }
        if finished.follow_up.verifying {
            self.at = Position::Deciding;
            self.hold_unverified(finished);
            return;
        }
        if finished.follow_up.retrying {
            self.last_failure.clone_from(&finished.outcome.failure);
        } else {
            self.at = Position::Deciding;
            self.settle_unverified();
            self.record_outcome(node, &finished.outcome);
            self.note_values(&finished.handler, &finished.files.stored_values, &finished.outcome);
            let is_cut = finished.outcome.failure.as_ref().is_some_and(is_bound_of_run);
            self.update(node, |history| {
                history.count_signature(finished.follow_up.signature);
                // A resume with a higher bound begins this visit again.
                history.counted = history.counted.saturating_sub(u32::from(is_cut));
            });
            // At a fan-in the visit ends with its choice, and an exit is no finished visit.
            if self.joined.as_ref().is_none_or(|parallel| parallel.join != *node) && !finished.follow_up.at_exit {
                self.complete(node);
            }
        }
        // A stage that was skipped says nothing: the failure before it stays, and so does the stage it is of.
        if finished.follow_up.retrying || finished.outcome.status != Status::Skipped {
            self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(FailedStage::new(finished)));
            self.note_attempt_in_chain(finished);
        }
    }

    /// Only the last attempt of a visit speaks (spec §3.5); a skipped stage is not recorded at all (spec §5.2).
    pub(crate) fn record_outcome(&mut self, node: &NodeId, outcome: &Outcome) {
        self.set_updates(outcome);
        self.context.set("last_stage", Value::String(node.to_string()));
        let is_skipped = outcome.status == Status::Skipped;
        self.update(node, |history| {
            (history.skipped, history.proven, history.dropped) = (is_skipped, false, Arc::default());
        });
        if is_skipped {
            return;
        }
        self.context.set("outcome", Value::String(outcome.status.as_str().to_owned()));
        match outcome.preferred_label.as_deref().filter(|label| !label.is_empty()) {
            Some(label) => self.context.set("preferred_label", Value::String(label.to_owned())),
            None => self.context.remove("preferred_label"),
        }
        if outcome.status.satisfies_gate() {
            self.context.remove(&retry_key(node));
        }
        self.last_failure = outcome.failure.clone().filter(|_| !outcome.status.satisfies_gate());
        self.note_class(outcome);
        let kept = Arc::new(outcome.without_context_updates());
        self.previous = Arc::clone(&kept);
        self.update(node, |history| {
            history.retries = if kept.status.satisfies_gate() { 0 } else { history.retries };
            let before = history.outcome.as_ref().and_then(|outcome| outcome.failure.as_ref());
            history.alike = match &kept.failure {
                Some(failure) if !kept.status.satisfies_gate() => {
                    if before == Some(failure) {
                        history.alike.saturating_add(1)
                    } else {
                        1
                    }
                }
                _ => 0,
            };
            history.outcome = Some(kept);
        });
    }

    /// The class of a failure is the host's to say: a stage chooses between `fail` and `retry`, which is transient, and nothing else. Without a
    /// failure a stage may leave a word of its own.
    fn note_class(&mut self, outcome: &Outcome) {
        let said = || outcome.context_updates.keys().any(|key| ContextKey(key).plain() == FAILURE_CLASS);
        match &self.last_failure {
            Some(failure) => self.context.set(FAILURE_CLASS, Value::String(failure.class.as_str().to_owned())),
            None if said() => {}
            None => self.context.remove(FAILURE_CLASS),
        }
    }

    pub(crate) fn set_updates(&mut self, outcome: &Outcome) {
        self.context.set_all(outcome.context_updates.iter().filter(|(key, _)| !ContextKey(key).is_reserved()));
    }

    /// Notes which values of an outcome are references, and which are answers of its handler. What an engine's key holds by now is no reference, whatever
    /// the stage set before.
    pub(crate) fn note_values(&mut self, handler: &str, stored: &BTreeSet<String>, outcome: &Outcome) {
        let updates = &outcome.context_updates;
        for (key, reference) in stored.iter().filter_map(|key| updates.get_key_value(key)) {
            self.context.note_reference(key, reference);
        }
        for key in updates.keys().map(|key| ContextKey(key)).filter(|key| key.is_answer_of(handler)) {
            self.answers.take_over(key.plain(), &self.context);
        }
    }

    fn count_retry(&mut self, node: &NodeId) {
        self.update(node, |history| history.retries = history.retries.saturating_add(1));
        let count = self.nodes.get(node).map_or(0, |history| history.retries);
        self.context.set(retry_key(node), Value::from(count));
    }

    fn pass(&mut self, passed: &StagePassed) {
        self.arrive(&passed.node, passed.visit);
        let failure = self.previous.failure.as_ref().filter(|_| passed.status == self.previous.status);
        let outcome = Outcome { failure: failure.cloned(), ..Outcome::new(passed.status) };
        let outcome = Arc::new(outcome);
        // The exit of a child says how the child has ended; what it passes on is all that differs.
        if self.origin.is_some() && passed.status != self.previous.status {
            self.previous = Arc::clone(&outcome);
        }
        self.update(&passed.node, |history| (history.outcome, history.proven) = (Some(outcome), false));
        self.complete(&passed.node);
    }

    /// Adds a finished visit, and notes whether the node's last outcome is a failure.
    pub(crate) fn complete(&mut self, node: &NodeId) {
        if self.origin.is_some() {
            self.visited.insert_mut(node.clone());
        }
        let visit = self.completed.add(node);
        let has_failed = matches!(self.status(node), Some(Status::Fail | Status::Retry));
        if let Some(before) = self.nodes.get(node).and_then(|history| history.failing_at) {
            self.failing.remove_mut(&before);
        } else if !has_failed {
            return;
        }
        self.update(node, |history| history.failing_at = has_failed.then_some(visit));
        if has_failed {
            self.failing.insert_mut(visit, node.clone());
        }
    }
}

fn retry_key(node: &NodeId) -> String {
    format!("internal.retry_count.{node}")
}
