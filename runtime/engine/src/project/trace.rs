//! `trace.jsonl`: the input and the outcome of every node, one object per line.
//!
//! The types and fields of the lines have the names that other tools read. The keys of a line are in alphabetical
//! order. A line is made from one record and the state before and after it, so the same journal gives the same lines.

use super::run_files::task_folder;
use glovebox_journal::event::time_format;
use glovebox_journal::event::{
    BranchId, Event, NodeId, QuestionAnswered, Record, RouteTaken, RunId, StagePassed, Task, Verdict,
};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::{Failure, Outcome, Status};
use glovebox_state::context::Context;
use glovebox_state::run_state::{Branch, RunState};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The version of the lines that are written.
const SCHEMA_VERSION: u32 = 1;
/// The value for a record without a run or an exit.
static NO_RUN: LazyLock<RunId> = LazyLock::new(|| RunId::new(""));
static MAIN: LazyLock<BranchId> = LazyLock::new(BranchId::main);
static NO_UPDATES: BTreeMap<String, Value> = BTreeMap::new();
static NO_NODE: LazyLock<NodeId> = LazyLock::new(|| NodeId::new(""));

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "trace.jsonl line")]
pub struct TraceLine<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// When the event of the line happened, RFC 3339.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The branch of the event. Absent for the main branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<&'a BranchId>,
    /// What happened.
    #[serde(flatten)]
    pub fact: TraceFact<'a>,
}

/// What happened, as a line of the trace records it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type")]
pub enum TraceFact<'a> {
    /// The run directory was created.
    SessionInitialized {
        /// The run's id.
        run_id: &'a RunId,
        /// The path of the pipeline file.
        pipeline_path: &'a str,
        /// The run's copy of the project, relative to the run directory.
        workspace: &'static str,
    },
    /// The pipeline began.
    PipelineStarted {
        /// The run's id.
        run_id: &'a RunId,
        /// The node at which the pipeline began.
        start_node: &'a NodeId,
        /// The initial context. Later lines have only changes.
        context: &'a Context,
    },
    /// Another process took the run over.
    ResumeLoaded {
        /// The name of the worker.
        worker: &'a str,
        /// The context with which the run continues.
        context: &'a Context,
    },
    /// A node began.
    NodeInputCaptured {
        /// The node's id.
        node_id: &'a NodeId,
        /// The handler type of the node.
        node_type: &'a str,
        /// The shape of the node.
        node_shape: &'a str,
        /// The attributes of the node.
        node_attrs: BTreeMap<&'a str, &'a str>,
        /// Changes of the context since the previous line with `context_delta` or a whole context.
        context_delta: ContextDelta<'a>,
        /// The run's copy of the project, relative to the run directory.
        workspace: &'static str,
        /// The node's folder, relative to the run directory.
        node_artifact_dir: String,
    },
    /// A node finished.
    NodeOutputCaptured {
        /// The node's id.
        node_id: &'a NodeId,
        /// The outcome of the node.
        outcome: &'static str,
        /// The raw failure reason. Empty unless the node failed.
        failure_reason: &'a str,
        /// The context updates of the node.
        context_updates: &'a BTreeMap<String, Value>,
        /// Changes of the context since the previous line with `context_delta` or a whole context.
        context_delta: ContextDelta<'a>,
        /// The path of the node's status, relative to the run directory.
        status_path: String,
    },
    /// The next node was chosen.
    RouteEvaluated {
        /// The node from which the edge leads.
        from_node: &'a NodeId,
        /// The outcome of that node.
        outcome: &'static str,
        /// The node to which the edge leads.
        next_node: &'a NodeId,
        /// The rule by which the edge was selected.
        selection_method: &'a str,
        /// Every edge that was considered.
        candidates: Vec<TraceCandidate<'a>>,
    },
    /// A parallel node was reached.
    ParallelStarted {
        /// The id of the parallel node.
        node_id: &'a NodeId,
        /// Number of branches.
        branch_count: usize,
        /// Changes of the context since the previous line with `context_delta` or a whole context.
        context_delta: ContextDelta<'a>,
    },
    /// A branch of a parallel node began, with the context of its parent branch.
    ParallelBranchStarted {
        /// The first node of the branch.
        node_id: &'a NodeId,
    },
    /// A branch of a parallel node ended.
    ParallelBranchCompleted {
        /// The outcome of the branch.
        outcome: &'static str,
        /// The score of the branch.
        score: f64,
        /// The raw failure reason. Empty unless the branch failed or was canceled.
        failure_reason: &'a str,
    },
    /// All branches of a parallel node have ended.
    ParallelCompleted {
        /// The id of the parallel node.
        node_id: &'a NodeId,
        /// The outcome of the parallel node, according to its policies.
        outcome: &'static str,
        /// Number of branches that succeeded.
        success_count: u32,
        /// Number of branches that failed.
        failure_count: u32,
        /// Number of branches that were canceled.
        canceled_count: u32,
        /// The raw failure reason. Empty unless the parallel node failed.
        failure_reason: &'a str,
        /// Changes of the context since the previous line with `context_delta` or a whole context.
        context_delta: ContextDelta<'a>,
    },
    /// A fan-in chose a branch and merged changes.
    FanInCompleted {
        /// The id of the fan-in.
        node_id: &'a NodeId,
        /// The outcome of the fan-in.
        outcome: &'static str,
        /// The best branch. Absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        best_id: Option<&'a BranchId>,
        /// The branches whose changes were merged.
        merged: &'a [BranchId],
        /// The paths with conflicting changes.
        conflicts: Vec<&'a str>,
        /// The raw failure reason. Empty unless the fan-in failed.
        failure_reason: &'a str,
        /// Changes of the context since the previous line with `context_delta` or a whole context.
        context_delta: ContextDelta<'a>,
    },
    /// A new generation of the run began.
    LoopRestarted {
        /// The number of the generation.
        run_generation: u32,
        /// The node whose edge led to the restart.
        from_node: &'a NodeId,
        /// The first node of the generation.
        start_node: &'a NodeId,
        /// The initial context of the generation.
        context: &'a Context,
    },
    /// An exit was reached, and every goal gate succeeded.
    PipelineCompleted {
        /// The run's id.
        run_id: &'a RunId,
        /// The id of the exit.
        exit_node: &'a NodeId,
    },
    /// The run ended in any other way.
    PipelineFailed {
        /// The run's id.
        run_id: &'a RunId,
        /// The raw failure reason.
        failure_reason: &'a str,
    },
}

