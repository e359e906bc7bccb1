//! What is known of a run: a fold of its events and of nothing else.
//!
//! The same code folds while a run lives and when it is read back, so replay and life cannot differ. It decides nothing (that
//! is [`crate::schedule`]) and its size is bounded by the graph, the step bound and the paths that changed, not by the number of records.

use crate::context::{Context, ContextKey};
use crate::disk::is_out_of_disk;
use crate::event::{
    AttemptId, BranchId, Digest, Ending, Event, FileChange, GateUnmet, NodeId, Record, RunFinished, RunStarted,
    StageFinished, StagePassed, StageReady, Subject, Task, Work,
};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The attempt that is ready or under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTask {
    /// The task.
    pub task: Task,
    /// Which attempt of it.
    pub ordinal: u32,
    /// Not before this moment.
    pub due_at: Option<Timestamp>,
    /// The last record about the task; while an attempt is under way this is its fencing token.
    pub head: u64,
    /// The attempt that claimed it, if one did.
    pub attempt_id: Option<AttemptId>,
}

/// The fold.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// The last record; 0 before the first.
    pub seq: u64,
    /// The last record about the run itself.
    pub run_head: u64,
    /// The last record about the branch.
    pub branch_head: u64,
    /// When the last record was appended.
    pub at: Option<Timestamp>,
    /// Time in which somebody drove the run, milliseconds; pauses before a resume do not count.
    pub driven_ms: u64,
    /// How the run was started.
    pub run: Option<Box<RunStarted>>,
    /// The pipeline's context.
    pub context: Context,
    /// The last outcome of each node, without its context updates.
    pub outcomes: BTreeMap<NodeId, Outcome>,
    /// The outcome a diamond passes on: the last that was recorded.
    pub previous: Outcome,
    /// Visits begun, per node.
    pub visits: BTreeMap<NodeId, u32>,
    /// Retries since the node last succeeded (`node_retries` of a checkpoint).
    pub retries: BTreeMap<NodeId, u32>,
    /// Every finished visit in order, failed ones included, exits not (design §9 #29).
    pub completed: Vec<NodeId>,
    /// Node executions so far: attempts, engine-native nodes passed, gates found unmet.
    pub steps: u64,
    /// The node the run is at; the exit when it has ended there.
    pub current_node: Option<NodeId>,
    /// The attempt that is ready or under way.
    pub open: Option<OpenTask>,
    /// The failure that led here; none after a success.
    pub last_failure: Option<Failure>,
    /// The stage that failure is of, for whoever is to mend it.
    pub last_failed: Option<FailedStage>,
    /// Model turns of finished attempts, per node: where a script goes on.
    pub turns: BTreeMap<NodeId, u64>,
    /// Finished attempts, per node.
    pub attempts: BTreeMap<NodeId, u32>,
    /// The last change of each path.
    pub changes: BTreeMap<ScopePath, FileChange>,
    /// Nodes whose caches were filled from the base.
    pub caches_filled: BTreeSet<NodeId>,
    /// Refusals so far.
    pub refusals_total: u64,
    /// Who asked the run to stop.
    pub canceled: Option<String>,
    /// The run as if no signal and no bound on disk had stopped it, when one has: a resume goes on from there (design §9 #33).
    pub stopped: Option<Box<RunState>>,
    /// How it ended.
    pub verdict: Option<RunFinished>,
}

/// What is kept of a stage that failed: enough to tell the next one what it printed (seed 2).
#[derive(Debug, Clone, PartialEq)]
pub struct FailedStage {
    /// The node.
    pub node: NodeId,
    /// What its handler said for people.
    pub notes: String,
    /// Artifacts with output, by name.
    pub printed: Vec<(String, Digest)>,
}

impl FailedStage {
    fn of(finished: &StageFinished) -> Self {
        let is_output = |name: &str| [".stdout.txt", ".stderr.txt", ".output"].iter().any(|end| name.ends_with(end));
        let printed = finished.artifacts.iter().filter(|artifact| is_output(&artifact.name));
        Self {
            node: finished.attempt.task.node.clone(),
            notes: finished.outcome.notes.clone(),
            printed: printed.map(|artifact| (artifact.name.clone(), artifact.digest)).collect(),
        }
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self {
            seq: 0,
            run_head: 0,
            branch_head: 0,
            at: None,
            driven_ms: 0,
            run: None,
            context: Context::default(),
            outcomes: BTreeMap::new(),
            previous: Outcome::of(Status::Success),
            visits: BTreeMap::new(),
            retries: BTreeMap::new(),
            completed: Vec::new(),
            steps: 0,
            current_node: None,
            open: None,
            last_failure: None,
            last_failed: None,
            turns: BTreeMap::new(),
            attempts: BTreeMap::new(),
            changes: BTreeMap::new(),
            caches_filled: BTreeSet::new(),
            refusals_total: 0,
            canceled: None,
            stopped: None,
            verdict: None,
        }
    }
}

