//! One task for each visit of a stage, with its attempts, what it waits for, and what was decided about its writes.
//!
//! It is a fold of the records of a run, for a person who looks for the reason why a run does not get on: a command that fails
//! again and again, an agent that changes nothing, writes outside of a scope, a used-up quota.

use glovebox_journal::event::{
    AnsweredBy, Attempt, AttemptId, Event, FailureMeta, QuestionId, Record, RecoveryAction, RecoveryReason, RunId,
    StageFinished, Task, Work, time_format,
};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, FailureClass, Refusal, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its next attempt has not begun.
    Queued,
    /// An attempt has begun and has not ended.
    Running,
    /// Its last attempt ended, and did not fail.
    Done,
    /// Its last attempt failed, and no other one follows.
    Failed,
    /// It waits for something; see `blocked`.
    Blocked,
}

impl TaskState {
    /// Every state, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Blocked];

    /// Returns the state as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Blocked {
    /// It wrote outside of its scope. A person, or the author, decides.
    NeedsRework {
        /// The question that a person can answer; absent if the attempt failed for good.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
        /// The refused operations.
        refused: Vec<Refusal>,
    },
    /// The provider of its model has no requests left for it.
    QuotaWait {
        /// The provider.
        provider: String,
        /// When the next attempt begins.
        #[serde(with = "time_format")]
        #[schemars(with = "String")]
        until: Timestamp,
    },
    /// A person must answer a question.
    NeedsAnswer {
        /// The question.
        question: QuestionId,
    },
}

/// One visit of a stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskRow {
    /// `RUN.GENERATION.BRANCH.NODE.VISIT`, followed by `.verify` for the verification of a visit, and by `.join` for the merge
    /// of branches.
    pub id: String,
    /// Id of the run.
    pub run_id: RunId,
    /// The visit.
    #[serde(flatten)]
    pub task: Task,
    /// State of the task.
    pub state: TaskState,
    /// What the task waits for; absent if it waits for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// When the next attempt begins, if one follows; absent otherwise.
    #[serde(with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub next_attempt_at: Option<Timestamp>,
    /// The attempts, in order.
    pub attempts: Vec<TaskAttempt>,
    /// Decisions about writes outside of the scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<TaskDecision>,
}

/// One attempt of a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskAttempt {
    /// Number of the attempt, counted from 1.
    pub ordinal: u32,
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Number of the record of its beginning.
    pub started_record: u64,
    /// Number of the record of its end; absent if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_record: Option<u64>,
    /// How it ended; absent if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Why it failed; absent if it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// True if the stage had to change files and changed none; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_change: bool,
    /// Description of the failure of a verification; absent for other attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// The commands of the attempt with their exit codes, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<TaskCommand>,
}

/// One command of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskCommand {
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Its exit code; absent if it did not exit by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// A decision about writes outside of the scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskDecision {
    /// Number of the record.
    pub record: u64,
    /// What was decided.
    pub action: RecoveryAction,
    /// The reason, if the host decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<RecoveryReason>,
    /// How the decision was made.
    pub how: AnsweredBy,
    /// The name of the person; empty if no person decided.
    pub by: String,
    /// The paths that the decision allowed or discarded.
    #[schemars(with = "Vec<String>")]
    pub paths: Vec<ScopePath>,
}

/// Maximum number of commands of one attempt.
const COMMANDS_MAX: usize = 50;

/// The tasks of a run.
#[derive(Debug, Default)]
pub struct Tasks {
    run: Option<RunId>,
    rows: Vec<TaskRow>,
    by_task: BTreeMap<Task, usize>,
}

