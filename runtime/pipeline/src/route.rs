//! Which edge next (spec §3.3, §3.7).
//!
//! Pure: the graph, an answer and a look into the context give the same edge every time, and every edge that was not taken
//! keeps its reason. There is no fall-back to "the first edge", and a failed stage never slips through a plain edge
//! (only a diamond, which decides by conditions, may be entered that way).

use crate::condition::Lookup;
use crate::ir::{Edge, EdgeIndex, Handler, NodeId, Pipeline, Status};
use std::cmp::Reverse;

/// What routing needs to know of an outcome.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// How the stage ended.
    pub status: Status,
    /// The edge label it asks for; empty for none.
    pub preferred_label: &'a str,
    /// The nodes it asks for, best first.
    pub suggested_next_ids: &'a [String],
}

/// One outgoing edge and what was made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which edge.
    pub edge: EdgeIndex,
    /// Its condition as written; empty when it has none.
    pub condition_text: String,
    /// Whether the deciding step could have taken it.
    pub matched: bool,
    /// Why, or why not.
    pub reason: String,
}

/// The edge that is taken, and the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The edge; none when nothing fits, which fails the run (design: `no route from node X for outcome Y`).
    pub edge: Option<EdgeIndex>,
    /// The step that decided: `condition`, `preferred_label`, `suggested_id`, `default`, `weight`, `lexical`; `none` without an edge.
    pub how: &'static str,
    /// Every outgoing edge in file order.
    pub candidates: Vec<Candidate>,
}

/// Where a failed stage leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureTarget {
    /// Along an edge: a fail edge, or a plain edge into a diamond.
    Edge(EdgeIndex),
    /// A jump to the node that `retry_target` or `fallback_retry_target` names.
    Node(NodeId),
    /// Nowhere: the run fails with the stage's reason.
    Stop,
}

/// The way out of a failed stage, and the edges that were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRoute {
    /// Where to.
    pub target: FailureTarget,
    /// The step that decided: `condition`, `retry_target`, `fallback_retry_target`, `diamond`; `none` for a stop.
    pub how: &'static str,
    /// Every outgoing edge in file order.
    pub candidates: Vec<Candidate>,
}

/// Chooses the edge after a stage that did not fail, or after a diamond with whatever outcome it passes on.
///
/// Order: condition, preferred label, suggested ids, `default=true`, weight, target id. Labels, ids and defaults look at
/// unconditional edges only, so that no answer of a stage can talk its way past a condition.
pub fn select(pipeline: &Pipeline, node: &NodeId, answer: &Answer<'_>, lookup: Lookup<'_>) -> Selection {
    let edges: Vec<(EdgeIndex, &Edge)> = pipeline.outgoing(node).collect();
    let (holding, plain) = split(&edges, answer, lookup);
    let (how, eligible) = narrow(holding, plain, answer);
    let edge = best(&eligible).map(|(index, _)| index);
    let candidates = edges
        .iter()
        .map(|(index, edge)| explain(*index, edge, edge_verdict(*index, edge, &eligible, how, answer)))
        .collect();
    Selection { edge, how, candidates }
}

/// Finds the way out of a failed stage: a fail edge, `retry_target`, `fallback_retry_target`, a plain edge into a diamond, stop.
///
/// A fail edge is one whose condition reads `outcome` and holds: a guard on the context alone says nothing about failure.
/// For a diamond that passes a failure on use [`select`]: it did not fail itself.
pub fn failure_target(pipeline: &Pipeline, node: &NodeId, answer: &Answer<'_>, lookup: Lookup<'_>) -> FailureRoute {
    let edges: Vec<(EdgeIndex, &Edge)> = pipeline.outgoing(node).collect();
    let (holding, plain) = split(&edges, answer, lookup);
    let failing: Vec<_> = holding.into_iter().filter(|(_, edge)| reads_outcome(edge)).collect();
    let stage = pipeline.node(node);
    let (how, target, eligible) = if let Some((index, _)) = best(&failing) {
        ("condition", FailureTarget::Edge(index), failing)
    } else if let Some(target) = stage.and_then(|stage| stage.retry_target.clone()) {
        ("retry_target", FailureTarget::Node(target), Vec::new())
    } else if let Some(target) = stage.and_then(|stage| stage.fallback_retry_target.clone()) {
        ("fallback_retry_target", FailureTarget::Node(target), Vec::new())
    } else {
        let into_diamond: Vec<_> = plain.into_iter().filter(|(_, edge)| leads_to_diamond(pipeline, edge)).collect();
        match best(&into_diamond) {
            Some((index, _)) => ("diamond", FailureTarget::Edge(index), into_diamond),
            None => ("none", FailureTarget::Stop, Vec::new()),
        }
    };
    let candidates = edges
        .iter()
        .map(|(index, edge)| explain(*index, edge, failure_verdict(*index, edge, &eligible, answer, lookup)))
        .collect();
    FailureRoute { target, how, candidates }
}

/// The node to jump to for an unmet goal gate: the node's own targets, then the graph's (spec §3.4).
pub fn gate_target<'a>(pipeline: &'a Pipeline, gate: &NodeId) -> Option<&'a NodeId> {
    let node = pipeline.node(gate);
    node.and_then(|node| node.retry_target.as_ref())
        .or_else(|| node.and_then(|node| node.fallback_retry_target.as_ref()))
        .or(pipeline.retry_target.as_ref())
        .or(pipeline.fallback_retry_target.as_ref())
}

