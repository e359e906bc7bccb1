//! The state of one branch of a run: its position, its context and the history of its nodes.
//!
//! The maps are persistent: a clone shares structure with the original, so it costs the same after the first stage and
//! after the ten-thousandth. A branch reads nothing from another branch.

pub(crate) mod authors;
pub(crate) mod failure_chain;
pub(crate) mod history;
pub(crate) mod parallel;
pub(crate) mod pending_outcome;
pub(crate) mod question;
pub(crate) mod repetition;
pub(crate) mod results;
pub(crate) mod verify_failures;

use super::conversations::Conversations;
use super::spending::is_bound_of_run;
use super::visits::Visits;
use crate::context::{Context, ContextKey};
use authors::Authors;
use failure_chain::FailureChain;
use glovebox_journal::event::{
    Attempt, AttemptId, Event, FileChange, MachineId, Moved, NodeId, StageFinished, StageHeld, StagePassed, StageReady,
    Task, Work,
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

/// Endings of the names of artifacts that contain the output of a stage.
const OUTPUT_ENDINGS: [&str; 4] = [".stdout.txt", ".stderr.txt", ".output", ".verify_output"];

/// The context key for the class of the last failure.
const FAILURE_CLASS: &str = "failure_class";

/// Returns true if an artifact with this name contains the output of a stage's commands.
pub fn is_output(artifact: &str) -> bool {
    OUTPUT_ENDINGS.iter().any(|ending| artifact.ends_with(ending))
}

/// The attempt that is ready or running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The task.
    pub task: Task,
    /// Number of the attempt within the task.
    pub ordinal: u32,
    /// Earliest time at which the attempt may start; `None` if it may start immediately.
    pub due_at: Option<Timestamp>,
    /// Sequence number of the last `stage.ready` of the task. A delivery of an earlier `stage.ready` is stale.
    pub ready_seq: u64,
    /// Sequence number of the last record about the task. While an attempt is running, it is the fencing token of the
    /// attempt.
    pub head: u64,
    /// The id of the running attempt; `None` if the task is not claimed.
    pub attempt_id: Option<AttemptId>,
    /// The machine for which the attempt was claimed last; `None` if the driver makes it itself.
    pub machine: Option<MachineId>,
    /// The last wait for a quota at a provider; `None` if the attempt has not waited for one since the run was last paused.
    pub quota: Option<QuotaWait>,
}

/// A wait of an attempt for a quota at the provider of its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaWait {
    /// The provider.
    pub provider: Arc<str>,
    /// The time at which the attempt is executed again.
    pub resume_at: Timestamp,
    /// Number of waits of the attempt, including this one.
    pub waits: u32,
}

impl OpenTask {
    /// Returns the attempt with this id.
    pub fn attempt(&self, id: &AttemptId) -> Attempt {
        Attempt { task: self.task.clone(), ordinal: self.ordinal, id: id.clone() }
    }

    /// Returns the wait for a quota, unless the attempt is running.
    pub fn waits_for_quota(&self) -> Option<&QuotaWait> {
        self.quota.as_ref().filter(|_| self.attempt_id.is_none())
    }
}

/// What a branch waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Position {
    /// Nothing: the events that follow from the last event are not yet appended, or the run has ended.
    #[default]
    Deciding,
    /// An attempt.
    Open(OpenTask),
    /// The branches of a parallel node.
    Parallel(Arc<OpenParallel>),
    /// Something other than an attempt or branches.
    Waiting(Wait),
}

/// The state of one branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Sequence number of the last record about the branch itself; 0 before the first.
    pub head: u64,
    /// What the branch waits for.
    pub at: Position,
    /// The current node. After the end of the run, the exit that the branch reached.
    pub node: Option<NodeId>,
    /// The context of the branch.
    pub context: Context,
    /// The last values that stages of this branch set for the keys in `ANSWER_KEYS`.
    pub answers: Context,
    /// The last recorded outcome, which a diamond passes on.
    pub previous: Arc<Outcome>,
    /// The history of each visited node.
    pub nodes: RedBlackTreeMapSync<NodeId, NodeHistory>,
    /// The finished visits. A branch of a parallel node starts with the visits before the parallel node.
    pub completed: Visits,
    /// For a branch of a parallel node, the nodes that the branch itself visited.
    pub visited: RedBlackTreeSetSync<NodeId>,
    /// Nodes whose last outcome is a failure. The key is the number of visits that finished before the node's last one.
    pub(crate) failing: RedBlackTreeMapSync<u64, NodeId>,
    /// The last change of each path.
    pub changes: RedBlackTreeMapSync<ScopePath, FileChange>,
    /// The stages that changed each path.
    pub authors: Authors,
    /// The conversations that stages of the branch can continue.
    pub conversations: Conversations,
    /// The last failure; `None` after a success.
    pub last_failure: Option<Failure>,
    /// The stage of the last failure. The next stage may have to fix it.
    pub last_failed: Option<Arc<FailedStage>>,
    /// The stages whose failures led to the current node, in order.
    pub failure_chain: FailureChain,
    /// The attempt with disallowed writes that a person has to decide about.
    pub held: Option<Arc<StageFinished>>,
    /// The outcome that an open verification verifies, or that the last failed verification rejected.
    pub unverified: Option<Arc<Unverified>>,
    /// The parallel node at which the branch began; `None` for the main branch.
    pub origin: Option<Arc<Origin>>,
    /// The reason why the parallel node canceled the branch; `None` if it is not canceled.
    pub canceled: Option<Arc<str>>,
    /// The joined parallel node, until the fan-in has chosen a branch.
    pub joined: Option<Arc<OpenParallel>>,
    /// The machine that made the last attempt, with what only that machine has; `None` if the driver made it itself.
    pub place: Option<Arc<Moved>>,
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
            place: None,
        }
    }
}