impl Tasks {
    /// Adds what a record says.
    pub fn add(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted(started) => self.run = Some(started.run_id.clone()),
            Event::StageReady(ready) => self.row(&ready.task).state = TaskState::Queued,
            Event::StageStarted(started) => self.begin(&started.attempt, record.seq),
            Event::StageFinished(finished) => self.end(finished, record.seq),
            Event::StageHeld(held) => {
                let row = self.row(&held.attempt.task);
                row.state = TaskState::Blocked;
                row.next_attempt_at = Some(held.resume_at);
                row.blocked = Some(Blocked::QuotaWait { provider: held.provider.clone(), until: held.resume_at });
                if let Some(attempt) = row.attempts.last_mut() {
                    attempt.failure = Some(held.failure.clone());
                }
            }
            Event::StageRetrying(retrying) => {
                let row = self.row(&retrying.task);
                (row.state, row.blocked) = (TaskState::Queued, None);
                row.next_attempt_at = Some(retrying.due_at);
            }
            Event::QuestionAsked(asked) => {
                let question = asked.question.clone();
                let row = self.row(&asked.task());
                row.state = TaskState::Blocked;
                row.blocked = Some(match (asked.recovery.is_some(), row.blocked.take()) {
                    (true, Some(Blocked::NeedsRework { refused, .. })) => {
                        Blocked::NeedsRework { question: Some(question), refused }
                    }
                    (true, _) => Blocked::NeedsRework { question: Some(question), refused: Vec::new() },
                    (false, _) => Blocked::NeedsAnswer { question },
                });
            }
            Event::QuestionAnswered(answered) => {
                let task = Task::for_handler(answered.generation, &answered.branch, &answered.node, answered.visit);
                let row = self.row(&task);
                row.blocked = None;
                row.state = if answered.recovery { TaskState::Queued } else { TaskState::Done };
            }
            Event::RecoveryDecided(decided) => {
                let paths = decided.changes.iter().map(|change| change.path.clone()).collect();
                let (action, reason, how) = (decided.action, decided.reason, decided.how);
                let decision = TaskDecision { record: record.seq, action, reason, how, by: decided.by.clone(), paths };
                let row = self.row(&decided.attempt.task);
                row.decisions.push(decision);
                row.blocked = None;
                row.state = state_after(decided.outcome.status);
            }
            _ => {}
        }
    }

    /// Returns the tasks in the order of their first records.
    pub fn finish(self) -> Vec<TaskRow> {
        self.rows
    }

    fn begin(&mut self, attempt: &Attempt, seq: u64) {
        let row = self.row(&attempt.task);
        (row.state, row.blocked, row.next_attempt_at) = (TaskState::Running, None, None);
        row.attempts.push(TaskAttempt {
            ordinal: attempt.ordinal,
            attempt_id: attempt.id.clone(),
            started_record: seq,
            finished_record: None,
            status: None,
            failure: None,
            no_change: false,
            error_meta: None,
            commands: Vec::new(),
        });
    }

    fn end(&mut self, finished: &StageFinished, seq: u64) {
        let row = self.row(&finished.attempt.task);
        let (outcome, failure) = (&finished.outcome, finished.outcome.failure.clone());
        row.state = if finished.follow_up.retrying { TaskState::Queued } else { state_after(outcome.status) };
        let is_scope = failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Scope);
        if is_scope && !finished.follow_up.retrying {
            row.state = TaskState::Blocked;
            row.blocked = Some(Blocked::NeedsRework { question: None, refused: finished.refusals.listed.clone() });
        }
        let Some(attempt) = row.attempts.last_mut() else { return };
        attempt.finished_record = Some(seq);
        attempt.status = Some(outcome.status);
        attempt.failure = failure;
        attempt.no_change = finished.follow_up.no_change;
        attempt.error_meta = FailureMeta::for_stage(finished);
        let receipts = finished.commands.receipts.iter().take(COMMANDS_MAX);
        attempt.commands =
            receipts.map(|receipt| TaskCommand { argv: receipt.argv.clone(), code: receipt.code }).collect();
    }

    fn row(&mut self, task: &Task) -> &mut TaskRow {
        let at = *self.by_task.entry(task.clone()).or_insert(self.rows.len());
        if at == self.rows.len() {
            let run_id = self.run.clone().unwrap_or_else(|| RunId::new(""));
            self.rows.push(TaskRow {
                id: id(&run_id, task),
                run_id,
                task: task.clone(),
                state: TaskState::Queued,
                blocked: None,
                next_attempt_at: None,
                attempts: Vec::new(),
                decisions: Vec::new(),
            });
        }
        &mut self.rows[at]
    }
}

