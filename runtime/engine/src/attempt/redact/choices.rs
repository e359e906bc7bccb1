//! What a stage that could read hold-outs may decide in addition to its verdict: only what an edge of the pipeline uses.
//!
//! A context key is kept if the condition of an edge names it. Its value is reduced to what these conditions can
//! distinguish. A choice of the next edge is kept if the stage's edges let the stage choose. `tool` and `verify` never
//! choose.

use glovebox_pipeline::condition::{Clause, Operator};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_record::Outcome;
use glovebox_state::context::{Context, ContextKey};
use serde_json::Value;
use std::collections::BTreeMap;

/// The next edge that a stage asks for.
#[derive(Default)]
pub(super) struct EdgeChoice {
    /// The label of the edge.
    pub(super) label: Option<String>,
    /// The target of the edge. `None` if there is a label.
    pub(super) next: Option<String>,
}

/// Returns the first requested edge that exists, if no edge of the stage has a condition.
pub(super) fn way(pipeline: &Pipeline, node: &NodeId, outcome: &Outcome) -> EdgeChoice {
    let edges: Vec<_> = pipeline.outgoing(node).map(|(_, edge)| edge).collect();
    if edges.iter().any(|edge| edge.condition.is_some()) {
        return EdgeChoice::default();
    }
    let labelled = |label: &&String| !label.is_empty() && edges.iter().any(|edge| edge.label == **label);
    let label = outcome.preferred_label.as_ref().filter(labelled).cloned();
    let suggested = outcome.suggested_next_ids.iter().find(|id| edges.iter().any(|edge| edge.to.as_str() == **id));
    EdgeChoice { next: suggested.filter(|_| label.is_none()).cloned(), label }
}

/// Returns the updates of keys that conditions name. Each value is reduced to what the conditions can distinguish.
pub(super) fn context(pipeline: &Pipeline, updates: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let clauses = pipeline.edges.iter().filter_map(|edge| edge.condition.as_ref()).flat_map(|found| &found.clauses);
    let clauses: Vec<&Clause> = clauses.filter(|clause| !ContextKey(clause.key.as_str()).is_reserved()).collect();
    let kept = updates.into_iter().filter_map(|(key, value)| {
        let name = ContextKey(&key).plain();
        let asked: Vec<&Clause> =
            clauses.iter().copied().filter(|clause| ContextKey(clause.key.as_str()).plain() == name).collect();
        let seen = seen(&asked, value)?;
        Some((name.to_owned(), seen))
    });
    kept.collect()
}

/// Reduces a value to what conditions can distinguish: a boolean, or a text with which a condition compares. Any other value
/// becomes null, which counts as absent. `None` if no condition names the key.
fn seen(asked: &[&Clause], value: Value) -> Option<Value> {
    if asked.is_empty() || value.is_boolean() {
        return Some(value).filter(|_| !asked.is_empty());
    }
    let mut context = Context::default();
    context.set("value", value);
    let text = context.text("value");
    if asked.iter().any(|clause| clause.operator != Operator::Truthy && clause.literal == text.as_str()) {
        return Some(Value::String(text));
    }
    let truthy = asked.iter().find(|clause| clause.operator == Operator::Truthy);
    Some(truthy.map_or(Value::Null, |clause| Value::Bool(clause.admits(&text))))
}
