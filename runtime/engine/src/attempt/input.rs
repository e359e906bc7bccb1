//! What a handler is told about its stage, and the model it may ask.
//!
//! Everything comes from the pipeline and the fold of the journal, so the same attempt made again is told the same. The
//! engine's counters are not among it.

use super::AttemptError;
use crate::driver::Claim;
use crate::plan::Plan;
use crate::state::RunState;
use glovebox_host::input::{OutgoingEdge, StageInput};
use glovebox_host::model::Model;
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_record::RunId;

/// Context keys of the engine that no stage is told, in either spelling.
const INTERNAL: [&str; 2] = ["internal.", "context.internal."];

/// Context keys that name the hold-outs, for which a builder has no name, in either spelling.
pub(super) const HOLDOUT_KEYS: [&str; 2] = ["graph.scenarios", "context.graph.scenarios"];

/// What the handler is told.
pub(super) fn stage_input(pipeline: &Pipeline, node: &Node, claim: &Claim, state: &RunState) -> StageInput {
    let run = state.run.as_ref();
    let context =
        state.context.entries().iter().filter(|(key, _)| !INTERNAL.iter().any(|start| key.starts_with(start)));
    let outgoing = pipeline.outgoing(&node.id).map(|(_, edge)| OutgoingEdge {
        to: edge.to.to_string(),
        label: edge.label.to_string(),
        condition: edge.condition.as_ref().map(|condition| condition.text.to_string()).unwrap_or_default(),
        weight: i32::try_from(edge.weight).unwrap_or(if edge.weight < 0 { i32::MIN } else { i32::MAX }),
    });
    StageInput {
        run: run.map_or_else(|| RunId::new(""), |run| run.run_id.clone()),
        attempt: claim.attempt.clone(),
        handler_type: node.handler.name().to_owned(),
        label: node.label.to_string(),
        prompt: node.prompt.as_ref().map(|prompt| prompt.to_string()),
        goal: pipeline.goal.clone(),
        attributes: attributes(node),
        context: context.map(|(key, value)| (key.clone(), value.clone())).collect(),
        outgoing: outgoing.collect(),
        last_failure: state.last_failure.clone(),
        extra: Vec::new(),
    }
}

/// The model at the turn where the node's finished attempts left it: an attempt that was cut off is told the same again.
pub(super) fn model(node: &Node, plan: &Plan, state: &RunState) -> Result<Model, AttemptError> {
    let id = &node.id;
    let turns = state.turns.get(id).copied().unwrap_or(0);
    let attempts = state.attempts.get(id).copied().unwrap_or(0);
    let turns = u32::try_from(turns).unwrap_or(u32::MAX);
    Ok(Model::bind(id.as_str(), &attributes(node), plan.script.as_ref(), turns, attempts)?)
}

fn attributes(node: &Node) -> Vec<(String, String)> {
    node.attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect()
}
