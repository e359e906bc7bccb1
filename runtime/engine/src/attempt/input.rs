//! What a handler learns about its stage, and the model it may ask.
//!
//! Everything comes from the pipeline and the fold of the journal, so the same attempt made again gets the same input. The
//! engine's counters are not part of it.

use super::AttemptError;
use crate::driver::Assignment;
use crate::plan::Plan;
use crate::state::Branch;
use glovebox_host::input::{OutgoingEdge, StageInput};
use glovebox_host::model::Model;
use glovebox_pipeline::ir::{Node, Pipeline};

/// Context keys of the engine that no stage gets, in either spelling.
const INTERNAL: [&str; 2] = ["internal.", "context.internal."];

/// Context keys that name the hold-outs, for which a builder has no name, in either spelling.
pub(super) const HOLDOUT_KEYS: [&str; 2] = ["graph.scenarios", "context.graph.scenarios"];

/// Makes the input of a handler.
pub(super) fn stage_input(pipeline: &Pipeline, node: &Node, assignment: &Assignment) -> StageInput {
    let Assignment { attempt, run, branch, .. } = assignment;
    let context = branch.context.iter().filter(|(key, _)| !INTERNAL.iter().any(|start| key.starts_with(start)));
    let outgoing = pipeline.outgoing(&node.id).map(|(_, edge)| OutgoingEdge {
        to: edge.to.to_string(),
        label: edge.label.to_string(),
        condition: edge.condition.as_ref().map(|condition| condition.text.to_string()).unwrap_or_default(),
        weight: i32::try_from(edge.weight).unwrap_or(if edge.weight < 0 { i32::MIN } else { i32::MAX }),
    });
    StageInput {
        run: run.run_id.clone(),
        attempt: attempt.clone(),
        handler_type: node.handler.name().to_owned(),
        label: node.label.to_string(),
        prompt: node.prompt.as_ref().map(|prompt| prompt.to_string()),
        goal: pipeline.goal.clone(),
        attributes: attributes(node),
        context: context.map(|(key, value)| (key.clone(), value.clone())).collect(),
        outgoing: outgoing.collect(),
        last_failure: branch.last_failure.clone(),
        extra: Vec::new(),
    }
}

/// The model at the turn where the node's finished attempts left it: an attempt that was cut off gets the same answers again.
pub(super) fn model(node: &Node, plan: &Plan, branch: &Branch) -> Result<Model, AttemptError> {
    let id = &node.id;
    let (turns, attempts) = branch.nodes.get(id).map_or((0, 0), |history| (history.turns, history.attempts));
    let turns = u32::try_from(turns).unwrap_or(u32::MAX);
    Ok(Model::bind(id, &attributes(node), plan.script.as_ref(), turns, attempts)?)
}

fn attributes(node: &Node) -> Vec<(String, String)> {
    node.attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect()
}