fn state_after(status: Status) -> TaskState {
    if matches!(status, Status::Fail | Status::Retry) { TaskState::Failed } else { TaskState::Done }
}

fn id(run: &RunId, task: &Task) -> String {
    let Task { generation, branch, node, visit, work } = task;
    let work = match work {
        Work::Handler => "",
        Work::Verify => ".verify",
        Work::Join => ".join",
    };
    format!("{run}.{generation}.{branch}.{node}.{visit}{work}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Simulation, finished, held, pipeline};
    use glovebox_record::{FailureCode, Outcome};

    fn graph(text: &str) -> glovebox_pipeline::ir::Pipeline {
        pipeline(&format!("digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare] {text} }}"))
    }

    fn tasks(run: &Simulation<'_>) -> Vec<TaskRow> {
        let mut tasks = Tasks::default();
        run.records.iter().for_each(|record| tasks.add(record));
        tasks.finish()
    }

    #[test]
    fn a_task_has_its_attempts_and_the_time_of_the_next() {
        let graph = graph("a [max_retries=1]; start -> a -> exit");
        let run = Simulation::run(&graph, 30, &mut |open| {
            let failure = Failure::new(FailureClass::Deterministic, FailureCode::NO_TESTS, "exit 1");
            finished(open, Outcome { failure: Some(failure), ..Outcome::new(Status::Fail) })
        });
        let all = tasks(&run);
        let a = all.iter().find(|task| task.task.node == "a").unwrap();
        assert_eq!((a.id.as_str(), a.state), ("run.0.main.a.1", TaskState::Failed));
        assert_eq!(a.attempts.len(), 2);
        assert_eq!(a.attempts[0].failure.as_ref().unwrap().reason, "exit 1");
    }

    #[test]
    fn a_refused_write_needs_rework() {
        let graph = graph("a; start -> a -> exit");
        let run = Simulation::run(&graph, 30, &mut |open| {
            let failure = Failure::new(FailureClass::Scope, FailureCode::SCOPE_WRITE, "outside");
            let mut ended = finished(open, Outcome { failure: Some(failure), ..Outcome::new(Status::Fail) });
            ended.refusals.listed = vec![Refusal::new("write", "tests/a", "outside of the scope", "grant it")];
            ended
        });
        let all = tasks(&run);
        let a = all.iter().find(|task| task.task.node == "a").unwrap();
        let Some(Blocked::NeedsRework { refused, .. }) = &a.blocked else { panic!("{a:?}") };
        assert_eq!((a.state, refused[0].path.as_str()), (TaskState::Blocked, "tests/a"));
    }

    #[test]
    fn a_used_up_quota_names_the_time() {
        let graph = graph("a; start -> a -> exit");
        let mut run = Simulation::new(&graph);
        run.append(vec![Event::RunStarted(Box::new(crate::simulation::started(&graph, 30, None)))]);
        let until = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60);
        let open = run.state.branches.values().find_map(|branch| branch.open()).cloned().unwrap();
        run.append(vec![Event::StageHeld(Box::new(held(&open, until)))]);
        let all = tasks(&run);
        let a = all.iter().find(|task| task.task.node == "a").unwrap();
        assert_eq!(a.blocked, Some(Blocked::QuotaWait { provider: "anthropic".into(), until }));
        assert_eq!(serde_json::to_value(a).unwrap()["blocked"]["reason"], "quota_wait");
    }
}
