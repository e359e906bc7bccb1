//! Runs a pipeline with given outcomes of its stages, without journal, clock or component, for tests of decisions.

use crate::decide::{decide, finalize_attempt, next_step};
use crate::run_state::{OpenTask, RunState, resume_state};
use glovebox_journal::event::{
    Attempt, AttemptId, BranchId, Digest, Event, EventText, NodeId, Receipt, Record, RunStarted, SCHEMA_VERSION,
    StageFinished, StageHeld, StageModel, StageStarted, StartedModel, StartedPipeline, StartedPlan, StartedSandbox,
    StartedWorkspace, Task, Work,
};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Inputs, dot, lower};
use glovebox_record::no_change::NoChangeRule;
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, Outcome, RunBounds, Tier};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Lowers a file without linting it: decisions must stay inside their bounds for any graph.
pub fn pipeline(source: &str) -> Pipeline {
    let (ast, _) = dot::parse(Source::new(source));
    lower::lower(Source::new(source), ast, &Inputs::default()).0
}

/// Returns the task of the first visit of a node.
pub fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

/// Returns the first record of a run with these limits.
pub fn started(pipeline: &Pipeline, steps_max: u64, wall_max_ms: Option<u64>) -> RunStarted {
    RunStarted {
        schema_version: SCHEMA_VERSION,
        engine_version: "0".into(),
        run_id: "run".into(),
        forked_from: None,
        generation: 0,
        from: None,
        labels: BTreeMap::new(),
        pipeline: StartedPipeline {
            name: pipeline.name.clone(),
            goal: pipeline.goal.clone(),
            path: "pipeline.dot".into(),
            ..StartedPipeline::default()
        },
        plan: StartedPlan::default(),
        workspace: StartedWorkspace { source_dir: ".".into(), ..StartedWorkspace::default() },
        model: StartedModel { provider: "simulated".into(), ..StartedModel::default() },
        commands: StartedSandbox { tier: "none".into(), sandbox: None },
        settings: None,
        bounds: RunBounds { steps_max, wall_max_ms, ..RunBounds::default() },
    }
}

fn attempt(open: &OpenTask) -> Attempt {
    let id = open
        .attempt_id
        .clone()
        .unwrap_or_else(|| AttemptId::new(format!("{}-{}-{}", open.task.node, open.task.visit, open.ordinal)));
    Attempt { task: open.task.clone(), ordinal: open.ordinal, id }
}

/// Returns the receipt of a command with this exit code and ending.
pub fn receipt(code: Option<i32>, how: CommandEnding) -> Receipt {
    let nothing = String::new;
    Receipt {
        id: "r".to_owned(),
        argv: vec!["sh".to_owned()],
        cwd: nothing(),
        program: None,
        env_names: Vec::new(),
        tier: Tier::Full,
        how,
        code,
        duration_ms: 1,
        subject: false,
        hook: None,
        stdout_digest: Digest::ZERO,
        stdout_bytes: 0,
        stderr_digest: Digest::ZERO,
        stderr_bytes: 0,
        degradations: Vec::new(),
        over: None,
        no_proof: None,
        printed_class: None,
    }
}

/// Returns the end of an attempt with this outcome.
pub fn finished(open: &OpenTask, outcome: Outcome) -> StageFinished {
    let model = StageModel { turns_used: 1, ..StageModel::default() };
    StageFinished { model, duration_ms: 1, ..StageFinished::new(attempt(open), outcome) }
}

/// Returns the record of an attempt that waits for a quota until this time.
pub fn held(open: &OpenTask, resume_at: Timestamp) -> StageHeld {
    let failure = Failure::new(FailureClass::Budget, FailureCode::PROVIDER_QUOTA, "no requests left");
    StageHeld { attempt: attempt(open), failure, provider: "anthropic".to_owned(), resume_at }
}

/// A simulated run.
pub struct Simulation<'a> {
    pub pipeline: &'a Pipeline,
    pub no_change: Option<&'a NoChangeRule>,
    pub state: RunState,
    pub records: Vec<Record>,
    /// Milliseconds that each attempt takes.
    pub attempt_ms: i64,
    at: Timestamp,
}

impl<'a> Simulation<'a> {
    pub fn new(pipeline: &'a Pipeline) -> Self {
        let at = Timestamp::UNIX_EPOCH;
        Self { pipeline, no_change: None, state: RunState::default(), records: Vec::new(), attempt_ms: 1, at }
    }

