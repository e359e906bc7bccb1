//! Why a run went where it went: each visit with its attempts, and for every edge why it was taken or not, with the values that were read.
//!
//! A fold of the journal beside the pipeline that ran. The reasons are those of the journal; values are those of the context at that
//! record. It decides nothing: after a failure that ended the run it asks the router again, which answers the same.

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

/// The version of what `glovebox why --json` prints.
pub const WHY_SCHEMA_VERSION: u32 = 1;

/// Why a run went where it went.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "glovebox why --json")]
pub struct Why {
    /// Always 1.
    pub schema_version: u32,
    /// The run.
    pub run_id: String,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// How it ended; absent while it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EndWhy>,
}

/// One step of a branch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Step {
    /// The record of the journal with which it was complete.
    pub record: u64,
    /// The generation of the run; absent for the first.
    #[serde(skip_serializing_if = "is_first")]
    pub generation: u32,
    /// The branch.
    pub branch: BranchId,
    /// The node.
    pub node: NodeId,
    /// True if a resume went back to before it, so that it counts no more; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_left: bool,
    /// What happened there.
    #[serde(flatten)]
    pub what: What,
}

/// The history of a node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An attempt ended.
    Attempt(AttemptWhy),
    /// The engine passed it by itself.
    Passed(PassedWhy),
    /// It is an exit, and a goal gate was not met or a check of the operator was dropped.
    GateUnmet(GateWhy),
    /// It was left.
    Route(RouteWhy),
    /// The edge that was taken began a new generation of the run.
    Restarted(RestartWhy),
    /// It is a parallel node, and a branch of it ended.
    BranchEnded(BranchWhy),
    /// It is a parallel node, and its branches were joined.
    Joined(JoinWhy),
    /// It is a fan-in, and it chose.
    Chose(ChoiceWhy),
    /// It led nowhere, so the run ended.
    NoRoute(RouteWhy),
}

/// One attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptWhy {
    /// The visit.
    pub visit: u32,
    /// Which attempt of the visit.
    pub attempt: u32,
    /// True for the run of the node's `verify_command`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_verification: bool,
    /// How it ended.
    pub status: &'static str,
    /// Its failure; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// True if the operator asks for changes and the work made none; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_change: bool,
    /// Facts about a failed verification beside its failure (decision failure-codes); absent for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// The decision of a person about its disallowed writes, which led to this end; absent without a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<&'static str>,
    /// True if another attempt follows.
    pub retried: bool,
    /// How long that one waited, milliseconds; absent if none follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// A node that the engine passed by itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PassedWhy {
    /// The visit.
    pub visit: u32,
    /// The status that it passes on.
    pub status: &'static str,
}

/// A goal gate that was not met at an exit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GateWhy {
    /// The gate, or the stage that dropped checks: the first in the order of the file.
    pub gate: NodeId,
    /// Its last status; absent if it was never visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Checks of the operator that it dropped; absent for a goal gate.
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
    /// The rule that decided, as in `route.taken` of the journal; `none` if no rule found a node.
    pub how: String,
    /// The status that was left with.
    pub status: &'static str,
    /// Every edge, in the order of the file.
    pub edges: Vec<EdgeWhy>,
}

/// A new generation of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestartWhy {
    /// The generation that began.
    pub begins: u32,
    /// The node that it began at.
    pub at: NodeId,
    /// Keys of the context that it began with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// How a run ended, from the raw cause to the exit code.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndWhy {
    /// `success` or `fail`.
    pub status: &'static str,
    /// The class, code and reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The stage with that failure, if a stage had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<NodeId>,
    /// The commands of that stage's last attempt that did not pass: each with how it ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandWhy>,
    /// The exit code of the process that drove the run.
    pub exit_code: u8,
    /// Its name.
    pub exit_name: &'static str,
}

/// A command that did not pass.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandWhy {
    /// Its words.
    pub argv: Vec<String>,
    /// `exit N`, or what ended it.
    pub ended: String,
}

impl Why {
    /// Explains the records of a run of this pipeline, which are read a few at once. `source` is the text that it was read from.
    ///
    /// # Errors
    /// When the journal cannot be read, or is not the one that was verified any more.
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
            step.is_left = !in_force.iter().any(|range| range.contains(&step.record));
        }
        Ok(Self { schema_version: WHY_SCHEMA_VERSION, run_id, steps, end: has_ended.then_some(end) })
    }

    /// Only the steps at one node.
    #[must_use]
    pub fn at(mut self, node: &NodeId) -> Self {
        self.steps.retain(|step| step.node == *node);
        self
    }
}

/// Commands that did not end with 0.
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
    /// The node that a branch is about to leave, with the outcome that it leaves with.
    left: BTreeMap<BranchId, (NodeId, Outcome)>,
    steps: Vec<Step>,
    /// Those of the last stage that did not exit with 0.
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
        // What a route read is what was there before it.
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

    /// Records the stages that were left without an edge to follow.
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
        self.steps.push(Step { record: record.seq, generation, branch, node: node.clone(), is_left: false, what });
    }
}
