//! `trace.jsonl`: what every node was given and what came of it, one object per line.
//!
//! The types of lines and their fields are those other tools read; the keys of a line are in alphabetical order. A line is made
//! from one record and the state before and after it, so the same journal gives the same lines.

use super::run_files::task_folder;
use crate::context::Context;
use crate::event::{Event, NodeId, Record, RouteTaken, RunId, Task, Verdict};
use crate::state::{Branch, RunState};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the lines written here.
const SCHEMA_VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "trace.jsonl line")]
pub struct TraceLine {
    /// Always 1.
    pub schema_version: u32,
    /// When it happened, RFC 3339.
    pub at: String,
    /// What happened.
    #[serde(flatten)]
    pub fact: TraceFact,
}

/// What a line tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum TraceFact {
    /// The run directory was made.
    SessionInitialized {
        /// The run's id.
        run_id: RunId,
        /// Where the pipeline was read from.
        pipeline_path: String,
        /// The run's copy of the project, relative to the run directory.
        workspace: String,
    },
    /// The pipeline began.
    PipelineStarted {
        /// The run's id.
        run_id: RunId,
        /// Where it began.
        start_node: NodeId,
    },
    /// Another process took the run over.
    ResumeLoaded {
        /// Who.
        worker: String,
    },
    /// A node was begun.
    NodeInputCaptured {
        /// The node.
        node_id: NodeId,
        /// Its handler type.
        node_type: String,
        /// Its shape.
        node_shape: String,
        /// Its attributes.
        node_attrs: BTreeMap<String, String>,
        /// The context before it.
        context_before: Context,
        /// The run's copy of the project, relative to the run directory.
        workspace: String,
        /// The node's folder, relative to the run directory.
        node_artifact_dir: String,
    },
    /// A node was finished.
    NodeOutputCaptured {
        /// The node.
        node_id: NodeId,
        /// How it ended.
        outcome: String,
        /// Raw reason; empty unless it failed.
        failure_reason: String,
        /// What it put into the context.
        context_updates: BTreeMap<String, Value>,
        /// The context after it.
        context_after: Context,
        /// What became different.
        context_delta: ContextDelta,
        /// Its status, relative to the run directory.
        status_path: String,
    },
    /// The next node was chosen.
    RouteEvaluated {
        /// From which node.
        from_node: NodeId,
        /// Its outcome.
        outcome: String,
        /// To which node.
        next_node: NodeId,
        /// By which rule.
        selection_method: String,
        /// Every edge that was looked at.
        candidates: Vec<TraceCandidate>,
    },
    /// An exit was reached with every goal gate satisfied.
    PipelineCompleted {
        /// The run's id.
        run_id: RunId,
        /// The exit.
        exit_node: NodeId,
    },
    /// The run ended in any other way.
    PipelineFailed {
        /// The run's id.
        run_id: RunId,
        /// Raw reason.
        failure_reason: String,
    },
}

/// An edge that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCandidate {
    /// Its target.
    pub to: NodeId,
    /// Its weight.
    pub weight: i64,
    /// Its condition as written; empty without one.
    pub condition: String,
    /// Whether the deciding step could have taken it.
    pub matched: bool,
    /// Why, or why not.
    pub reason: String,
}

/// What became different in the context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextDelta {
    /// New keys.
    pub added: BTreeMap<String, Value>,
    /// Keys with another value.
    pub updated: BTreeMap<String, Changed>,
    /// Keys that are gone.
    pub removed: Vec<String>,
}

/// A value and what it became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// What it was.
    pub before: Value,
    /// What it is.
    pub after: Value,
}

