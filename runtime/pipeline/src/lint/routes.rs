//! Rules about the routes of outcomes: conditions with a gap, conditions that never hold, and failures that end as a success.
//!
//! The rules try a node's conditions on every combination of the values that they name. With more than [`COMBINATIONS_MAX`]
//! combinations they report nothing.

use super::{Rule, RuleFindings, Subject};
use crate::condition::{Clause, Condition, Operator};
use crate::ir::{Edge, Handler, NodeId, Pipeline, Status};
use crate::nearest::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// The most combinations of context values tried for one node and outcome.
const COMBINATIONS_MAX: usize = 256;

const STATUSES: &[Status] = &[Status::Success, Status::PartialSuccess, Status::Retry, Status::Fail, Status::Skipped];

/// A value that no condition names.
const OTHER: &str = "\u{0}other";

/// The coverage of one outcome by conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// No condition holds in any combination of values.
    Never,
    /// A condition holds in some combinations.
    Sometimes,
    /// A condition holds in every combination.
    Always,
    /// There are too many combinations.
    Unknown,
}

/// Tries the conditions on an outcome, with every combination of the values that they name.
fn coverage(conditions: &[&Condition], status: Status) -> Coverage {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for clause in conditions.iter().flat_map(|condition| &condition.clauses).filter(|clause| !is_outcome(clause)) {
        let named = values.entry(clause.key.as_str()).or_insert_with(|| BTreeSet::from([OTHER]));
        named.insert(if clause.operator == Operator::Truthy { "" } else { &clause.literal });
    }
    if values.is_empty() {
        let holds =
            conditions.iter().any(|condition| condition.clauses.iter().all(|clause| clause.admits(status.as_str())));
        return if holds { Coverage::Always } else { Coverage::Never };
    }
    let combinations = values.values().try_fold(1_usize, |product, named| product.checked_mul(named.len()));
    let Some(combinations) = combinations.filter(|combinations| *combinations <= COMBINATIONS_MAX) else {
        return Coverage::Unknown;
    };
    let holding = (0..combinations).filter(|number| {
        let chosen = combination(&values, *number);
        conditions.iter().any(|condition| condition.clauses.iter().all(|clause| admits(clause, &chosen, status)))
    });
    match holding.count() {
        0 => Coverage::Never,
        count if count == combinations => Coverage::Always,
        _ => Coverage::Sometimes,
    }
}

/// True if the edge's condition may hold for an outcome. False if there are too many combinations.
pub(super) fn may_hold(edge: &Edge, status: Status) -> bool {
    let covered = edge.condition.as_ref().map(|condition| coverage(&[condition], status));
    matches!(covered, Some(Coverage::Sometimes | Coverage::Always))
}

/// True if the edge's condition may hold after a failure, or when retries are used up.
pub(super) fn may_hold_for_failure(edge: &Edge) -> bool {
    may_hold(edge, Status::Fail) || may_hold(edge, Status::Retry)
}

/// True if the edge's condition always holds for an outcome.
pub(super) fn must_hold(edge: &Edge, status: Status) -> bool {
    edge.condition.as_ref().is_some_and(|condition| coverage(&[condition], status) == Coverage::Always)
}

/// True if one of the edges always holds for an outcome.
pub(super) fn always_followed<'a>(edges: impl Iterator<Item = &'a Edge>, status: Status) -> bool {
    coverage(&conditions(edges), status) == Coverage::Always
}

impl Pipeline {
    /// True if an edge out of the node may be followed for this outcome.
    pub fn may_route(&self, node: &NodeId, status: Status) -> bool {
        let edges: Vec<&Edge> = self.outgoing(node).map(|(_, edge)| edge).collect();
        let conditions = conditions(edges.iter().copied());
        edges.len() > conditions.len() || coverage(&conditions, status) != Coverage::Never
    }
}