impl Branch {
    /// Returns the attempt that is ready or running.
    pub fn open(&self) -> Option<&OpenTask> {
        match &self.at {
            Position::Open(open) => Some(open),
            Position::Deciding | Position::Parallel(_) | Position::Waiting(_) => None,
        }
    }

    /// Returns the move of the branch if this machine makes its next attempt. `None` if the branch stays where it is.
    pub fn moved_to(&self, machine: Option<&MachineId>) -> Option<Box<Moved>> {
        let place = self.place.as_deref().filter(|place| machine.is_some_and(|machine| *machine != place.from))?;
        Some(Box::new(place.clone()))
    }

    /// Returns the last outcome of a node.
    pub fn outcome(&self, node: &NodeId) -> Option<&Outcome> {
        self.nodes.get(node)?.outcome.as_deref()
    }

    /// Returns the last status of a node.
    pub fn status(&self, node: &NodeId) -> Option<Status> {
        self.outcome(node).map(|outcome| outcome.status)
    }

    /// Returns true if the last visit of a node ended with `skipped`.
    pub fn was_skipped(&self, node: &NodeId) -> bool {
        self.nodes.get(node).is_some_and(|history| history.skipped)
    }

    /// Returns true if a verifier's command passed in the last visit of a node.
    pub fn is_proven(&self, node: &NodeId) -> bool {
        self.nodes.get(node).is_some_and(|history| history.proven)
    }

    /// Returns the nodes whose last outcome is a failure, the most recently visited first.
    pub fn failing(&self) -> impl Iterator<Item = &NodeId> {
        self.failing.iter().rev().map(|(_, node)| node)
    }

    /// Returns the number of the visit that the next arrival at a node begins.
    pub fn next_visit(&self, node: &NodeId) -> u32 {
        self.nodes.get(node).map_or(0, |history| history.visits).saturating_add(1)
    }

    /// Returns the number of visits of a node that count for its limit.
    pub fn visits_counted(&self, node: &NodeId) -> u32 {
        self.nodes.get(node).map_or(0, |history| history.counted)
    }

    /// Returns true while an attempt of the branch is running.
    pub fn is_under_way(&self) -> bool {
        self.open().is_some_and(|open| open.attempt_id.is_some())
    }

    /// Folds an event about the branch or about one of its tasks. Returns true if the event begins a step.
    pub(crate) fn fold(&mut self, event: &Event) -> bool {
        self.conversations.fold(event);
        match event {
            Event::StageReady(ready) => return self.ready(ready),
            Event::StageStarted(started) => {
                if let Some(open) = self.open_task(&started.attempt.task) {
                    open.attempt_id = Some(started.attempt.id.clone());
                    open.machine.clone_from(&started.machine);
                }
            }
            Event::StageFinished(finished) => self.finish_attempt(finished),
            Event::StageHeld(held) => self.hold_attempt(held),
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

    /// Returns the open task if it is `task`.
    pub(crate) fn open_task(&mut self, task: &Task) -> Option<&mut OpenTask> {
        match &mut self.at {
            Position::Open(open) if open.task == *task => Some(open),
            _ => None,
        }
    }

    /// Removes the claim on the open task, so that a result of the running attempt is ignored.
    pub(crate) fn abandon_attempt(&mut self) {
        if let Position::Open(open) = &mut self.at {
            open.attempt_id = None;
        }
    }

    /// Resets the number of model turns of all nodes.
    pub(crate) fn forget_turns(&mut self) {
        let nodes =
            self.nodes.iter().map(|(node, history)| (node.clone(), NodeHistory { turns: 0, ..history.clone() }));
        self.nodes = nodes.collect();
    }

    /// Ends the branch. `exit` is the exit that the branch reached, if any.
    pub(crate) fn end(&mut self, exit: Option<&NodeId>) {
        self.at = Position::Deciding;
        if let Some(exit) = exit {
            self.stand_at(exit);
        }
    }

    /// Prepares the branch for a resume at `from`. If `from` is a fan-in, it still has its branches to choose from.
    pub(crate) fn resume_at_node(&mut self, from: &NodeId) {
        self.end(None);
        self.forget_verify_failures();
        self.failure_chain.resume_at_node(from);
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
            history.lost_sandbox = history.lost_sandbox.filter(|_| !is_new);
            history.visits = visit;
        });
        self.stand_at(node);
    }

