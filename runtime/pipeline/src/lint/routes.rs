//! Rules about the routes of outcomes: conditions that leave an outcome without an edge, conditions that never hold, and failures
//! that end as a success.
//!
//! The rules evaluate the conditions of a node for every combination of the values that the conditions name. They report nothing
//! if there are more than [`COMBINATIONS_MAX`] combinations.

use super::{LintContext, Rule, RuleFindings};
use crate::condition::{Clause, Condition, Operator};
use crate::ir::{Edge, Handler, NodeId, Pipeline, Status};
use crate::nearest::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of combinations of context values that are tried for one node and outcome.
const COMBINATIONS_MAX: usize = 256;

const STATUSES: &[Status] = &[Status::Success, Status::PartialSuccess, Status::Retry, Status::Fail, Status::Skipped];

/// Stands for all values that no condition names.
const OTHER: &str = "\u{0}other";

/// For which combinations of context values a condition holds, given an outcome: for none, some or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// No combination satisfies a condition.
    Never,
    /// Some combinations satisfy a condition, and others satisfy none.
    Sometimes,
    /// Every combination satisfies at least one condition.
    Always,
    /// There are too many combinations to try.
    Unknown,
}

/// Evaluates the conditions for an outcome, with every combination of the values that the conditions name.
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

/// Returns true if the condition of the edge can hold for an outcome. Returns false if there are too many combinations.
pub(super) fn may_hold(edge: &Edge, status: Status) -> bool {
    let covered = edge.condition.as_ref().map(|condition| coverage(&[condition], status));
    matches!(covered, Some(Coverage::Sometimes | Coverage::Always))
}

/// Returns true if the condition of the edge can hold after a failure, or after the last retry.
pub(super) fn may_hold_for_failure(edge: &Edge) -> bool {
    may_hold(edge, Status::Fail) || may_hold(edge, Status::Retry)
}

/// Returns true if the condition of the edge always holds for an outcome.
pub(super) fn must_hold(edge: &Edge, status: Status) -> bool {
    edge.condition.as_ref().is_some_and(|condition| coverage(&[condition], status) == Coverage::Always)
}

/// Returns true if, for this outcome, at least one of the edges' conditions holds whatever the context contains.
pub(super) fn always_followed<'a>(edges: impl Iterator<Item = &'a Edge>, status: Status) -> bool {
    coverage(&conditions(edges), status) == Coverage::Always
}

impl Pipeline {
    /// Returns true if the run may follow an edge of the node after this outcome.
    pub fn may_route(&self, node: &NodeId, status: Status) -> bool {
        let edges: Vec<&Edge> = self.outgoing(node).map(|(_, edge)| edge).collect();
        let conditions = conditions(edges.iter().copied());
        edges.len() > conditions.len() || coverage(&conditions, status) != Coverage::Never
    }
}

/// Returns the combination with this number: one value for each key.
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

/// Returns true if the node is the last stage before an exit: every edge that compares the outcome leads to an exit.
/// Such a stage may stop the run, because its failure is the failure of the run.
fn is_last(context: &LintContext<'_>, number: usize) -> bool {
    let mut asking =
        context.outgoing(number).filter(|edge| edge.condition.as_ref().is_some_and(|asked| asked.reads_outcome()));
    asking.all(|edge| leads_to_exit(context, edge))
}

fn leads_to_exit(context: &LintContext<'_>, edge: &Edge) -> bool {
    context.node(&edge.to).is_some_and(|node| node.handler == Handler::Exit)
}

pub(super) fn no_failure_route(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for (number, node) in context.working() {
        if found.is_full() {
            break;
        }
        let asking: Vec<&Condition> =
            conditions(context.outgoing(number)).into_iter().filter(|condition| condition.reads_outcome()).collect();
        let has_target = node.routing.retry_target.is_some() || node.routing.fallback_retry_target.is_some();
        let into_diamond = |edge: &Edge| {
            edge.condition.is_none() && context.node(&edge.to).is_some_and(|node| node.handler == Handler::Conditional)
        };
        if asking.is_empty() || has_target || is_last(context, number) || context.outgoing(number).any(into_diamond) {
            continue;
        }
        if coverage(&asking, Status::Fail) == Coverage::Never {
            let message = format!("if `{}` fails, the run stops: none of its edges holds for `outcome=fail`", node.id);
            found.push(rule.found(message, node.span).with_node(node.id.as_str()));
        }
    }
    found
}

/// Returns true if a condition compares the preferred label. A human gate asks again until the answer is one of the
/// labels, so one of its edges always holds.
fn asks_for_a_label(conditions: &[&Condition]) -> bool {
    conditions.iter().flat_map(|condition| &condition.clauses).any(|clause| clause.key.is_preferred_label())
}

