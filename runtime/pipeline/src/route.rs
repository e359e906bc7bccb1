//! Selects the next edge (spec §3.3, §3.7).
//!
//! The selection is pure: for the same graph, outcome and context it always selects the same edge, and every other edge
//! gets a reason. The first edge of a node is never a fallback. A failed stage never follows an edge without a
//! condition, except to a conditional node, which decides by conditions. The outcome `retry` means that no retries are
//! left; it is treated as a failure unless a condition holds for it (decision retry-edges-come-last).

use crate::ir::{Edge, EdgeIndex, Handler, NodeId, Pipeline};
use crate::outcome::{Answer, Lookup};
use glovebox_record::Status;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// One outgoing edge, and why it was or was not eligible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The edge.
    pub edge: EdgeIndex,
    /// Source text of the edge's condition; empty if it has none.
    pub condition_text: String,
    /// True if the edge was eligible in the step that decided.
    pub matched: bool,
    /// Why the edge was or was not eligible.
    pub reason: String,
}

/// The selected edge, and all candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The selected edge. `None` if no edge is eligible; then the run fails with `no route from node X for outcome Y`.
    pub edge: Option<EdgeIndex>,
    /// The step that decided. [`Step::Nothing`] if no edge is selected.
    pub how: Step,
    /// All outgoing edges in file order.
    pub candidates: Vec<Candidate>,
}

/// The step that decided which edge a run takes after a stage, or to which node it jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A condition holds.
    Condition,
    /// The stage prefers this label.
    PreferredLabel,
    /// The stage suggests this node.
    SuggestedId,
    /// The edge has `default=true`.
    Default,
    /// The edge has the highest weight.
    Weight,
    /// Among edges with equal weights, the target's id comes first in lexical order.
    Lexical,
    /// The run jumps to the `retry_target` of the failed stage.
    RetryTarget,
    /// The run jumps to the `fallback_retry_target` of the failed stage.
    FallbackRetryTarget,
    /// The failed stage has an edge without a condition to a conditional node.
    Diamond,
    /// No step decided: there is no route.
    Nothing,
}

impl Step {
    /// Returns the name used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::PreferredLabel => "preferred_label",
            Self::SuggestedId => "suggested_id",
            Self::Default => "default",
            Self::Weight => "weight",
            Self::Lexical => "lexical",
            Self::RetryTarget => "retry_target",
            Self::FallbackRetryTarget => "fallback_retry_target",
            Self::Diamond => "diamond",
            Self::Nothing => "none",
        }
    }
}

/// Where the run continues after a failed stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureTarget {
    /// An edge: one with a condition for the failure, or one without a condition to a conditional node.
    Edge(EdgeIndex),
    /// A jump to the node that `retry_target` or `fallback_retry_target` names.
    Node(NodeId),
    /// Nowhere: the run fails with the stage's reason.
    Stop,
}

/// The route after a failed stage, and all candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRoute {
    /// Where the run continues.
    pub target: FailureTarget,
    /// The step that decided. [`Step::Nothing`] if the run stops.
    pub how: Step,
    /// All outgoing edges in file order.
    pub candidates: Vec<Candidate>,
}

/// Selects the edge after a stage that did not fail, or after a conditional node, whatever its outcome.
///
/// The steps are, in this order: condition, preferred label, suggested ids, `default=true`, weight, target id. Labels, ids and
/// defaults apply only to edges without a condition, so that the outcome of a stage cannot bypass a condition.
pub fn select(pipeline: &Pipeline, node: &NodeId, answer: &Answer<'_>, lookup: Lookup<'_>) -> Selection {
    let edges: Vec<(EdgeIndex, &Edge)> = pipeline.outgoing(node).collect();
    let (holding, plain) = split(&edges, answer, lookup);
    if answer.status == Status::Retry && holding.is_empty() {
        return as_failure(answer, lookup, |answer, lookup| select(pipeline, node, answer, lookup));
    }
    let (how, eligible) = narrow(holding, plain, answer);
    let edge = best(&eligible).map(|(index, _)| index);
    let candidates = edges
        .iter()
        .map(|(index, edge)| explain(*index, edge, edge_verdict(*index, edge, &eligible, how, answer)))
        .collect();
    Selection { edge, how, candidates }
}

