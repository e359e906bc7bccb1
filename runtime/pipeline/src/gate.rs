//! The question that a human gate asks, and its choices (spec §4.6, §6).
//!
//! The choices are the outgoing edges in file order. An edge with a condition is a choice only if the condition
//! compares `preferred_label`, which the answer sets. Edges with other conditions are for endings without an answer,
//! such as a timeout. If a gate has no other choices, the choices are its edges for `outcome=success` and
//! `outcome=fail`. The gate fails if a person chooses the edge for `outcome=fail`.

use crate::condition::Operator;
use crate::ir::{Edge, Node, Pipeline};
use glovebox_record::question::{Answer, Answers};
use glovebox_record::{Choice, QuestionType};
use std::time::Duration;

/// The text of the question if the node has neither a prompt nor a label (spec §4.6).
const NO_TEXT: &str = "Select an option:";

/// The question of a human gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The type of the question.
    pub kind: QuestionType,
    /// The text of the question.
    pub text: String,
    /// The choices, in file order.
    pub choices: Vec<Choice>,
    /// The answer that is used after the timeout, or if no person can answer.
    pub default: Option<Choice>,
    /// The time to wait for an answer.
    pub timeout: Option<Duration>,
}

impl Gate {
    /// Creates the question of a node.
    pub fn new(pipeline: &Pipeline, node: &Node) -> Self {
        let choices: Vec<Choice> = choices(pipeline, node).map(|(_, choice)| choice).collect();
        let kind = node.gate.kind;
        let default =
            node.gate.default.as_ref().and_then(|text| match (Answers { kind, choices: &choices }).read(text) {
                Ok(Answer::Choice(choice)) => Some(choice),
                _ => None,
            });
        let has_label = node.label.as_str() != node.id.as_str();
        let text = node.prompt.as_ref().or(has_label.then_some(&node.label));
        Self {
            kind,
            text: text.map_or(NO_TEXT, |text| text.as_str()).to_owned(),
            default,
            timeout: node.gate.timeout.or(node.bounds.timeout),
            choices,
        }
    }
}

/// Returns the choices of a gate, each with its edge.
pub(crate) fn choices<'a>(pipeline: &'a Pipeline, node: &'a Node) -> impl Iterator<Item = (&'a Edge, Choice)> {
    let edges = || pipeline.outgoing(&node.id).map(|(_, edge)| edge);
    let by_outcome = edges().all(|edge| label(edge).is_none());
    edges().filter_map(move |edge| {
        let (label, declines) = if by_outcome { verdict(edge)? } else { (label(edge)?, false) };
        Some((edge, Choice { declines, ..Choice::new(label, edge.to.clone()) }))
    })
}

/// Returns the label of the choice for an edge on success or failure, and whether this choice declines. `None` for any other edge.
fn verdict(edge: &Edge) -> Option<(&str, bool)> {
    let [clause] = edge.condition.as_ref()?.clauses.as_slice() else { return None };
    let is_plain = clause.operator == Operator::Equal && clause.key.is_outcome();
    let (word, declines) = match clause.literal.as_str() {
        "success" if is_plain => ("Yes", false),
        "fail" if is_plain => ("No", true),
        _ => return None,
    };
    let label = Some(edge.label.trim()).filter(|label| !label.is_empty()).unwrap_or(word);
    Some((label, declines))
}

/// Returns the label of a choice: the edge's label, the label that its condition requires, or its target. `None` if the
/// edge is not a choice.
fn label(edge: &Edge) -> Option<&str> {
    let written = Some(edge.label.trim()).filter(|label| !label.is_empty());
    let Some(condition) = &edge.condition else { return written.or(Some(edge.to.as_str())) };
    let asks = condition.clauses.iter().find(|clause| clause.key.is_preferred_label());
    asks.filter(|clause| clause.operator == Operator::Equal).map(|clause| clause.literal.as_str())
}