pub(super) fn all_conditional_edges(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for (number, node) in context.pipeline.nodes.iter().enumerate() {
        if found.is_full() {
            break;
        }
        let edges = || context.outgoing(number);
        if edges().next().is_none() || edges().any(|edge| edge.condition.is_none()) {
            continue;
        }
        let conditions = conditions(edges());
        let is_reported = conditions.iter().flat_map(|condition| &condition.clauses).any(names_unknown_outcome);
        if is_reported || node.handler == Handler::Human && asks_for_a_label(&conditions) {
            continue;
        }
        // A conditional node keeps the outcome of the stage before it, so it must also route a failure. For other
        // stages, a failure has other routes.
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

/// Reports edges to an exit that are only for failures. A goal gate may have such an edge, because the exit checks the gate.
pub(super) fn edge_to_exit_on_failure(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let is_gate = |edge: &Edge| context.node(&edge.from).is_some_and(|node| node.checks.goal_gate);
    let for_failure = |edge: &Edge| {
        let Some(condition) = &edge.condition else { return false };
        let may = |status: Status| !matches!(coverage(&[condition], status), Coverage::Never | Coverage::Unknown);
        (may(Status::Fail) || may(Status::Retry)) && !may(Status::Success) && !may(Status::PartialSuccess)
    };
    let edges = context
        .pipeline
        .edges
        .iter()
        .filter(|edge| for_failure(edge) && leads_to_exit(context, edge) && !is_gate(edge));
    let found = |edge: &Edge| {
        let message = format!("if `{}` fails, the run ends as a success at `{}`", edge.from, edge.to);
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    edges.map(found).collect()
}

/// Reports edges for the outcome `retry` that no run takes, because the node never keeps that outcome.
pub(super) fn retry_edge_never_taken(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let waits = |edge: &&Edge| edge.condition.as_ref().is_some_and(Condition::waits_for_retry);
    let found = |edge: &Edge| {
        let node = context.node(&edge.from)?;
        let because = match node.handler {
            _ if node.routing.allow_partial => "after the last retry, `allow_partial` makes it `partial_success`",
            Handler::FanIn(_) => "a fan-in whose judge asks for a retry fails",
            Handler::Start | Handler::Human | Handler::Parallel => "it never asks for a retry",
            _ => return None,
        };
        let message = format!("`{}` never ends with `outcome=retry`: {because}", edge.from);
        Some(rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str()))
    };
    context.pipeline.edges.iter().filter(waits).filter_map(found).collect()
}

/// Returns every clause of every condition, with its edge.
fn clauses<'a>(context: &LintContext<'a>) -> impl Iterator<Item = (&'a Edge, &'a Clause)> {
    let edges = context.pipeline.edges.iter();
    edges.flat_map(|edge| {
        edge.condition.iter().flat_map(|condition| &condition.clauses).map(move |clause| (edge, clause))
    })
}

/// Returns true for a clause that compares the outcome with an unknown word. `condition_outcome` reports such a clause.
fn names_unknown_outcome(clause: &Clause) -> bool {
    let is_unknown = || STATUSES.iter().all(|status| status.as_str() != clause.literal);
    is_outcome(clause) && clause.operator != Operator::Truthy && is_unknown()
}

pub(super) fn condition_outcome(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let words: Vec<&str> = STATUSES.iter().map(|status| status.as_str()).collect();
    let odd = clauses(context).filter(|(_, clause)| names_unknown_outcome(clause));
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

/// Returns Glovebox's name for an outcome of other engines.
fn name_here(outcome: &str) -> Option<&'static str> {
    match outcome.to_lowercase().as_str() {
        "succeeded" | "passed" | "pass" | "ok" => Some("success"),
        "failed" | "failure" | "error" => Some("fail"),
        _ => None,
    }
}

pub(super) fn condition_key(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    const KEYS: &[&str] = &["outcome", "preferred_label", "context"];
    let found = |(edge, clause): (&Edge, &Clause)| {
        let head = clause.key.as_str().split('.').next().unwrap_or_default();
        let meant = if KEYS.contains(&head) { None } else { nearest(head, KEYS.iter().copied()) }?;
        let message = format!("`{}` reads a context key, not a built-in key", clause.key);
        let found = rule.found(message, clause.span).with_edge(edge.from.as_str(), edge.to.as_str());
        Some(found.with_help(format!("did you mean `{meant}`?")))
    };
    clauses(context).filter_map(found).collect()
}

pub(super) fn default_ignored(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let edges = context.pipeline.edges.iter().filter(|edge| edge.default && edge.condition.is_some());
    let found = |edge: &Edge| {
        let message = "`default=true` has no effect on an edge with a condition";
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    edges.map(found).collect()
}
