//! The state of a run: a fold of its events and of nothing else.
//!
//! The same code folds the events of a live run and of a replayed journal, so both give the same state. This file
//! decides nothing (see [`crate::decide`]). The state of one branch is in its [`Branch`], and the state that all
//! branches share is in [`RunState`].

mod branch;
mod conversations;
mod generation;
mod node_usage;
mod pending_decisions;
mod recovery;
mod rewind;
mod spending;
mod stalled;
mod steering;
mod visits;

pub use branch::authors::Author;
pub use branch::failure_chain::FailureChain;
pub(crate) use branch::failure_chain::Prospects;
pub use branch::history::NodeHistory;
pub use branch::is_output;
pub use branch::parallel::{EndedBranch, OpenParallel, Origin};
pub use branch::pending_outcome::{FailedStage, Unverified};
pub use branch::question::{OpenQuestion, Wait};
pub use branch::repetition::Repetition;
pub use branch::results::share;
pub use branch::verify_failures::VerifyFailures;
pub use branch::{Branch, OpenTask, Position, QuotaWait};
pub use conversations::{CONVERSATION_FILE, Conversations, LastConversation};
pub use node_usage::{NodeUsage, NodeUsages};
pub use pending_decisions::{LastEvents, PendingDecisions, resume_state};
pub use spending::Spending;
pub(crate) use spending::{is_bound_of_run, is_of_budget};
pub use visits::Visits;

use glovebox_journal::event::{
    BranchFinished, BranchId, BranchStarted, ChildObserved, Ending, Event, NodeId, Record, RunFinished, RunId,
    RunResumed, RunStarted, StageFinished, StageSteered, StreamKey, Verdict, Work,
};
use glovebox_pipeline::ir::{Role, STEERING_KEY};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use jiff::Timestamp;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync, VectorSync};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// The state of a branch before its first event.
static EMPTY_BRANCH: LazyLock<Arc<Branch>> = LazyLock::new(Arc::default);

/// The state of a run after some of its records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunState {
    /// Sequence number of the last record; 0 before the first.
    pub seq: u64,
    /// Sequence number of the last record about the run itself.
    pub head: u64,
    /// Time at which the last record was appended.
    pub at: Option<Timestamp>,
    /// Time in which a process drove the run, without the pauses before a resume, milliseconds.
    pub driven_ms: u64,
    /// The start of the run, with the changes of later resumes.
    pub run: Option<Arc<RunStarted>>,
    /// The machine or the worker that drives the run since its last takeover or resume; `None` before the first of them.
    pub driver: Option<Arc<str>>,
    /// Number of loop restarts; 0 before the first.
    pub generation: u32,
    /// Every branch that has begun.
    pub branches: BTreeMap<BranchId, Arc<Branch>>,
    /// Number of steps so far: attempts, control nodes passed, and unmet goal gates found.
    pub steps: u64,
    /// The usage of each node.
    pub node_usages: NodeUsages,
    /// Tokens and money spent on model calls.
    pub spending: Spending,
    /// The limit on spending that a model call would have exceeded since the last resume; `None` if there was no such
    /// call.
    pub overspent: Option<Failure>,
    /// Paths outside of their write scopes that people allowed nodes to write.
    pub grants: RedBlackTreeMapSync<NodeId, RedBlackTreeSetSync<ScopePath>>,
    /// Sum of the context values that the run stored as blobs, bytes. Includes values that were replaced later.
    pub stored_bytes: u64,
    /// Number of refusals so far.
    pub refusals_total: u64,
    /// Verifying nodes whose command ran over the files at the start of the run to fill the caches (`cache.filled`).
    pub caches_filled: RedBlackTreeSetSync<NodeId>,
    /// Steering messages for the agents of the run, in order.
    pub steered: VectorSync<Arc<StageSteered>>,
    /// The signal or the person that asked the run to stop; `None` if the run was not canceled.
    pub canceled: Option<Arc<str>>,
    /// True if the run was paused and not resumed since.
    pub paused: bool,
    /// The failure of a run that the stall watchdog ends; `None` if some branch made progress.
    pub stalled: Option<Failure>,
    /// The state that the run would have if no signal, no stall and no limit had stopped it, from which a resume continues
    /// (decision signals-are-resumable). `None` if neither has stopped the run.
    pub stopped: Option<Box<RunState>>,
    /// The end of the run; `None` if the run has not ended.
    pub verdict: Option<Arc<RunFinished>>,
}

impl RunState {
    /// Folds a record into the state.
    pub fn apply(&mut self, record: &Record) {
        self.fold(record.at, &record.event);
        self.note_position(record.seq, &record.event);
    }

