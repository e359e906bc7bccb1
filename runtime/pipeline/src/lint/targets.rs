//! The rule about retry targets that no run uses.
//!
//! A value from a defaults block applies to many nodes. It counts as used if one of these nodes uses it.

use super::routes::always_followed;
use super::{LintContext, Rule, RuleFindings};
use crate::hash::HashSet;
use crate::ir::{Handler, Node, NodeId, Status};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::span::Span;

/// A retry target as written, and the reason why no run uses it.
struct RetryTarget<'a> {
    node: Option<&'a Node>,
    key: Key<'static>,
    span: Span,
    /// `None` if a run may use the target.
    unused_because: Option<String>,
}

pub(super) fn unused_retry_target(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    let mut written = Vec::new();
    if pipeline.retry_target.is_some() || pipeline.fallback_retry_target.is_some() {
        add_targets(
            &mut written,
            None,
            &pipeline.attributes,
            [&pipeline.retry_target, &pipeline.fallback_retry_target],
            || graph_reason(context),
        );
    }
    for (number, node) in pipeline.nodes.iter().enumerate() {
        if node.routing.retry_target.is_some() || node.routing.fallback_retry_target.is_some() {
            let targets = [&node.routing.retry_target, &node.routing.fallback_retry_target];
            add_targets(&mut written, Some(node), &node.attributes, targets, || node_reason(context, number, node));
        }
    }
    let mut reported: HashSet<Span> =
        written.iter().filter(|target| target.unused_because.is_none()).map(|target| target.span).collect();
    let mut found = RuleFindings::none();
    for target in written {
        let (Some(reason), true) = (target.unused_because, reported.insert(target.span)) else { continue };
        let mut finding = rule.found(format!("this `{}` has no effect: {reason}", target.key), target.span);
        finding.node = target.node.map(|node| node.id.to_string());
        found.push(finding);
    }
    found
}

/// Adds both targets of one element to the list. `reason` applies to both; the fallback may have another reason.
fn add_targets<'a>(
    written: &mut Vec<RetryTarget<'a>>,
    node: Option<&'a Node>,
    attributes: &Attributes,
    [first, second]: [&Option<NodeId>; 2],
    reason: impl Fn() -> Option<String>,
) {
    let span_of = |key: Key<'_>| attributes.get(key).map(|attribute| attribute.span);
    if let (Some(_), Some(span)) = (first, span_of(key::RETRY_TARGET)) {
        written.push(RetryTarget { node, key: key::RETRY_TARGET, span, unused_because: reason() });
    }
    if let (Some(_), Some(span)) = (second, span_of(key::FALLBACK_RETRY_TARGET)) {
        let preceded = first.as_ref().map(|first| format!("`retry_target` takes precedence and names `{first}`"));
        written.push(RetryTarget {
            node,
            key: key::FALLBACK_RETRY_TARGET,
            span,
            unused_because: reason().or(preceded),
        });
    }
}

/// Returns the reason why the graph's targets are unused. They are only for goal gates without a target of their own.
fn graph_reason(context: &LintContext<'_>) -> Option<String> {
    let mut gates = context.pipeline.nodes.iter().filter(|node| node.checks.goal_gate).peekable();
    if gates.peek().is_none() {
        return Some("targets on the graph are used only for unmet goal gates, and no node is a goal gate".to_owned());
    }
    let own = |node: &Node| node.routing.retry_target.is_some() || node.routing.fallback_retry_target.is_some();
    gates.all(own).then(|| "every goal gate has a target of its own".to_owned())
}

/// Returns the reason why the targets of a node are unused: the node cannot fail, or an edge follows each failure.
/// `None` if they may be used.
fn node_reason(context: &LintContext<'_>, number: usize, node: &Node) -> Option<String> {
    if node.checks.goal_gate {
        return None;
    }
    match node.handler {
        Handler::Exit if node.checks.verification.is_some() => {
            return Some(format!("the run ends if the verification of the exit `{}` fails", node.id));
        }
        Handler::Start | Handler::Exit => return Some(format!("`{}` does no work and cannot fail", node.id)),
        Handler::Conditional if node.checks.verification.is_none() => {
            return Some(format!("`{}` only passes an outcome on and cannot fail itself", node.id));
        }
        Handler::Human | Handler::Conditional | Handler::Parallel | Handler::FanIn(_) => {}
        Handler::Component(_) | Handler::ChildExit | Handler::Unavailable(_) => {}
    }
    let asking =
        context.outgoing(number).filter(|edge| edge.condition.as_ref().is_some_and(|asked| asked.reads_outcome()));
    always_followed(asking, Status::Fail).then(|| format!("a failure edge of `{}` always takes precedence", node.id))
}
