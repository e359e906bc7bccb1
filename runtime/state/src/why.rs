//! The explanation of a run: each visit with its attempts, and for every edge why it was taken or not, with the context
//! values that the decision read.
//!
//! The explanation is computed from the journal and the pipeline of the run. The reasons come from the journal, and the
//! values from the context at that record. Nothing is decided here: for a failure that ended the run, the router is
//! called again with the same input and gives the same result.

mod edge;
mod parallel;

pub use edge::{EdgeWhy, ValueRead};
pub use parallel::{BranchWhy, ChoiceWhy, JoinWhy};

use crate::evidence::Replay;
use crate::evidence::{RunStatus, is_first};
use glovebox_journal::event::{
    BranchId, Event, FailureMeta, GateUnmet, LoopRestarted, NodeId, Record, RecoveryDecided, RouteTaken, StageFinished,
    StagePassed, Work,
};
use glovebox_journal::ports::PortError;
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::source::Source;
use glovebox_record::{Failure, Outcome, Status};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Version of the output of `glovebox why --json`.
pub const WHY_SCHEMA_VERSION: u32 = 1;

/// The explanation of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "glovebox why --json")]
pub struct Why {
    /// Always 1.
    pub schema_version: u32,
    /// The id of the run.
    pub run_id: String,
    /// The steps of the run, in order.
    pub steps: Vec<Step>,
    /// The end of the run; absent if the run has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EndWhy>,
}

/// One step of a branch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Step {
    /// Sequence number of the journal record that completed the step.
    pub record: u64,
    /// The generation of the run; absent for generation 0.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The node.
    pub node: NodeId,
    /// True if a resume went back to before this step and undid it; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// What happened at the node.
    #[serde(flatten)]
    pub what: What,
}

/// What happened at a node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An attempt ended.
    Attempt(AttemptWhy),
    /// The node is a control node, and the engine passed it without an attempt.
    Passed(PassedWhy),
    /// The node is an exit, and a goal gate was not met or commands of the verify contract were skipped.
    GateUnmet(GateWhy),
    /// The run left the node.
    Route(RouteWhy),
    /// The run left the node on an edge that began a new generation.
    Restarted(RestartWhy),
    /// The node is a parallel node, and one of its branches ended.
    BranchEnded(BranchWhy),
    /// The node is a parallel node, and its branches were joined.
    Joined(JoinWhy),
    /// The node is a fan-in, and it chose a branch.
    Chose(ChoiceWhy),
    /// No edge matched, so the run ended.
    NoRoute(RouteWhy),
}

/// One attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptWhy {
    /// Number of the visit of the node.
    pub visit: u32,
    /// Number of the attempt within the visit.
    pub attempt: u32,
    /// True if the attempt executed the node's verification; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_verification: bool,
    /// The status of the attempt.
    pub status: &'static str,
    /// The failure of the attempt; absent if it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// True if the operator requires changes and the attempt made none; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_change: bool,
    /// More facts about the failure of a verification (decision failure-codes); absent for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// A person's decision about the disallowed writes of the attempt; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<&'static str>,
    /// True if another attempt follows.
    pub retried: bool,
    /// Delay before the next attempt, milliseconds; absent if none follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// A control node that the engine passed without an attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PassedWhy {
    /// Number of the visit of the node.
    pub visit: u32,
    /// The status that it passes on.
    pub status: &'static str,
}

/// An exit at which a goal gate was not met.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GateWhy {
    /// The first unmet goal gate in the order of the file, or the first stage that skipped commands of the verify
    /// contract.
    pub gate: NodeId,
    /// The last status of that node; absent if it was never visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The commands of the verify contract that the stage skipped; absent for a goal gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_checks: Vec<String>,
    /// The retry target; absent if none is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
}

/// The choice of the next node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouteWhy {
    /// The next node; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<NodeId>,
    /// The rule that decided, as in `route.taken` of the journal; `none` if no rule gave a node.
    pub how: String,
    /// The status with which the run left the node.
    pub status: &'static str,
    /// All outgoing edges, in the order of the file.
    pub edges: Vec<EdgeWhy>,
}

/// A new generation of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestartWhy {
    /// Number of the new generation.
    pub begins: u32,
    /// The node at which the new generation begins.
    pub at: NodeId,
    /// The keys of the context that the new generation keeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// The end of a run, with its original cause and the exit code.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndWhy {
    /// `success` or `fail`.
    pub status: &'static str,
    /// The class, code and reason of the failure; absent if the run succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The stage with that failure; absent if no stage caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<NodeId>,
    /// The commands of the last attempt of that stage that did not exit with 0, each with how it ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandWhy>,
    /// The exit code of the process that drove the run.
    pub exit_code: u8,
    /// The name of the exit code.
    pub exit_name: &'static str,
}