    /// Folds an event into the state, before the event has a sequence number in the journal.
    pub fn fold(&mut self, at: Timestamp, event: &Event) {
        if let (Event::RunResumed(_), Some(last)) = (event, self.at) {
            self.node_usages.stop(last);
        }
        self.count_time(at, event);
        self.node_usages.count_time(at, event);
        match event {
            Event::RunStarted(started) => self.start(started),
            Event::RunResumed(resumed) => self.resume(resumed),
            Event::CacheFilled(filled) => self.caches_filled.insert_mut(filled.node.clone()),
            Event::StageSteered(steered) => self.steered.push_back_mut(Arc::new((**steered).clone())),
            Event::StageFinished(finished) => {
                if self.stopped.is_none() && self.is_cut_on_a_branch(finished) {
                    self.stopped = Some(self.without_stop());
                }
                if let Some(stopped) = self.stopped.as_mut().filter(|_| !was_cut(finished)) {
                    stopped.fold(at, event);
                }
                self.refusals_total = self.refusals_total.saturating_add(finished.refusals.total);
                self.note_spending(finished);
                self.note_stored(&finished.attempt.task.branch, &finished.files.stored_values, &finished.outcome);
                self.fold_branch(event);
                self.note_proof(finished);
                self.note_verification(at, finished);
            }
            Event::RunCanceled(canceled) => {
                let before_stall = self.stopped.take().filter(|_| self.stalled.is_some());
                self.stopped = canceled.is_stop().then(|| before_stall.unwrap_or_else(|| self.without_stop()));
                self.canceled = Some(canceled.by.as_str().into());
            }
            Event::RunFinished(finished) => {
                if can_continue(finished) && self.stopped.is_none() {
                    self.stopped = Some(self.without_stop());
                }
                self.finish(finished);
            }
            Event::StageReady(_) | Event::StageStarted(_) | Event::StageRetrying(_) => self.fold_branch(event),
            Event::StageHeld(_) => self.fold_branch(event),
            Event::StagePassed(_) | Event::RouteTaken(_) | Event::GateUnmet(_) => self.fold_branch(event),
            Event::ParallelStarted(_) | Event::ParallelExpired(_) | Event::BranchCanceled(_) => self.fold_branch(event),
            Event::ChildObserved(observed) => {
                self.fold_branch(event);
                self.steer(observed);
            }
            Event::ParallelJoined(_) | Event::FanInFinished(_) => self.fold_branch(event),
            Event::LoopRestarted(restarted) => self.restart(restarted),
            Event::BranchStarted(started) => self.begin_branch(started),
            Event::BranchFinished(finished) => self.end_branch(finished),
            Event::QuestionAsked(_) | Event::QuestionAnswered(_) => self.fold_branch(event),
            Event::RecoveryDecided(decided) => {
                let branch = &decided.attempt.task.branch;
                self.note_stored(branch, &decided.stored_values, &decided.outcome);
                self.note_decided(decided);
                self.fold_branch(event);
            }
            Event::RunTakenOver(taken) => self.driver = Some(taken.machine.as_str().into()),
            Event::RunPaused(_) => self.paused = true,
            // The outcome of the attempt is in `stage.finished`.
            Event::StatusIngested(_) => {}
            Event::RunStalled(stalled) => self.stall(stalled),
            Event::CycleBroken(_) | Event::BranchExited(_) => {}
        }
    }

    /// Stores the sequence number of a folded event.
    pub fn note_position(&mut self, seq: u64, event: &Event) {
        if let Some(stopped) = &mut self.stopped {
            stopped.note_position(seq, event);
        }
        self.seq = seq;
        match event.stream() {
            StreamKey::Run => self.head = seq,
            // The map no longer contains the branch if a later event of the same append ended it.
            StreamKey::Branch(id) => {
                if let Some(branch) = self.branches.get_mut(&id) {
                    Arc::make_mut(branch).head = seq;
                }
            }
            StreamKey::Task(task) => {
                let branch = self.branches.get_mut(&task.branch).map(Arc::make_mut);
                if let Some(open) = branch.and_then(|branch| branch.open_task(&task)) {
                    open.head = seq;
                    open.ready_seq = if matches!(event, Event::StageReady(_)) { seq } else { open.ready_seq };
                }
            }
            StreamKey::Question(id) => {
                if let Some(open) = self.question_mut(&id) {
                    open.head = seq;
                }
            }
        }
    }

    /// Returns a branch of the run, or an empty branch if the branch has no events yet.
    pub fn branch(&self, id: &BranchId) -> &Arc<Branch> {
        self.branches.get(id).unwrap_or(&EMPTY_BRANCH)
    }

