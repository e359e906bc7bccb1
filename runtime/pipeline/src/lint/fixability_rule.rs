//! The rule about fix loops that cannot succeed: a failure leads to a builder that must not write the failed script.
//!
//! The rule checks only the next stage after the failure, and skips conditional nodes on the way to it. The run checks again
//! before each builder ([`crate::fixability`]).

use super::routes::{may_hold_for_failure, must_hold};
use super::{LintContext, Rule, RuleFindings};
use crate::fixability::{out_of_reach, reason};
use crate::hash::HashSet;
use crate::ir::{Handler, HandlerKind, Node, NodeId, Status};
use crate::key;

pub(super) fn unfixable_failure_source(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let tools = context.working().filter(|(_, node)| node.handler.kind() == HandlerKind::Tool);
    let found = tools.flat_map(|(number, tool)| {
        after_failure(context, number).into_iter().filter_map(move |builder| {
            let scripts = out_of_reach(context.pipeline, tool, builder);
            if scripts.is_empty() {
                return None;
            }
            let span =
                builder.attributes.get(key::ALLOWED_WRITE_PATHS).map_or(builder.span, |attribute| attribute.span);
            let message = reason(&tool.id, &scripts, &builder.id);
            Some(
                rule.found(message, span).with_label(tool.span, "this tool stage fails").with_node(builder.id.as_str()),
            )
        })
    });
    found.collect()
}

/// Returns the nodes that may follow a failure of the node with this number (spec §3.7).
fn after_failure<'a>(context: &LintContext<'a>, number: usize) -> Vec<&'a Node> {
    let node = &context.pipeline.nodes[number];
    let mut next: Vec<&NodeId> = Vec::new();
    for edge in context.outgoing(number) {
        let for_failure = edge.condition.as_ref().is_some_and(|condition| condition.reads_outcome());
        let into_diamond = edge.condition.is_none() && is_diamond(context, &edge.to);
        if into_diamond || (for_failure && may_hold_for_failure(edge)) {
            next.push(&edge.to);
        }
    }
    next.extend(node.routing.retry_target.as_ref().or(node.routing.fallback_retry_target.as_ref()));
    through_diamonds(context, next)
}

fn is_diamond(context: &LintContext<'_>, id: &NodeId) -> bool {
    context.node(id).is_some_and(|node| node.handler == Handler::Conditional)
}

/// Replaces each conditional node by the nodes that may follow it after a failure.
fn through_diamonds<'a>(context: &LintContext<'a>, mut open: Vec<&'a NodeId>) -> Vec<&'a Node> {
    let (mut seen, mut found) = (HashSet::default(), Vec::new());
    while let Some(id) = open.pop() {
        let (Some(node), Some(number)) = (context.node(id), context.index(id)) else { continue };
        if !seen.insert(id) {
            continue;
        }
        if node.handler != Handler::Conditional {
            found.push((number, node));
            continue;
        }
        let is_decided = context.outgoing(number).any(|edge| must_hold(edge, Status::Fail));
        let edges = context.outgoing(number).filter(|edge| match edge.condition {
            Some(_) => may_hold_for_failure(edge),
            None => !is_decided,
        });
        open.extend(edges.map(|edge| &edge.to));
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, node)| node).collect()
}