/// A command that did not exit with 0.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandWhy {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// `exit N`, or what ended the command.
    pub ended: String,
}

impl Why {
    /// Explains a run of this pipeline. `source` is the text of the pipeline file. Records are read in small batches.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or if it is no longer the journal that was verified.
    pub fn read(pipeline: &Pipeline, source: Source<'_>, journal: &impl ReadRecords) -> Result<Self, PortError> {
        let mut fold = WhyFold {
            pipeline,
            source,
            replay: Replay::default(),
            left: BTreeMap::new(),
            steps: Vec::new(),
            commands: Vec::new(),
        };
        reading::fold(journal, &mut fold)?;
        let WhyFold { replay: Replay { summary, .. }, steps, commands, .. } = fold;
        let has_ended = matches!(summary.status, RunStatus::Success | RunStatus::Fail);
        let commands = if summary.end.failed_node.is_some() { commands } else { Vec::new() };
        let end = EndWhy {
            status: summary.status.as_str(),
            failure: summary.end.failure,
            failed_node: summary.end.failed_node,
            commands,
            exit_code: summary.end.exit.code(),
            exit_name: summary.end.exit.name(),
        };
        let (run_id, mut steps) = (summary.run_id, steps);
        let in_force = journal.in_force();
        for step in &mut steps {
            step.is_undone = !in_force.iter().any(|range| range.contains(&step.record));
        }
        Ok(Self { schema_version: WHY_SCHEMA_VERSION, run_id, steps, end: has_ended.then_some(end) })
    }

    /// Keeps only the steps at one node.
    #[must_use]
    pub fn at(mut self, node: &NodeId) -> Self {
        self.steps.retain(|step| step.node == *node);
        self
    }
}

/// Returns the commands that did not exit with 0.
fn failed_commands(finished: &StageFinished) -> Vec<CommandWhy> {
    let failed = finished.commands.receipts.iter().filter(|receipt| receipt.code != Some(0));
    let ended = |code: Option<i32>, how: String| code.map_or(how, |code| format!("exit {code}"));
    failed
        .map(|receipt| CommandWhy { argv: receipt.argv.clone(), ended: ended(receipt.code, receipt.how.to_string()) })
        .collect()
}

struct WhyFold<'a> {
    pipeline: &'a Pipeline,
    source: Source<'a>,
    replay: Replay,
    /// The node that each branch is about to leave, with its outcome.
    left: BTreeMap<BranchId, (NodeId, Outcome)>,
    steps: Vec<Step>,
    /// The commands of the last stage that did not exit with 0.
    commands: Vec<CommandWhy>,
}

impl Fold for WhyFold<'_> {
    type Past = Replay;

    fn apply(&mut self, record: &Record) {
        if let Event::StageFinished(finished) = &record.event {
            self.commands = failed_commands(finished);
        }
        self.add(record);
    }

    fn go_back(&mut self, past: Replay) {
        self.replay.go_back(past);
    }
}