/// Finds the route after a failed stage, in this order: a fail edge, `retry_target`, `fallback_retry_target`, an edge without a
/// condition to a conditional node, stop.
///
/// A fail edge has a condition that reads `outcome` and holds; an edge whose condition reads only the context is not a
/// fail edge. After a conditional node that keeps a failure, use [`select`], because the conditional node itself did
/// not fail.
pub fn failure_target(pipeline: &Pipeline, node: &NodeId, answer: &Answer<'_>, lookup: Lookup<'_>) -> FailureRoute {
    let edges: Vec<(EdgeIndex, &Edge)> = pipeline.outgoing(node).collect();
    let (holding, plain) = split(&edges, answer, lookup);
    let failing: Vec<_> = holding.into_iter().filter(|(_, edge)| reads_outcome(edge)).collect();
    if answer.status == Status::Retry && failing.is_empty() {
        return as_failure(answer, lookup, |answer, lookup| failure_target(pipeline, node, answer, lookup));
    }
    let stage = pipeline.node(node);
    let (how, target, eligible) = if let Some((index, _)) = best(&failing) {
        (Step::Condition, FailureTarget::Edge(index), failing)
    } else if let Some(target) = stage.and_then(|stage| stage.routing.retry_target.clone()) {
        (Step::RetryTarget, FailureTarget::Node(target), Vec::new())
    } else if let Some(target) = stage.and_then(|stage| stage.routing.fallback_retry_target.clone()) {
        (Step::FallbackRetryTarget, FailureTarget::Node(target), Vec::new())
    } else {
        let into_diamond: Vec<_> = plain.into_iter().filter(|(_, edge)| leads_to_diamond(pipeline, edge)).collect();
        match best(&into_diamond) {
            Some((index, _)) => (Step::Diamond, FailureTarget::Edge(index), into_diamond),
            None => (Step::Nothing, FailureTarget::Stop, Vec::new()),
        }
    };
    let candidates = edges
        .iter()
        .map(|(index, edge)| explain(*index, edge, failure_verdict(*index, edge, &eligible, answer, lookup)))
        .collect();
    FailureRoute { target, how, candidates }
}

/// Returns true if a stage without retries left keeps the outcome `retry`. For this, a condition for `retry` must be on
/// an edge of the stage, or on an edge of a conditional node to which a failure of the stage leads.
pub fn awaits_retry(pipeline: &Pipeline, node: &NodeId) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![node]);
    while let Some(id) = open.pop() {
        let is_stage = id == node;
        let has_target = pipeline
            .node(id)
            .is_some_and(|n| n.routing.retry_target.is_some() || n.routing.fallback_retry_target.is_some());
        for (_, edge) in pipeline.outgoing(id) {
            if edge.condition.as_ref().is_some_and(|condition| condition.waits_for_retry()) {
                return true;
            }
            let is_followed = !is_stage || (edge.condition.is_none() && !has_target);
            if is_followed && leads_to_diamond(pipeline, edge) && seen.insert(&edge.to) {
                open.push(&edge.to);
            }
        }
    }
    false
}

/// Decides as if the stage had failed.
fn as_failure<R>(answer: &Answer<'_>, lookup: Lookup<'_>, decide: impl FnOnce(&Answer<'_>, Lookup<'_>) -> R) -> R {
    let failed = Answer { status: Status::Fail, ..*answer };
    let lookup = |key: &str| match key {
        "outcome" | "context.outcome" => Status::Fail.as_str().to_owned(),
        _ => lookup(key),
    };
    decide(&failed, &lookup)
}

/// Returns the jump target for an unsatisfied goal gate: the node's own targets, then the graph's (spec §3.4).
pub fn gate_target<'a>(pipeline: &'a Pipeline, gate: &NodeId) -> Option<&'a NodeId> {
    let node = pipeline.node(gate);
    node.and_then(|node| node.routing.retry_target.as_ref())
        .or_else(|| node.and_then(|node| node.routing.fallback_retry_target.as_ref()))
        .or(pipeline.retry_target.as_ref())
        .or(pipeline.fallback_retry_target.as_ref())
}