/// An edge that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceCandidate<'a> {
    /// The target of the edge.
    pub to: &'a NodeId,
    /// The weight of the edge.
    pub weight: i64,
    /// The condition as written. Empty if there is none.
    pub condition: &'a str,
    /// True if the deciding rule could have selected the edge.
    pub matched: bool,
    /// Why the edge matched or did not match.
    pub reason: &'a str,
}

/// The changes of the context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ContextDelta<'a> {
    /// New keys.
    pub added: BTreeMap<&'a str, &'a Value>,
    /// Keys with a new value, and that value.
    pub updated: BTreeMap<&'a str, &'a Value>,
    /// Keys that were removed.
    pub removed: Vec<&'a str>,
}

impl TraceFact<'_> {
    /// Returns true if a reader knows the whole context after this line.
    pub(super) fn has_context(&self) -> bool {
        use TraceFact::{FanInCompleted, NodeInputCaptured, NodeOutputCaptured};
        use TraceFact::{LoopRestarted, ParallelCompleted, ParallelStarted, PipelineStarted, ResumeLoaded};
        matches!(
            self,
            PipelineStarted { .. }
                | LoopRestarted { .. }
                | ResumeLoaded { .. }
                | NodeInputCaptured { .. }
                | NodeOutputCaptured { .. }
                | ParallelStarted { .. }
                | ParallelCompleted { .. }
                | FanInCompleted { .. }
        )
    }
}