    /// Simulates a run from its first record to its end.
    pub fn run(pipeline: &'a Pipeline, steps_max: u64, answer: &mut dyn FnMut(&OpenTask) -> StageFinished) -> Self {
        let mut run = Self::new(pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(pipeline, steps_max, None)))]);
        run.go_on(answer);
        run
    }

    /// Restores the state after these records, and appends the decisions that were pending.
    pub fn from_prefix(pipeline: &'a Pipeline, prefix: &[Record]) -> Self {
        let mut run = Self::new(pipeline);
        let (state, pending) = resume_state(prefix).expect("the run was started");
        run.state = state;
        run.records = prefix.to_vec();
        run.at = prefix.last().map_or(run.at, |last| last.at);
        for event in pending.0 {
            let follow = decide(pipeline, &run.state, &event);
            run.append_without_steps(follow);
        }
        run.append(Vec::new());
        run
    }

    /// Appends events and all events that follow from them.
    pub fn append(&mut self, events: Vec<Event>) {
        self.append_without_steps(events);
        loop {
            let step = next_step(self.pipeline, &self.state);
            if step.is_empty() {
                return;
            }
            self.append_without_steps(step);
        }
    }

    fn append_without_steps(&mut self, mut events: Vec<Event>) {
        events.reverse();
        while let Some(event) = events.pop() {
            let seq = self.state.seq + 1;
            let record =
                Record { seq, at: self.at, prev: Digest::ZERO, hash: Digest::ZERO, event, text: EventText::default() };
            self.state.apply(&record);
            events.splice(0..0, decide(self.pipeline, &self.state, &record.event).into_iter().rev());
            self.records.push(record);
        }
    }

    /// Claims and ends attempts until the run has ended.
    pub fn go_on(&mut self, answer: &mut dyn FnMut(&OpenTask) -> StageFinished) {
        while self.state.verdict.is_none() {
            let others = self.state.branches.len() > 1;
            // In a run with several branches, the next attempt may start before the previous one has ended.
            if let Some(open) = self.next_open(false).filter(|_| others || self.next_open(true).is_none()) {
                self.at = open.due_at.map_or(self.at, |due| due.max(self.at));
                self.append(vec![Event::StageStarted(StageStarted {
                    attempt: attempt(&open),
                    worker: "test".into(),
                    machine: None,
                    moved: None,
                })]);
            }
            let open = self.next_open(true).expect("a run that has not ended waits for an attempt");
            self.at = self.at.checked_add(SignedDuration::from_millis(self.attempt_ms)).expect("early enough");
            let mut finished = answer(&open);
            finalize_attempt(self.pipeline, self.no_change, &self.state, false, &mut finished);
            self.append(vec![Event::StageFinished(Box::new(finished))]);
        }
    }

    /// Returns the open attempt that is due first, among the claimed ones if `is_claimed`, otherwise among the
    /// unclaimed ones.
    fn next_open(&self, is_claimed: bool) -> Option<OpenTask> {
        let open = self.state.branches.values().filter_map(|branch| branch.open());
        open.filter(|open| open.attempt_id.is_some() == is_claimed).min_by_key(|open| open.due_at).cloned()
    }

    /// Returns the names of the executed nodes, one for each attempt.
    pub fn attempts(&self) -> String {
        let ended = self.records.iter().filter_map(|record| record.event.stage_finished());
        ended.map(|finished| finished.attempt.task.node.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the events after the last attempt: `BRANCH NODE POINT` for the exit of a branch.
    pub fn ending(&self) -> Vec<String> {
        let last = self.records.iter().rposition(|record| record.event.stage_finished().is_some());
        let after = self.records.iter().skip(last.map_or(0, |last| last + 1));
        let told = after.map(|record| match &record.event {
            Event::BranchExited(exit) => {
                let node = exit.node.as_ref().map_or("-", |node| node.as_str());
                format!("{} {node} {:?}", exit.branch, exit.point)
            }
            event => event.kind().to_owned(),
        });
        told.collect()
    }

    /// Returns the verdict as `success EXIT` or `fail CODE: REASON`.
    pub fn verdict(&self) -> String {
        let ended = self.state.verdict.as_ref().expect("the run has ended");
        match (&ended.failure, &ended.exit_node) {
            (Some(failure), _) => format!("fail {}: {}", failure.code, failure.reason),
            (None, exit) => format!("success {}", exit.as_ref().map_or("?", NodeId::as_str)),
        }
    }
}