/// The lines of one record, given the context before it and the state after.
pub(super) fn lines(pipeline: &Pipeline, before: &Context, record: &Record, after: &RunState) -> Vec<TraceLine> {
    let run_id = || after.run_id().cloned().unwrap_or_else(|| RunId::new(""));
    let context = &branch_of(&record.event, after).context;
    let facts = match &record.event {
        Event::RunStarted(started) => vec![
            TraceFact::SessionInitialized {
                run_id: run_id(),
                pipeline_path: started.pipeline_path.clone(),
                workspace: crate::run::WORKSPACE_DIR.to_owned(),
            },
            TraceFact::PipelineStarted { run_id: run_id(), start_node: pipeline.start.clone() },
        ],
        Event::RunResumed(resumed) => vec![TraceFact::ResumeLoaded { worker: resumed.worker.clone() }],
        Event::StageStarted(started) => vec![input(pipeline, &started.attempt.task, before)],
        Event::StageFinished(finished) => vec![output(&finished.attempt.task, &finished.outcome, before, context)],
        Event::StagePassed(passed) => {
            let outcome = Outcome::of(passed.status);
            let task = passed.task();
            vec![input(pipeline, &task, before), output(&task, &outcome, before, context)]
        }
        Event::RouteTaken(route) => vec![routed(pipeline, route, after)],
        Event::RunFinished(finished) => vec![match finished.status {
            Verdict::Success => TraceFact::PipelineCompleted {
                run_id: run_id(),
                exit_node: finished.exit_node.clone().unwrap_or_else(|| NodeId::new("")),
            },
            Verdict::Fail => TraceFact::PipelineFailed {
                run_id: run_id(),
                failure_reason: finished.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default(),
            },
        }],
        Event::CacheFilled(_) | Event::StageReady(_) | Event::StageRetrying(_) => Vec::new(),
        Event::GateUnmet(_) | Event::RunCanceled(_) => Vec::new(),
    };
    let at = record.at.to_string();
    facts.into_iter().map(|fact| TraceLine { schema_version: SCHEMA_VERSION, at: at.clone(), fact }).collect()
}

fn input(pipeline: &Pipeline, task: &Task, before: &Context) -> TraceFact {
    let node = pipeline.node(&task.node);
    let attributes = node.map(|node| &node.attributes).into_iter().flatten();
    TraceFact::NodeInputCaptured {
        node_id: task.node.clone(),
        node_type: node.map(|node| node.handler.name().to_owned()).unwrap_or_default(),
        node_shape: node.map(|node| node.shape.to_string()).unwrap_or_default(),
        node_attrs: attributes.map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect(),
        context_before: before.clone(),
        workspace: crate::run::WORKSPACE_DIR.to_owned(),
        node_artifact_dir: task_folder(task),
    }
}

fn output(task: &Task, outcome: &Outcome, before: &Context, after: &Context) -> TraceFact {
    let failure = outcome.failure.as_ref();
    TraceFact::NodeOutputCaptured {
        node_id: task.node.clone(),
        outcome: outcome.status.as_str().to_owned(),
        failure_reason: failure.map(|failure| failure.reason.clone()).unwrap_or_default(),
        context_updates: outcome.context_updates.clone(),
        context_after: after.clone(),
        context_delta: delta(before, after),
        status_path: format!("{}/status.json", task_folder(task)),
    }
}

fn routed(pipeline: &Pipeline, route: &RouteTaken, after: &RunState) -> TraceFact {
    let candidates = route.candidates.iter().map(|candidate| TraceCandidate {
        to: candidate.to.clone(),
        weight: pipeline.edges.get(candidate.edge).map_or(0, |edge| edge.weight),
        condition: candidate.condition.clone(),
        matched: candidate.matched,
        reason: candidate.reason.clone(),
    });
    let outcome = after.branch(&route.branch).status(&route.from).map(|status| status.as_str().to_owned());
    TraceFact::RouteEvaluated {
        from_node: route.from.clone(),
        outcome: outcome.unwrap_or_default(),
        next_node: route.to.clone(),
        selection_method: route.how.clone(),
        candidates: candidates.collect(),
    }
}

/// The branch that an event is about; the main one for an event about the run.
pub(super) fn branch_of<'s>(event: &Event, state: &'s RunState) -> &'s Branch {
    event.branch().map_or_else(|| state.main(), |id| state.branch(id))
}

fn delta(before: &Context, after: &Context) -> ContextDelta {
    let mut delta = ContextDelta::default();
    for (key, value) in after.iter() {
        match before.exact(key) {
            None => {
                delta.added.insert(key.clone(), value.clone());
            }
            Some(old) if old != value => {
                delta.updated.insert(key.clone(), Changed { before: old.clone(), after: value.clone() });
            }
            Some(_) => {}
        }
    }
    delta.removed = before.iter().map(|(key, _)| key).filter(|key| after.exact(key).is_none()).cloned().collect();
    delta
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_delta_tells_added_updated_and_removed() {
        let map = |value: Value| value.as_object().expect("object").clone().into_iter().collect::<BTreeMap<_, _>>();
        let context = |value: Value| serde_json::from_value::<Context>(value).expect("a context");
        let delta = delta(&context(json!({"a": 1, "b": 2, "c": 3})), &context(json!({"a": 1, "b": 4, "d": 5})));
        assert_eq!(delta.added, map(json!({"d": 5})));
        assert_eq!(delta.updated["b"], Changed { before: json!(2), after: json!(4) });
        assert_eq!((delta.updated.len(), delta.removed), (1, vec!["c".to_owned()]));
    }
}