/// Brings a label into the form labels are compared in: trimmed, lower case, without `[K] `, `K) ` or `K - ` (spec §3.3).
pub fn normalize_label(label: &str) -> String {
    strip_accelerator(label.trim()).trim().to_lowercase()
}

fn strip_accelerator(label: &str) -> &str {
    if let Some((key, rest)) = label.strip_prefix('[').and_then(|label| label.split_once(']')) {
        let is_key = (1..=3).contains(&key.chars().count()) && key.chars().all(char::is_alphanumeric);
        if is_key && !rest.trim().is_empty() {
            return rest;
        }
    }
    let mut letters = label.chars();
    if letters.next().is_some_and(char::is_alphanumeric) {
        let rest = letters.as_str();
        if let Some(rest) = rest.strip_prefix(") ").or_else(|| rest.strip_prefix(" - ")) {
            return rest;
        }
    }
    label
}

type Listed<'a> = Vec<(EdgeIndex, &'a Edge)>;

/// Parts edges into those whose condition holds and those without one.
fn split<'a>(edges: &[(EdgeIndex, &'a Edge)], answer: &Answer<'_>, lookup: Lookup<'_>) -> (Listed<'a>, Listed<'a>) {
    let holding = edges.iter().filter(|(_, edge)| edge.condition.as_ref().is_some_and(|c| c.holds(answer, lookup)));
    let plain = edges.iter().filter(|(_, edge)| edge.condition.is_none());
    (holding.copied().collect(), plain.copied().collect())
}

/// Finds the first step that has something to offer, and what it offers.
fn narrow<'a>(holding: Listed<'a>, plain: Listed<'a>, answer: &Answer<'_>) -> (&'static str, Listed<'a>) {
    if !holding.is_empty() {
        return ("condition", holding);
    }
    let wanted = normalize_label(answer.preferred_label);
    if !wanted.is_empty()
        && let Some(found) = plain.iter().find(|(_, edge)| normalize_label(&edge.label) == wanted)
    {
        return ("preferred_label", vec![*found]);
    }
    for id in answer.suggested_next_ids {
        if let Some(found) = plain.iter().find(|(_, edge)| edge.to.as_str() == id.trim()) {
            return ("suggested_id", vec![*found]);
        }
    }
    let defaults: Listed<'_> = plain.iter().filter(|(_, edge)| edge.default).copied().collect();
    if !defaults.is_empty() {
        return ("default", defaults);
    }
    let heaviest = plain.iter().map(|(_, edge)| edge.weight).max();
    match plain.iter().filter(|(_, edge)| Some(edge.weight) == heaviest).count() {
        0 => ("none", plain),
        1 => ("weight", plain),
        _ => ("lexical", plain),
    }
}

fn best<'a>(edges: &[(EdgeIndex, &'a Edge)]) -> Option<(EdgeIndex, &'a Edge)> {
    edges.iter().copied().min_by_key(|(index, edge)| (Reverse(edge.weight), &edge.to, *index))
}

fn reads_outcome(edge: &Edge) -> bool {
    edge.condition.as_ref().is_some_and(|condition| condition.reads_outcome())
}

fn leads_to_diamond(pipeline: &Pipeline, edge: &Edge) -> bool {
    pipeline.node(&edge.to).is_some_and(|node| node.handler == Handler::Conditional)
}

fn explain(edge: EdgeIndex, from: &Edge, (matched, reason): (bool, String)) -> Candidate {
    let condition_text = from.condition.as_ref().map(|condition| condition.text.to_string()).unwrap_or_default();
    Candidate { edge, condition_text, matched, reason }
}

fn edge_verdict(
    index: EdgeIndex,
    edge: &Edge,
    eligible: &[(EdgeIndex, &Edge)],
    how: &str,
    answer: &Answer<'_>,
) -> (bool, String) {
    let matched = eligible.iter().any(|(other, _)| *other == index);
    let chosen = best(eligible).is_some_and(|(other, _)| other == index);
    let reason = match (&edge.condition, matched) {
        (Some(_), false) => format!("condition does not hold for outcome {}", answer.status.as_str()),
        (Some(_), true) if chosen => "condition holds".to_owned(),
        (None, true) if chosen => format!("chosen by {how}"),
        (_, true) => "an eligible edge with more weight, or an earlier target id, goes first".to_owned(),
        (None, false) if how == "condition" => "an edge whose condition holds goes first".to_owned(),
        (None, false) => format!("another edge is chosen by {how}"),
    };
    (matched, reason)
}

fn failure_verdict(
    index: EdgeIndex,
    edge: &Edge,
    eligible: &[(EdgeIndex, &Edge)],
    answer: &Answer<'_>,
    lookup: Lookup<'_>,
) -> (bool, String) {
    let matched = eligible.iter().any(|(other, _)| *other == index);
    let reason = match &edge.condition {
        Some(_) if matched => "condition holds".to_owned(),
        Some(condition) if condition.holds(answer, lookup) => {
            "condition holds, but a failed stage follows only conditions that read `outcome`".to_owned()
        }
        Some(_) => format!("condition does not hold for outcome {}", answer.status.as_str()),
        None if matched => "a plain edge into a diamond".to_owned(),
        None => "a failed stage does not follow a plain edge".to_owned(),
    };
    (matched, reason)
}