impl RunState {
    /// Folds a record in.
    pub fn apply(&mut self, record: &Record) {
        self.fold(record.at, &record.event);
        self.place(record);
    }

    /// Folds in what an event says, before it has a place in the journal.
    pub(crate) fn fold(&mut self, at: Timestamp, event: &Event) {
        self.count_time(at, event);
        match event {
            Event::RunStarted(started) => self.start(started),
            Event::RunResumed(_) => self.undo_stop(),
            Event::CacheFilled(filled) => {
                self.caches_filled.insert(filled.node.clone());
            }
            Event::StageReady(ready) => self.ready(ready),
            Event::StageStarted(started) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.task == started.attempt.task) {
                    open.attempt_id = Some(started.attempt.id.clone());
                }
            }
            Event::StageFinished(finished) => {
                if let Some(stopped) = self.stopped.as_mut().filter(|_| !was_cut(finished)) {
                    stopped.fold(at, event);
                }
                self.finish_attempt(finished);
            }
            Event::StageRetrying(retrying) => self.count_retry(&retrying.task.node),
            Event::StagePassed(passed) => self.pass(passed),
            Event::RouteTaken(_) => {}
            Event::GateUnmet(unmet) => self.note_unmet_gate(unmet),
            Event::RunCanceled(canceled) => {
                self.stopped = canceled.is_stop().then(|| Box::new(Self { stopped: None, ..self.clone() }));
                self.canceled = Some(canceled.by.clone());
            }
            Event::RunFinished(finished) => {
                if is_out_of_disk(finished) {
                    self.stopped = Some(Box::new(Self { stopped: None, ..self.clone() }));
                }
                self.finish_run(finished);
            }
        }
    }

    /// Notes where a folded event stands in the journal.
    pub(crate) fn place(&mut self, record: &Record) {
        if let Some(stopped) = &mut self.stopped {
            stopped.place(record);
        }
        self.seq = record.seq;
        match record.event.subject() {
            Subject::Run => self.run_head = record.seq,
            Subject::Branch(_) => self.branch_head = record.seq,
            Subject::Task(task) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.task == task) {
                    open.head = record.seq;
                }
            }
            Subject::Question(_) => {}
        }
    }

    /// The visit that the next arrival at a node begins.
    pub fn next_visit(&self, node: &NodeId) -> u32 {
        self.visits.get(node).copied().unwrap_or(0).saturating_add(1)
    }

    /// The task that the next arrival at a working node begins.
    pub fn next_task(&self, node: &NodeId) -> Task {
        Task {
            generation: self.generation(),
            branch: BranchId::main(),
            node: node.clone(),
            visit: self.next_visit(node),
            work: Work::Handler,
        }
    }

    /// Counts loop restarts of the run.
    pub fn generation(&self) -> u32 {
        self.run.as_ref().map_or(0, |run| run.generation)
    }

    fn count_time(&mut self, at: Timestamp, event: &Event) {
        if let (Some(last), false) = (self.at, matches!(event, Event::RunResumed(_))) {
            let elapsed = at.as_millisecond().saturating_sub(last.as_millisecond());
            self.driven_ms = self.driven_ms.saturating_add(u64::try_from(elapsed).unwrap_or(0));
        }
        self.at = Some(at);
    }

    fn start(&mut self, started: &RunStarted) {
        for (key, value) in &started.graph {
            self.context.set(format!("graph.{key}"), Value::String(value.clone()));
        }
        self.context.set("graph.goal", Value::String(started.goal.clone()));
        self.run = Some(Box::new(started.clone()));
    }

    /// True when nothing of the run is left to do: it has ended, and not because a signal stopped it.
    pub fn is_over(&self) -> bool {
        self.verdict.is_some() && self.stopped.is_none()
    }

    /// Somebody else drives from here on. A run that a signal stopped is as it was before, but for what ended by itself.
    fn undo_stop(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            let (seq, run_head, branch_head) = (self.seq, self.run_head, self.branch_head);
            let (at, driven_ms) = (self.at, self.driven_ms);
            let (refusals_total, caches_filled) = (self.refusals_total, std::mem::take(&mut self.caches_filled));
            *self = Self { seq, run_head, branch_head, at, driven_ms, refusals_total, caches_filled, ..*stopped };
        }
        self.abandon_attempt();
    }

    /// Whoever drove the run before is gone; what its attempt would have done does not count.
    fn abandon_attempt(&mut self) {
        if let Some(open) = &mut self.open {
            open.attempt_id = None;
        }
    }

    fn arrive(&mut self, node: &NodeId, visit: u32) {
        self.steps = self.steps.saturating_add(1);
        self.visits.insert(node.clone(), visit);
        self.current_node = Some(node.clone());
        self.context.set("current_node", Value::String(node.to_string()));
    }

    fn ready(&mut self, ready: &StageReady) {
        let is_again = |open: &&mut OpenTask| open.task == ready.task && open.ordinal == ready.ordinal;
        if let Some(open) = self.open.as_mut().filter(is_again) {
            open.due_at = ready.due_at;
            return;
        }
        self.arrive(&ready.task.node, ready.task.visit);
        self.open = Some(OpenTask {
            task: ready.task.clone(),
            ordinal: ready.ordinal,
            due_at: ready.due_at,
            head: 0,
            attempt_id: None,
        });
    }

    fn finish_attempt(&mut self, finished: &StageFinished) {
        let node = &finished.attempt.task.node;
        *self.attempts.entry(node.clone()).or_default() += 1;
        *self.turns.entry(node.clone()).or_default() += u64::from(finished.turns_used);
        self.refusals_total = self.refusals_total.saturating_add(finished.refusals_total);
        for change in &finished.changes {
            self.changes.insert(change.path.clone(), change.clone());
        }
        self.abandon_attempt();
        if finished.retrying {
            self.last_failure = finished.outcome.failure.clone();
        } else {
            self.open = None;
            self.completed.push(node.clone());
            self.record_outcome(node, &finished.outcome);
        }
        // A stage that was skipped says nothing: the failure before it stays, and so does the stage it is of.
        if finished.retrying || finished.outcome.status != Status::Skipped {
            self.last_failed = self.last_failure.as_ref().map(|_| FailedStage::of(finished));
        }
    }

    /// Only the last attempt of a visit speaks (spec §3.5); a skipped stage is not recorded at all (spec §5.2).
    fn record_outcome(&mut self, node: &NodeId, outcome: &Outcome) {
        for (key, value) in outcome.context_updates.iter().filter(|(key, _)| !ContextKey(key).is_reserved()) {
            self.context.set(key.clone(), value.clone());
        }
        self.context.set("last_stage", Value::String(node.to_string()));
        if outcome.status == Status::Skipped {
            return;
        }
        self.context.set("outcome", Value::String(outcome.status.as_str().to_owned()));
        match outcome.preferred_label.as_deref().filter(|label| !label.is_empty()) {
            Some(label) => self.context.set("preferred_label", Value::String(label.to_owned())),
            None => self.context.remove("preferred_label"),
        }
        if outcome.status.satisfies_gate() {
            self.retries.remove(node);
            self.context.remove(&retry_key(node));
        }
        self.last_failure = outcome.failure.clone().filter(|_| !outcome.status.satisfies_gate());
        self.previous = Outcome { context_updates: BTreeMap::new(), ..outcome.clone() };
        self.outcomes.insert(node.clone(), self.previous.clone());
    }

    fn count_retry(&mut self, node: &NodeId) {
        let count = self.retries.entry(node.clone()).or_default();
        *count += 1;
        self.context.set(retry_key(node), Value::from(*count));
    }

    fn pass(&mut self, passed: &StagePassed) {
        self.arrive(&passed.node, passed.visit);
        self.completed.push(passed.node.clone());
        let failure = self.previous.failure.clone().filter(|_| passed.status == self.previous.status);
        self.outcomes.insert(passed.node.clone(), Outcome { failure, ..Outcome::of(passed.status) });
    }

    fn note_unmet_gate(&mut self, unmet: &GateUnmet) {
        let visit = self.next_visit(&unmet.exit_node);
        self.arrive(&unmet.exit_node, visit);
        let failure = self.outcomes.get(&unmet.gate).and_then(|outcome| outcome.failure.clone());
        self.last_failure = Some(failure.unwrap_or_else(|| {
            let found =
                unmet.status.map_or("was never visited".into(), |status| format!("ended with `{}`", status.as_str()));
            let reason = format!("goal gate `{}` {found}", unmet.gate);
            Failure::new(FailureClass::Deterministic, "gate/unmet", reason)
        }));
        if self.last_failed.as_ref().is_none_or(|failed| failed.node != unmet.gate) {
            self.last_failed =
                Some(FailedStage { node: unmet.gate.clone(), notes: String::new(), printed: Vec::new() });
        }
    }

    fn finish_run(&mut self, finished: &RunFinished) {
        self.open = None;
        if let Some(exit) = &finished.exit_node {
            self.current_node = Some(exit.clone());
            self.context.set("current_node", Value::String(exit.to_string()));
        }
        self.verdict = Some(finished.clone());
    }
}

/// True for an attempt that ended because it was asked to: it counts for nothing once the run goes on.
pub(crate) fn was_cut(finished: &StageFinished) -> bool {
    finished.ending == Ending::Canceled
}

fn retry_key(node: &NodeId) -> String {
    format!("internal.retry_count.{node}")
}