/// The combination with this number: one value for each key.
fn combination<'a>(values: &BTreeMap<&'a str, BTreeSet<&'a str>>, mut number: usize) -> BTreeMap<&'a str, &'a str> {
    let mut chosen = BTreeMap::new();
    for (key, named) in values {
        chosen.extend(named.iter().nth(number % named.len()).map(|value| (*key, *value)));
        number /= named.len();
    }
    chosen
}

fn admits(clause: &Clause, chosen: &BTreeMap<&str, &str>, status: Status) -> bool {
    if is_outcome(clause) {
        return clause.admits(status.as_str());
    }
    clause.admits(chosen.get(clause.key.as_str()).copied().unwrap_or_default())
}

fn is_outcome(clause: &Clause) -> bool {
    clause.key.is_outcome()
}

fn conditions<'a>(edges: impl Iterator<Item = &'a Edge>) -> Vec<&'a Condition> {
    edges.filter_map(|edge| edge.condition.as_ref()).collect()
}

/// The last stage before an exit may stop the run: its success leads to the exit, and its failure is the run's failure.
fn is_last(subject: &Subject<'_>, number: usize) -> bool {
    let mut asking =
        subject.outgoing(number).filter(|edge| edge.condition.as_ref().is_some_and(|asked| asked.reads_outcome()));
    asking.all(|edge| leads_to_exit(subject, edge))
}

fn leads_to_exit(subject: &Subject<'_>, edge: &Edge) -> bool {
    subject.node(&edge.to).is_some_and(|node| node.handler == Handler::Exit)
}

pub(super) fn no_failure_route(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for (number, node) in subject.working() {
        if found.is_full() {
            break;
        }
        let asking: Vec<&Condition> =
            conditions(subject.outgoing(number)).into_iter().filter(|condition| condition.reads_outcome()).collect();
        let has_target = node.routing.retry_target.is_some() || node.routing.fallback_retry_target.is_some();
        let into_diamond = |edge: &Edge| {
            edge.condition.is_none() && subject.node(&edge.to).is_some_and(|node| node.handler == Handler::Conditional)
        };
        if asking.is_empty() || has_target || is_last(subject, number) || subject.outgoing(number).any(into_diamond) {
            continue;
        }
        if coverage(&asking, Status::Fail) == Coverage::Never {
            let message = format!("if `{}` fails, the run stops: none of its edges holds for `outcome=fail`", node.id);
            found.push(rule.found(message, node.span).with_node(node.id.as_str()));
        }
    }
    found
}

/// A human gate asks again until the answer fits a label, so one of its edges always holds.
fn asks_for_a_label(conditions: &[&Condition]) -> bool {
    conditions.iter().flat_map(|condition| &condition.clauses).any(|clause| clause.key.is_preferred_label())
}

pub(super) fn all_conditional_edges(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for (number, node) in subject.pipeline.nodes.iter().enumerate() {
        if found.is_full() {
            break;
        }
        let edges = || subject.outgoing(number);
        if edges().next().is_none() || edges().any(|edge| edge.condition.is_none()) {
            continue;
        }
        let conditions = conditions(edges());
        let is_reported = conditions.iter().flat_map(|condition| &condition.clauses).any(names_unknown_outcome);
        if is_reported || node.handler == Handler::Human && asks_for_a_label(&conditions) {
            continue;
        }
        // A diamond passes a failure on and must route it. Other stages have routes of their own for a failure.
        let passed: &[Status] =
            if node.handler == Handler::Conditional { &[Status::Success, Status::Fail] } else { &[Status::Success] };
        let gap = passed
            .iter()
            .find(|status| matches!(coverage(&conditions, **status), Coverage::Never | Coverage::Sometimes));
        if let Some(status) = gap {
            let message = format!(
                "every edge of `{}` has a condition, and `outcome={}` may match none of them",
                node.id,
                status.as_str()
            );
            found.push(rule.found(message, node.span).with_node(node.id.as_str()));
        }
    }
    found
}