/// Returns the lines of one record, given the context after the lines before it and the state after the record.
pub(super) fn lines<'a>(
    pipeline: &'a Pipeline,
    before: &'a Context,
    record: &'a Record,
    after: &'a RunState,
) -> Vec<TraceLine<'a>> {
    let run_id = after.run_id().unwrap_or(&NO_RUN);
    let context = &branch_of(&record.event, after).context;
    let facts = match &record.event {
        Event::RunStarted(started) => vec![
            TraceFact::SessionInitialized {
                run_id,
                pipeline_path: &started.pipeline.path,
                workspace: crate::run::WORKSPACE_DIR,
            },
            TraceFact::PipelineStarted {
                run_id,
                start_node: started.from.as_ref().unwrap_or(&pipeline.start),
                context,
            },
        ],
        Event::RunResumed(resumed) => vec![TraceFact::ResumeLoaded { worker: &resumed.worker, context }],
        Event::StageStarted(started) => {
            let task = &started.attempt.task;
            vec![input(pipeline, &task.node, task_folder(task), delta(before, context))]
        }
        Event::StageFinished(finished) => vec![output(&finished.attempt.task, &finished.outcome, before, context)],
        Event::StagePassed(passed) => passed_node(pipeline, passed, before, context).into(),
        Event::RouteTaken(route) => vec![routed(pipeline, route, after)],
        Event::LoopRestarted(restarted) => vec![TraceFact::LoopRestarted {
            run_generation: restarted.generation,
            from_node: &restarted.from,
            start_node: &restarted.to,
            context,
        }],
        Event::RunFinished(finished) => vec![match finished.status {
            Verdict::Success => {
                TraceFact::PipelineCompleted { run_id, exit_node: finished.exit_node.as_ref().unwrap_or(&NO_NODE) }
            }
            Verdict::Fail => TraceFact::PipelineFailed {
                run_id,
                failure_reason: finished.failure.as_ref().map_or("", |failure| &failure.reason),
            },
        }],
        Event::ParallelStarted(_) | Event::BranchStarted(_) | Event::BranchFinished(_) => {
            of_parallel(&record.event, before, context)
        }
        Event::ParallelJoined(_) | Event::FanInFinished(_) => of_parallel(&record.event, before, context),
        Event::CacheFilled(_) | Event::StageReady(_) | Event::StageRetrying(_) | Event::StageSteered(_) => Vec::new(),
        Event::StageHeld(_) => Vec::new(),
        Event::QuestionAsked(asked) if asked.recovery.is_some() => Vec::new(),
        Event::QuestionAnswered(answered) if answered.recovery => Vec::new(),
        Event::QuestionAsked(asked) => {
            let folder = task_folder(&asked.task());
            vec![input(pipeline, &asked.node, folder, delta(before, context))]
        }
        Event::QuestionAnswered(answered) => vec![answered_gate(answered, before, context)],
        Event::RecoveryDecided(decided) => vec![output(&decided.attempt.task, &decided.outcome, before, context)],
        Event::GateUnmet(_) | Event::BranchCanceled(_) | Event::ParallelExpired(_) => Vec::new(),
        Event::ChildObserved(_) | Event::StatusIngested(_) => Vec::new(),
        Event::RunPaused(_) | Event::RunCanceled(_) | Event::RunStalled(_) | Event::RunTakenOver(_) => Vec::new(),
        Event::CycleBroken(_) | Event::BranchExited(_) => Vec::new(),
    };
    let branch_id = record.event.branch().filter(|id| **id != *MAIN);
    let line = |fact| TraceLine { schema_version: SCHEMA_VERSION, at: record.at, branch_id, fact };
    facts.into_iter().map(line).collect()
}

fn input<'a>(pipeline: &'a Pipeline, id: &'a NodeId, folder: String, context_delta: ContextDelta<'a>) -> TraceFact<'a> {
    let node = pipeline.node(id);
    let attributes = node.map(|node| &node.attributes).into_iter().flatten();
    TraceFact::NodeInputCaptured {
        node_id: id,
        node_type: node.map_or("", |node| node.handler.name()),
        node_shape: node.map_or("", |node| &node.shape),
        node_attrs: attributes.map(|(key, attribute)| (key.as_str(), &*attribute.value)).collect(),
        context_delta,
        workspace: crate::run::WORKSPACE_DIR,
        node_artifact_dir: folder,
    }
}

fn output<'a>(task: &'a Task, outcome: &'a Outcome, before: &'a Context, after: &'a Context) -> TraceFact<'a> {
    TraceFact::NodeOutputCaptured {
        node_id: &task.node,
        outcome: outcome.status.as_str(),
        failure_reason: outcome.failure.as_ref().map_or("", |failure| &failure.reason),
        context_updates: &outcome.context_updates,
        context_delta: delta(before, after),
        status_path: format!("{}/status.json", task_folder(task)),
    }
}

/// Returns the lines of a control node, which the engine passed. It has no failure reason and no context updates.
fn passed_node<'a>(
    pipeline: &'a Pipeline,
    passed: &'a StagePassed,
    before: &'a Context,
    after: &'a Context,
) -> [TraceFact<'a>; 2] {
    let folder = task_folder(&passed.task());
    let output = TraceFact::NodeOutputCaptured {
        node_id: &passed.node,
        outcome: passed.status.as_str(),
        failure_reason: "",
        context_updates: &NO_UPDATES,
        context_delta: ContextDelta::default(),
        status_path: format!("{folder}/status.json"),
    };
    [input(pipeline, &passed.node, folder, delta(before, after)), output]
}