    /// Returns the main branch.
    pub fn main(&self) -> &Arc<Branch> {
        self.branch(&BranchId::main())
    }

    /// Returns true while an attempt of any branch is running.
    pub fn is_under_way(&self) -> bool {
        self.branches.values().any(|branch| branch.is_under_way())
    }

    /// Returns true if an attempt of any branch is ready and not yet claimed.
    pub fn has_unclaimed(&self) -> bool {
        self.branches.values().any(|branch| branch.open().is_some_and(|open| open.attempt_id.is_none()))
    }

    /// Returns the attempts that wait for a quota at a provider.
    pub fn waiting_for_quota(&self) -> impl Iterator<Item = (&OpenTask, &QuotaWait)> {
        let open = self.branches.values().filter_map(|branch| branch.open());
        open.filter_map(|open| Some((open, open.waits_for_quota()?)))
    }

    /// Returns the number of loop restarts of the run.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the id of the run, or `None` before `run.started`.
    pub fn run_id(&self) -> Option<&RunId> {
        self.run.as_ref().map(|run| &run.run_id)
    }

    /// Returns true if the run has ended and was not stopped by a signal or a limit of the run.
    pub fn is_over(&self) -> bool {
        self.verdict.is_some() && self.stopped.is_none()
    }

    /// Returns true if the run can be resumed: it has not ended, or it failed and was not canceled.
    pub fn can_be_resumed(&self) -> bool {
        let failed = || self.verdict.as_ref().is_some_and(|ended| ended.status == Verdict::Fail);
        !self.is_over() || failed() && self.canceled.is_none()
    }

    fn branch_mut(&mut self, id: &BranchId) -> &mut Branch {
        Arc::make_mut(self.branches.entry(id.clone()).or_default())
    }

    fn fold_branch(&mut self, event: &Event) {
        let Some(id) = event.branch() else { return };
        if self.branch_mut(id).fold(event) {
            self.steps = self.steps.saturating_add(1);
            self.node_usages.count_step(event);
        }
    }

    /// Only commands that a verifier ran prove a result (decision receipts-prove-verdicts). A verification that skipped
    /// a part of its commands proves nothing.
    fn note_proof(&mut self, finished: &StageFinished) {
        let is_verifier = self.run.as_ref().is_some_and(|run| run.role(&finished.handler) == Role::Verifier);
        let (status, work) = (finished.outcome.status, finished.attempt.task.work);
        let is_partial = status == Status::PartialSuccess || !finished.commands.dropped_checks.is_empty();
        let is_whole = work != Work::Handler || !is_partial;
        let is_proven = status.satisfies_gate() && is_whole && finished.has_passing_receipt();
        if is_verifier && is_proven && finished.is_final() {
            let task = &finished.attempt.task;
            self.branch_mut(&task.branch).update(&task.node, |history| history.proven = true);
        }
        if !finished.commands.dropped_checks.is_empty() && finished.is_final() {
            let (task, dropped) = (&finished.attempt.task, finished.commands.dropped_checks.as_slice());
            self.branch_mut(&task.branch).update(&task.node, |history| history.dropped = dropped.into());
        }
    }

    fn note_stored(&mut self, branch: &BranchId, stored: &BTreeSet<String>, outcome: &Outcome) {
        let (context, updates) = (&self.branch(branch).context, &outcome.context_updates);
        let new: u64 = stored.iter().filter_map(|key| Some(context.newly_stored(key, updates.get(key)?))).sum();
        self.stored_bytes = self.stored_bytes.saturating_add(new);
    }

    fn begin_branch(&mut self, started: &BranchStarted) {
        let parent = Arc::clone(self.branch(&started.parent));
        let Some(join) = parent.parallel().map(|parallel| parallel.join.clone()) else { return };
        let BranchStarted { branch, parent: of, to, context, .. } = started.clone();
        let mut child = parent.child(of, join, to);
        context.into_iter().for_each(|context| child.begin_child_pipeline(context));
        self.branches.insert(branch, Arc::new(child));
        self.branch_mut(&started.parent).begin_child();
    }

    /// Delivers the steering message of a supervisor to its child, while the child runs.
    fn steer(&mut self, observed: &ChildObserved) {
        let (Some(text), Some(parallel)) =
            (&observed.steering, self.branch(&observed.branch).parallel().map(Arc::clone))
        else {
            return;
        };
        for child in parallel.children.iter() {
            if let Some(branch) = self.branches.get_mut(&child.id) {
                Arc::make_mut(branch).context.set(STEERING_KEY, Value::from(text.as_str()));
            }
        }
    }

