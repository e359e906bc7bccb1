//! Runs a pipeline with given answers, without journal, clock or component. Only tests use it, to see what is decided.

#![cfg(test)]

use crate::decide::{decide, finalize_attempt};
use crate::event::{
    Attempt, AttemptId, BranchId, Digest, Event, NodeId, Record, RunStarted, SCHEMA_VERSION, StageFinished,
    StageStarted, Task, Work,
};
use crate::state::{OpenTask, RunState};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Inputs, dot, lower};
use glovebox_record::Outcome;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Lowers a file without linting it: decisions must stay inside their bounds for any graph.
pub(crate) fn pipeline(source: &str) -> Pipeline {
    let (ast, _) = dot::parse(Source::new(source));
    lower::lower(Source::new(source), ast, &Inputs::default()).0
}

/// The first visit of a node.
pub(crate) fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

/// A first record with these bounds.
pub(crate) fn started(pipeline: &Pipeline, steps_max: u64, wall_max_ms: Option<u64>) -> RunStarted {
    RunStarted {
        schema_version: SCHEMA_VERSION,
        engine_version: "0".into(),
        run_id: "run".into(),
        generation: 0,
        pipeline_name: pipeline.name.clone(),
        goal: pipeline.goal.clone(),
        graph: BTreeMap::new(),
        pipeline_path: "pipeline.dot".into(),
        pipeline_digest: Digest::ZERO,
        files: BTreeMap::new(),
        rules: Vec::new(),
        transformed_digest: None,
        verifiers: std::collections::BTreeSet::new(),
        components: BTreeMap::new(),
        plan_digest: Digest::ZERO,
        capabilities_digest: None,
        from: None,
        base_digest: Digest::ZERO,
        source_dir: ".".into(),
        model: "simulated".into(),
        simulated: std::collections::BTreeSet::new(),
        script_digest: None,
        inputs: BTreeMap::new(),
        sandbox_tier: "none".into(),
        sandbox: None,
        steps_max,
        wall_max_ms,
        holdouts: None,
        labels: BTreeMap::new(),
    }
}

fn attempt(open: &OpenTask) -> Attempt {
    let id = open
        .attempt_id
        .clone()
        .unwrap_or_else(|| AttemptId::new(format!("{}-{}-{}", open.task.node, open.task.visit, open.ordinal)));
    Attempt { task: open.task.clone(), ordinal: open.ordinal, id }
}

/// An attempt's record with this answer and nothing else.
pub(crate) fn finished(open: &OpenTask, outcome: Outcome) -> StageFinished {
    StageFinished { turns_used: 1, duration_ms: 1, ..StageFinished::of(attempt(open), outcome) }
}

/// A run in the making.
pub(crate) struct Simulation<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) state: RunState,
    pub(crate) records: Vec<Record>,
    /// Milliseconds that each attempt takes.
    pub(crate) attempt_ms: i64,
    at: Timestamp,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(pipeline: &'a Pipeline) -> Self {
        let at = Timestamp::UNIX_EPOCH;
        Self { pipeline, state: RunState::default(), records: Vec::new(), attempt_ms: 1, at }
    }

    /// A run from its first record to its end.
    pub(crate) fn run(
        pipeline: &'a Pipeline,
        steps_max: u64,
        answer: &mut dyn FnMut(&OpenTask) -> StageFinished,
    ) -> Self {
        let mut run = Self::new(pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(pipeline, steps_max, None)))]);
        run.go_on(answer);
        run
    }

    /// The state after these records, and what was outstanding.
    pub(crate) fn from_prefix(pipeline: &'a Pipeline, prefix: &[Record]) -> Self {
        let mut run = Self::new(pipeline);
        for record in prefix {
            run.state.apply(record);
            run.records.push(record.clone());
            run.at = record.at;
        }
        if let Some(last) = prefix.last() {
            let outstanding = decide(pipeline, &run.state, &last.event);
            run.append(outstanding);
        }
        run
    }

    /// Appends events and all that follows.
    pub(crate) fn append(&mut self, mut events: Vec<Event>) {
        events.reverse();
        while let Some(event) = events.pop() {
            let seq = self.state.seq + 1;
            let record = Record { seq, at: self.at, prev: Digest::ZERO, hash: Digest::ZERO, event };
            self.state.apply(&record);
            events.splice(0..0, decide(self.pipeline, &self.state, &record.event));
            self.records.push(record);
        }
    }

    /// Claims, answers and commits until the run has ended.
    pub(crate) fn go_on(&mut self, answer: &mut dyn FnMut(&OpenTask) -> StageFinished) {
        while self.state.verdict.is_none() {
            let open = self.state.main().open().cloned().expect("a run that has not ended waits for an attempt");
            self.at = open.due_at.map_or(self.at, |due| due.max(self.at));
            self.append(vec![Event::StageStarted(StageStarted { attempt: attempt(&open), worker: "test".into() })]);
            let open = self.state.main().open().cloned().expect("it was just claimed");
            self.at = self.at.checked_add(SignedDuration::from_millis(self.attempt_ms)).expect("early enough");
            let mut finished = answer(&open);
            finalize_attempt(self.pipeline, &self.state, false, &mut finished);
            self.append(vec![Event::StageFinished(Box::new(finished))]);
        }
    }

    /// The nodes that were executed, one word per attempt.
    pub(crate) fn attempts(&self) -> String {
        let nodes = self.records.iter().filter_map(|record| match &record.event {
            Event::StageFinished(finished) => Some(finished.attempt.task.node.as_str()),
            _ => None,
        });
        nodes.collect::<Vec<_>>().join(" ")
    }

    /// `success EXIT` or `fail CODE: REASON`.
    pub(crate) fn verdict(&self) -> String {
        let ended = self.state.verdict.as_ref().expect("the run has ended");
        match (&ended.failure, &ended.exit_node) {
            (Some(failure), _) => format!("fail {}: {}", failure.code, failure.reason),
            (None, exit) => format!("success {}", exit.as_ref().map_or("?", NodeId::as_str)),
        }
    }
}