    /// Folds a `stage.ready` event. Returns true for a new attempt, and false if a resume makes a waiting attempt ready
    /// again.
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
            machine: None,
            quota: None,
        });
        true
    }

    /// Folds a `stage.held` event: the attempt was not committed, and its task waits for the quota.
    fn hold_attempt(&mut self, held: &StageHeld) {
        if let Some(open) = self.open_task(&held.attempt.task) {
            let waits = open.quota.as_ref().map_or(0, |before| before.waits).saturating_add(1);
            let provider = held.provider.as_str().into();
            (open.attempt_id, open.quota) = (None, Some(QuotaWait { provider, resume_at: held.resume_at, waits }));
        }
    }

    /// Forgets the waits for a quota, because a person has resumed the run.
    pub(crate) fn forget_quota(&mut self) {
        if let Position::Open(open) = &mut self.at {
            open.quota = None;
        }
    }

    /// Notes which machine made an attempt. What an earlier attempt left on the same machine is still there.
    fn note_place(&mut self, finished: &StageFinished) {
        let Some(machine) = &finished.machine else { return };
        let before = self.place.as_deref().filter(|place| place.from == *machine).and_then(|place| place.left.clone());
        self.place = Some(Arc::new(Moved { from: machine.clone(), left: finished.files.ignored.clone().or(before) }));
    }

    fn finish_attempt(&mut self, finished: &StageFinished) {
        let node = &finished.attempt.task.node;
        let is_verification = finished.attempt.task.work == Work::Verify;
        self.update(node, |history| {
            history.attempts = history.attempts.saturating_add(u32::from(!is_verification));
            history.turns = history.turns.saturating_add(u64::from(finished.model.turns_used));
            let is_repeated = finished.follow_up.no_change && finished.follow_up.retrying && !is_verification;
            history.unchanged = history.unchanged.saturating_add(u32::from(is_repeated));
            let is_lost = finished.follow_up.retrying && finished.has_lost_sandbox();
            history.lost_sandbox = history.lost_sandbox.or(is_lost.then_some(finished.attempt.task.work));
        });
        finished.files.changes.iter().for_each(|change| self.note_change(node, change));
        self.note_place(finished);
        self.abandon_attempt();
        if !is_verification {
            // An outcome of an earlier attempt no longer waits for a verification.
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
                // A resume with a higher limit executes this visit again.
                history.counted = history.counted.saturating_sub(u32::from(is_cut));
            });
            // At a fan-in, the visit ends with the choice of a branch. At an exit, the visit does not count as
            // finished.
            if self.joined.as_ref().is_none_or(|parallel| parallel.join != *node) && !finished.follow_up.at_exit {
                self.complete(node);
            }
        }
        // A skipped stage changes neither the last failure nor the stage that it belongs to.
        if finished.follow_up.retrying || finished.outcome.status != Status::Skipped {
            self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(FailedStage::new(finished)));
            self.note_attempt_in_chain(finished);
        }
    }

    /// Records the outcome of a visit. Only the outcome of the last attempt of a visit is recorded (spec §3.5), and a
    /// skipped stage is not recorded (spec §5.2).
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
            history.outcome = Some(kept);
        });
    }

    /// Sets the class of the last failure in the context. Only the host decides the class. A stage can choose
    /// `fail` or `retry`; `retry` has the class `transient`. Without a failure, a value that the stage set for this key
    /// stays.
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

    /// Marks the values of an outcome that are references, and copies the answers of the handler. A value is not marked
    /// if an engine key has replaced it.
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
        // The outcome of a child pipeline is that of its exit. The previous outcome is replaced only if the status
        // differs.
        if self.origin.is_some() && passed.status != self.previous.status {
            self.previous = Arc::clone(&outcome);
        }
        self.update(&passed.node, |history| (history.outcome, history.proven) = (Some(outcome), false));
        self.complete(&passed.node);
    }

    /// Adds a finished visit, and notes whether the last outcome of the node is a failure.
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