/// Normalizes a label for comparison: trimmed, lower case, without `[K] `, `K) ` or `K - ` (spec §3.3).
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
    let mut chars = label.chars();
    if chars.next().is_some_and(char::is_alphanumeric) {
        let rest = chars.as_str();
        if let Some(rest) = rest.strip_prefix(") ").or_else(|| rest.strip_prefix(" - ")) {
            return rest;
        }
    }
    label
}

type EdgeList<'a> = Vec<(EdgeIndex, &'a Edge)>;

/// Splits edges into those whose condition holds, and those without a condition. Leaves out edges whose condition does not hold.
fn split<'a>(edges: &[(EdgeIndex, &'a Edge)], answer: &Answer<'_>, lookup: Lookup<'_>) -> (EdgeList<'a>, EdgeList<'a>) {
    let holding = edges.iter().filter(|(_, edge)| edge.condition.as_ref().is_some_and(|c| c.holds(answer, lookup)));
    let plain = edges.iter().filter(|(_, edge)| edge.condition.is_none());
    (holding.copied().collect(), plain.copied().collect())
}

/// Returns the first step with eligible edges, and these edges.
fn narrow<'a>(holding: EdgeList<'a>, plain: EdgeList<'a>, answer: &Answer<'_>) -> (Step, EdgeList<'a>) {
    if !holding.is_empty() {
        return (Step::Condition, holding);
    }
    let wanted = normalize_label(answer.preferred_label);
    if !wanted.is_empty()
        && let Some(found) = plain.iter().find(|(_, edge)| normalize_label(&edge.label) == wanted)
    {
        return (Step::PreferredLabel, vec![*found]);
    }
    for id in answer.suggested_next_ids {
        if let Some(found) = plain.iter().find(|(_, edge)| edge.to.as_str() == id.trim()) {
            return (Step::SuggestedId, vec![*found]);
        }
    }
    let defaults: EdgeList<'_> = plain.iter().filter(|(_, edge)| edge.default).copied().collect();
    if !defaults.is_empty() {
        return (Step::Default, defaults);
    }
    let heaviest = plain.iter().map(|(_, edge)| edge.weight).max();
    match plain.iter().filter(|(_, edge)| Some(edge.weight) == heaviest).count() {
        0 => (Step::Nothing, plain),
        1 => (Step::Weight, plain),
        _ => (Step::Lexical, plain),
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

/// Whether an edge is eligible, and why.
struct EdgeVerdict {
    matched: bool,
    reason: String,
}

fn explain(edge: EdgeIndex, from: &Edge, verdict: EdgeVerdict) -> Candidate {
    let condition_text = from.condition.as_ref().map(|condition| condition.text.to_string()).unwrap_or_default();
    Candidate { edge, condition_text, matched: verdict.matched, reason: verdict.reason }
}

fn edge_verdict(
    index: EdgeIndex,
    edge: &Edge,
    eligible: &[(EdgeIndex, &Edge)],
    how: Step,
    answer: &Answer<'_>,
) -> EdgeVerdict {
    let matched = eligible.iter().any(|(other, _)| *other == index);
    let chosen = best(eligible).is_some_and(|(other, _)| other == index);
    let reason = match (&edge.condition, matched) {
        (Some(_), false) => format!("condition does not hold for outcome {}", answer.status.as_str()),
        (Some(_), true) if chosen => "condition holds".to_owned(),
        (None, true) if chosen => format!("chosen by {}", how.as_str()),
        (_, true) => "another eligible edge has more weight or an earlier target id".to_owned(),
        (None, false) if how == Step::Condition => "an edge with a condition that holds takes precedence".to_owned(),
        (None, false) => format!("another edge is chosen by {}", how.as_str()),
    };
    EdgeVerdict { matched, reason }
}

fn failure_verdict(
    index: EdgeIndex,
    edge: &Edge,
    eligible: &[(EdgeIndex, &Edge)],
    answer: &Answer<'_>,
    lookup: Lookup<'_>,
) -> EdgeVerdict {
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
    EdgeVerdict { matched, reason }
}