impl WhyFold<'_> {
    fn add(&mut self, record: &Record) {
        // A route is explained with the context before the record is folded.
        if let Event::RouteTaken(route) = &record.event {
            self.route(record, route);
        }
        // A restart is the last step of the generation that it ends.
        if let Event::LoopRestarted(restarted) = &record.event {
            let LoopRestarted { generation: begins, branch, from, to: at, kept, .. } = LoopRestarted::clone(restarted);
            self.step(record, &branch, &from, What::Restarted(RestartWhy { begins, at, kept }));
        }
        if let Event::BranchFinished(ended) = &record.event
            && let Some(parallel) =
                self.replay.state.branch(&ended.parent).parallel().map(|parallel| parallel.node.clone())
        {
            self.step(record, &ended.parent, &parallel, What::BranchEnded(BranchWhy::new(ended)));
        }
        self.replay.apply(record);
        match &record.event {
            Event::ParallelJoined(joined) => {
                let setting = self.pipeline.node(&joined.node).map(|node| node.parallel).unwrap_or_default();
                self.step(record, &joined.branch, &joined.node, What::Joined(JoinWhy::new(setting, joined)));
                self.leave(&joined.branch, &joined.node, &Outcome::ended(joined.status, joined.failure.as_ref()));
            }
            Event::FanInFinished(chosen) => {
                self.step(record, &chosen.branch, &chosen.node, What::Chose(ChoiceWhy::new(chosen)));
                self.leave(&chosen.branch, &chosen.node, &Outcome::ended(chosen.status, chosen.failure.as_ref()));
            }
            Event::StageFinished(finished) => self.attempt(record, finished),
            Event::StageRetrying(retrying) => {
                if let Some(Step { what: What::Attempt(attempt), .. }) = self.steps.last_mut() {
                    attempt.delay_ms = Some(retrying.delay_ms);
                }
            }
            Event::RecoveryDecided(decided) => self.decided(record, decided),
            Event::StagePassed(passed) => self.passed(record, passed),
            Event::GateUnmet(unmet) => self.gate(record, unmet),
            Event::RunFinished(_) => self.dead_ends(record),
            Event::RunResumed(_) => self.left.clear(),
            _ => {}
        }
    }

    fn attempt(&mut self, record: &Record, finished: &StageFinished) {
        let (task, outcome) = (&finished.attempt.task, &finished.outcome);
        let attempt = AttemptWhy {
            visit: task.visit,
            attempt: finished.attempt.ordinal,
            is_verification: task.work == Work::Verify,
            status: outcome.status.as_str(),
            failure: outcome.failure.clone(),
            no_change: finished.follow_up.no_change,
            error_meta: FailureMeta::for_stage(finished),
            decided: None,
            retried: finished.follow_up.retrying,
            delay_ms: None,
        };
        self.step(record, &task.branch, &task.node, What::Attempt(attempt));
        if finished.is_final() {
            self.leave(&task.branch, &task.node, outcome);
        }
    }

    fn decided(&mut self, record: &Record, decided: &RecoveryDecided) {
        let (task, outcome) = (&decided.attempt.task, &decided.outcome);
        let attempt = AttemptWhy {
            visit: task.visit,
            attempt: decided.attempt.ordinal,
            is_verification: false,
            status: outcome.status.as_str(),
            failure: outcome.failure.clone(),
            no_change: false,
            error_meta: None,
            decided: Some(decided.action.as_str()),
            retried: false,
            delay_ms: None,
        };
        self.step(record, &task.branch, &task.node, What::Attempt(attempt));
        if !decided.verifying {
            self.leave(&task.branch, &task.node, outcome);
        }
    }

    fn leave(&mut self, branch: &BranchId, node: &NodeId, outcome: &Outcome) {
        self.left.insert(branch.clone(), (node.clone(), outcome.clone()));
    }

    fn passed(&mut self, record: &Record, passed: &StagePassed) {
        let what = What::Passed(PassedWhy { visit: passed.visit, status: passed.status.as_str() });
        self.step(record, &passed.branch, &passed.node, what);
        let outcome = match self.pipeline.start == passed.node {
            true => Arc::new(Outcome::new(Status::Success)),
            false => Arc::clone(&self.replay.state.branch(&passed.branch).previous),
        };
        self.leave(&passed.branch, &passed.node, &outcome);
    }

    fn gate(&mut self, record: &Record, unmet: &GateUnmet) {
        let GateUnmet { gate, status, target, dropped_checks, .. } = unmet.clone();
        let what = What::GateUnmet(GateWhy { gate, status: status.map(Status::as_str), dropped_checks, target });
        self.step(record, &unmet.branch, &unmet.exit_node, what);
        self.left.remove(&unmet.branch);
    }

    fn route(&mut self, record: &Record, route: &RouteTaken) {
        let outcome =
            self.left.remove(&route.branch).map_or_else(|| Outcome::new(Status::Success), |(_, outcome)| outcome);
        let outcome = self.reader(&route.branch).as_decided(outcome, route);
        let edges = route.candidates.iter().map(|candidate| {
            let is_taken = route.edge == Some(candidate.edge);
            self.reader(&route.branch).recorded(candidate, is_taken, &outcome)
        });
        let RouteTaken { to, how, .. } = route.clone();
        let what = What::Route(RouteWhy { to: Some(to), how, status: outcome.status.as_str(), edges: edges.collect() });
        self.step(record, &route.branch, &route.from, what);
    }

    /// Records the stages at which no edge matched.
    fn dead_ends(&mut self, record: &Record) {
        for (branch, (node, outcome)) in std::mem::take(&mut self.left) {
            if let Some(edges) = self.reader(&branch).nowhere(&node, &outcome) {
                let what = RouteWhy { to: None, how: "none".to_owned(), status: outcome.status.as_str(), edges };
                self.step(record, &branch, &node, What::NoRoute(what));
            }
        }
    }

    fn reader(&self, branch: &BranchId) -> edge::Reader<'_> {
        edge::Reader {
            pipeline: self.pipeline,
            source: self.source,
            context: &self.replay.state.branch(branch).context,
        }
    }

    fn step(&mut self, record: &Record, branch: &BranchId, node: &NodeId, what: What) {
        let (generation, branch) = (self.replay.state.generation(), branch.clone());
        self.steps.push(Step { record: record.seq, generation, branch, node: node.clone(), is_undone: false, what });
    }
}