/// Reports edges into an exit that serve failures only. A goal gate may have one, because the exit checks it.
pub(super) fn edge_to_exit_on_failure(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let is_gate = |edge: &Edge| subject.node(&edge.from).is_some_and(|node| node.checks.goal_gate);
    let for_failure = |edge: &Edge| {
        let Some(condition) = &edge.condition else { return false };
        let may = |status: Status| !matches!(coverage(&[condition], status), Coverage::Never | Coverage::Unknown);
        (may(Status::Fail) || may(Status::Retry)) && !may(Status::Success) && !may(Status::PartialSuccess)
    };
    let edges = subject
        .pipeline
        .edges
        .iter()
        .filter(|edge| for_failure(edge) && leads_to_exit(subject, edge) && !is_gate(edge));
    let found = |edge: &Edge| {
        let message = format!("if `{}` fails, the run ends as a success at `{}`", edge.from, edge.to);
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    edges.map(found).collect()
}

/// Every clause of every edge, with its edge.
fn clauses<'a>(subject: &Subject<'a>) -> impl Iterator<Item = (&'a Edge, &'a Clause)> {
    let edges = subject.pipeline.edges.iter();
    edges.flat_map(|edge| {
        edge.condition.iter().flat_map(|condition| &condition.clauses).map(move |clause| (edge, clause))
    })
}

/// True for a clause that compares the outcome with an unknown word, which `condition_outcome` reports.
fn names_unknown_outcome(clause: &Clause) -> bool {
    let is_unknown = || STATUSES.iter().all(|status| status.as_str() != clause.literal);
    is_outcome(clause) && clause.operator != Operator::Truthy && is_unknown()
}

pub(super) fn condition_outcome(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let words: Vec<&str> = STATUSES.iter().map(|status| status.as_str()).collect();
    let odd = clauses(subject).filter(|(_, clause)| names_unknown_outcome(clause));
    let found = |(edge, clause): (&Edge, &Clause)| {
        let message = format!("unknown outcome `{}`", clause.literal);
        let found = rule.found(message, clause.span).with_edge(edge.from.as_str(), edge.to.as_str());
        let (meant, help) = match (nearest(&clause.literal, words.iter().copied()), name_here(&clause.literal)) {
            (Some(meant), _) => (meant, format!("did you mean `{meant}`?")),
            (None, Some(meant)) => (meant, format!("write `{meant}`, which is the name for `{}` here", clause.literal)),
            (None, None) => return found,
        };
        let span = clause.literal_span;
        let is_bare = span.end - span.start == clause.literal.len();
        let found = found.with_help(help);
        if is_bare { found.with_fix(span, meant) } else { found }
    };
    odd.map(found).collect()
}

/// The name here for an outcome of other engines.
fn name_here(outcome: &str) -> Option<&'static str> {
    match outcome.to_lowercase().as_str() {
        "succeeded" | "passed" | "pass" | "ok" => Some("success"),
        "failed" | "failure" | "error" => Some("fail"),
        _ => None,
    }
}

pub(super) fn condition_key(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    const KEYS: &[&str] = &["outcome", "preferred_label", "context"];
    let found = |(edge, clause): (&Edge, &Clause)| {
        let head = clause.key.as_str().split('.').next().unwrap_or_default();
        let meant = if KEYS.contains(&head) { None } else { nearest(head, KEYS.iter().copied()) }?;
        let message = format!("`{}` reads a context key, not a built-in key", clause.key);
        let found = rule.found(message, clause.span).with_edge(edge.from.as_str(), edge.to.as_str());
        Some(found.with_help(format!("did you mean `{meant}`?")))
    };
    clauses(subject).filter_map(found).collect()
}

pub(super) fn default_ignored(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let edges = subject.pipeline.edges.iter().filter(|edge| edge.default && edge.condition.is_some());
    let found = |edge: &Edge| {
        let message = "`default=true` has no effect on an edge with a condition";
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    edges.map(found).collect()
}