    /// Moves a branch that ended into its parallel node, which keeps it until the fan-in has chosen.
    fn end_branch(&mut self, finished: &BranchFinished) {
        if let Some(branch) = self.branches.remove(&finished.branch) {
            self.branch_mut(&finished.parent).end_child(finished, branch);
        }
    }

    fn count_time(&mut self, at: Timestamp, event: &Event) {
        if let (Some(last), false) = (self.at, matches!(event, Event::RunResumed(_))) {
            let elapsed = at.as_millisecond().saturating_sub(last.as_millisecond());
            self.driven_ms = self.driven_ms.saturating_add(u64::try_from(elapsed).unwrap_or(0));
        }
        self.at = Some(at);
    }

    /// Returns true if the run's time limit canceled an attempt on a branch of a parallel node. The branch has not
    /// failed: a resume executes the attempt again. On the main branch, a resume continues at the stage instead.
    fn is_cut_on_a_branch(&self, finished: &StageFinished) -> bool {
        let is_of_time = |failure: &Failure| failure.code == FailureCode::RUN_WALL_TIME;
        was_cut(finished)
            && self.branch(&finished.attempt.task.branch).origin.is_some()
            && finished.outcome.failure.as_ref().is_some_and(is_of_time)
    }

    fn without_stop(&self) -> Box<Self> {
        Box::new(Self { stopped: None, ..self.clone() })
    }

    /// Folds a resume: another process drives the run from here. If a signal or a limit stopped the run, the state
    /// before the stop is restored, but the totals of time and spending include what was added since.
    fn resume(&mut self, resumed: &RunResumed) {
        self.continue_stopped();
        self.driver = Some(resumed.worker.as_str().into());
        self.overspent = None;
        for (key, value) in &resumed.context {
            self.branch_mut(&BranchId::main()).context.set(key.as_str(), Value::String(value.clone()));
        }
        if let Some(from) = &resumed.from {
            (self.verdict, self.canceled) = (None, None);
            // The branches of parallel nodes are removed. They begin again if the run reaches the parallel node again.
            self.branches.retain(|id, _| *id == BranchId::main());
            self.branches.values_mut().for_each(|branch| Arc::make_mut(branch).resume_at_node(from));
        }
        self.branches.values_mut().for_each(|branch| Arc::make_mut(branch).abandon_attempt());
        if std::mem::take(&mut self.paused) {
            self.branches.values_mut().for_each(|branch| Arc::make_mut(branch).forget_quota());
        }
        let had_script = self.run.as_ref().is_some_and(|run| run.model.script_digest.is_some());
        if resumed.script_digest.is_some() && !had_script {
            // The first script of a run answers from its first turn, even if a model answered turns before.
            self.branches.values_mut().for_each(|branch| Arc::make_mut(branch).forget_turns());
        }
        let begun = self.run.take().map(Arc::unwrap_or_clone);
        self.run = begun.map(|started| Arc::new(started.resumed(resumed)));
    }

    fn continue_stopped(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            let ended = std::mem::replace(self, *stopped);
            self.at = ended.at;
            self.driven_ms = ended.driven_ms;
            self.refusals_total = ended.refusals_total;
            self.spending = ended.spending;
            self.stored_bytes = ended.stored_bytes;
            self.node_usages = ended.node_usages;
            self.caches_filled = ended.caches_filled;
            self.steered = ended.steered;
        }
    }

    fn finish(&mut self, finished: &RunFinished) {
        for (id, branch) in &mut self.branches {
            let exit = finished.exit_node.as_ref().filter(|_| *id == BranchId::main());
            Arc::make_mut(branch).end(exit);
        }
        self.verdict = Some(Arc::new(finished.clone()));
    }
}

/// Returns true if a limit of the run or a full disk ended it. With a higher limit or more space, the run can continue.
fn can_continue(finished: &RunFinished) -> bool {
    let limits = [
        FailureCode::RUN_DISK,
        FailureCode::RUN_STEPS,
        FailureCode::RUN_WALL_TIME,
        FailureCode::RUN_TOKENS,
        FailureCode::RUN_COST,
    ];
    let is_limit = |failure: &Failure| failure.class == FailureClass::Budget && limits.contains(&failure.code);
    let is_full = |failure: &Failure| failure.code == FailureCode::RUN_DISK_FULL;
    finished.failure.as_ref().is_some_and(|failure| is_limit(failure) || is_full(failure))
}

/// Returns true for an attempt that ended because it was canceled. After a resume, such an attempt is ignored.
pub(crate) fn was_cut(finished: &StageFinished) -> bool {
    finished.ending == Ending::Canceled
}
