//! The rule about retry targets that no run jumps to.
//!
//! A value from a defaults block stands on many nodes; it counts as used when one of them uses it.

use super::routes::always_followed;
use super::{Found, Rule, Subject};
use crate::ir::{Handler, Node, NodeId, Status};
use crate::keyed::Attributes;
use crate::span::Span;
use std::collections::HashSet;

/// A retry target as written, and what keeps it from being jumped to.
struct Written<'a> {
    node: Option<&'a Node>,
    key: &'static str,
    span: Span,
    /// None when it is used.
    instead: Option<String>,
}

pub(super) fn unused_retry_target(rule: &Rule, subject: &Subject<'_>) -> Found {
    let pipeline = subject.pipeline;
    let mut written = Vec::new();
    if pipeline.retry_target.is_some() || pipeline.fallback_retry_target.is_some() {
        let reason = graph_reason(subject);
        list(
            &mut written,
            None,
            &pipeline.attributes,
            [&pipeline.retry_target, &pipeline.fallback_retry_target],
            reason,
        );
    }
    for (number, node) in pipeline.nodes.iter().enumerate() {
        if node.retry_target.is_some() || node.fallback_retry_target.is_some() {
            let reason = node_reason(subject, number, node);
            let targets = [&node.retry_target, &node.fallback_retry_target];
            list(&mut written, Some(node), &node.attributes, targets, reason);
        }
    }
    let mut told: HashSet<Span> =
        written.iter().filter(|target| target.instead.is_none()).map(|target| target.span).collect();
    let mut found = Found::none();
    for target in written {
        let (Some(instead), true) = (target.instead, told.insert(target.span)) else { continue };
        let mut finding = rule.found(format!("no run jumps to this `{}`: {instead}", target.key), target.span);
        finding.node = target.node.map(|node| node.id.to_string());
        found.push(finding);
    }
    found
}

/// Takes down both targets of one carrier. `reason` holds for both; the fallback has one of its own.
fn list<'a>(
    written: &mut Vec<Written<'a>>,
    node: Option<&'a Node>,
    attributes: &Attributes,
    [first, second]: [&Option<NodeId>; 2],
    reason: Option<String>,
) {
    let place = |key: &str| attributes.get(key).map(|attribute| attribute.span);
    if let (Some(_), Some(span)) = (first, place("retry_target")) {
        written.push(Written { node, key: "retry_target", span, instead: reason.clone() });
    }
    if let (Some(_), Some(span)) = (second, place("fallback_retry_target")) {
        let behind = first.as_ref().map(|first| format!("`retry_target` names `{first}`, which goes first"));
        written.push(Written { node, key: "fallback_retry_target", span, instead: reason.or(behind) });
    }
}

/// Why the graph's targets serve nothing: they are for goal gates that name none.
fn graph_reason(subject: &Subject<'_>) -> Option<String> {
    let mut gates = subject.pipeline.nodes.iter().filter(|node| node.goal_gate).peekable();
    if gates.peek().is_none() {
        return Some("the graph's targets are for unmet goal gates, and no node is one".to_owned());
    }
    let own = |node: &Node| node.retry_target.is_some() || node.fallback_retry_target.is_some();
    gates.all(own).then(|| "every goal gate has a target of its own".to_owned())
}

/// Why a node's targets serve nothing: it does not fail, or its failures have an edge.
fn node_reason(subject: &Subject<'_>, number: usize, node: &Node) -> Option<String> {
    if node.goal_gate {
        return None;
    }
    match node.handler {
        Handler::Start | Handler::Exit => return Some(format!("`{}` does no work that could fail", node.id)),
        Handler::Conditional => {
            return Some(format!("`{}` passes on what came before and does not fail itself", node.id));
        }
        Handler::Component(_) | Handler::Unavailable(_) => {}
    }
    let asking =
        subject.outgoing(number).filter(|edge| edge.condition.as_ref().is_some_and(|asked| asked.reads_outcome()));
    always_followed(asking, Status::Fail)
        .then(|| format!("an edge is there for each failure of `{}`, and goes first", node.id))
}