/// Returns the line of a human gate that was answered. Its context changes are in `context_delta`.
fn answered_gate<'a>(answered: &'a QuestionAnswered, before: &'a Context, after: &'a Context) -> TraceFact<'a> {
    TraceFact::NodeOutputCaptured {
        node_id: &answered.node,
        outcome: answered.outcome().status.as_str(),
        failure_reason: if answered.answer.is_some() { "" } else { "human gate timeout, no default" },
        context_updates: &NO_UPDATES,
        context_delta: delta(before, after),
        status_path: format!("{}/status.json", task_folder(&answered.task())),
    }
}

fn routed<'a>(pipeline: &Pipeline, route: &'a RouteTaken, after: &RunState) -> TraceFact<'a> {
    let candidates = route.candidates.iter().map(|candidate| TraceCandidate {
        to: &candidate.to,
        weight: pipeline.edges.get(candidate.edge).map_or(0, |edge| edge.weight),
        condition: &candidate.condition,
        matched: candidate.matched,
        reason: &candidate.reason,
    });
    let status = after.branch(&route.branch).status(&route.from);
    TraceFact::RouteEvaluated {
        from_node: &route.from,
        outcome: status.map_or("", Status::as_str),
        next_node: &route.to,
        selection_method: &route.how,
        candidates: candidates.collect(),
    }
}

/// Returns the lines of parallel nodes and fan-ins, with the names in the specification (§9.6).
fn of_parallel<'a>(event: &'a Event, before: &'a Context, after: &'a Context) -> Vec<TraceFact<'a>> {
    let reason = |failure: &'a Option<Failure>| failure.as_ref().map_or("", |failure| &*failure.reason);
    vec![match event {
        Event::ParallelStarted(started) => TraceFact::ParallelStarted {
            node_id: &started.node,
            branch_count: started.children.len(),
            context_delta: delta(before, after),
        },
        Event::BranchStarted(started) => TraceFact::ParallelBranchStarted { node_id: &started.to },
        Event::BranchFinished(finished) => TraceFact::ParallelBranchCompleted {
            outcome: finished.outcome.as_str(),
            score: finished.score,
            failure_reason: reason(&finished.failure),
        },
        Event::ParallelJoined(joined) => TraceFact::ParallelCompleted {
            node_id: &joined.node,
            outcome: joined.status.as_str(),
            success_count: joined.succeeded,
            failure_count: joined.failed,
            canceled_count: joined.canceled,
            failure_reason: reason(&joined.failure),
            context_delta: delta(before, after),
        },
        Event::FanInFinished(finished) => TraceFact::FanInCompleted {
            node_id: &finished.node,
            outcome: finished.status.as_str(),
            best_id: finished.best.as_ref(),
            merged: &finished.merged,
            conflicts: finished.conflicts.iter().map(|conflict| conflict.path.as_str()).collect(),
            failure_reason: reason(&finished.failure),
            context_delta: delta(before, after),
        },
        _ => return Vec::new(),
    }]
}

/// Returns the branch of an event, or the main branch for an event about the run.
pub(super) fn branch_of<'s>(event: &Event, state: &'s RunState) -> &'s Branch {
    event.branch().map_or_else(|| state.main(), |id| state.branch(id))
}

fn delta<'a>(before: &'a Context, after: &'a Context) -> ContextDelta<'a> {
    let mut delta = ContextDelta::default();
    for (key, value) in after.iter() {
        match before.exact(key) {
            None => {
                delta.added.insert(key, value);
            }
            Some(old) if old != value => {
                delta.updated.insert(key, value);
            }
            Some(_) => {}
        }
    }
    delta.removed = before.iter().map(|(key, _)| &**key).filter(|key| after.exact(key).is_none()).collect();
    delta
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_delta_tells_added_updated_and_removed() {
        let context = |value: Value| serde_json::from_value::<Context>(value).expect("a context");
        let (before, after) = (context(json!({"a": 1, "b": 2, "c": 3})), context(json!({"a": 1, "b": 4, "d": 5})));
        let expected = json!({ "added": {"d": 5}, "updated": {"b": 4}, "removed": ["c"] });
        assert_eq!(serde_json::to_value(delta(&before, &after)).expect("JSON"), expected);
    }
}
