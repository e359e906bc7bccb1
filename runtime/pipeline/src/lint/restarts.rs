//! Rules about edges with `loop_restart`: restarts from a parallel branch, and restarts after any failure.

use super::{LintContext, Rule, RuleFindings};
use crate::condition::{Clause, Condition, Operator};
use crate::diagnostic::Diagnostic;
use crate::ir::{Edge, Handler, NodeId};
use crate::key;
use glovebox_record::{FailureClass, Status};
use std::collections::BTreeSet;

pub(super) fn in_branch(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let restarts: Vec<&Edge> = context.pipeline.edges.iter().filter(|edge| edge.loop_restart).collect();
    if restarts.is_empty() {
        return RuleFindings::none();
    }
    let inside = in_parallel(context);
    restarts
        .into_iter()
        .filter(|edge| inside.contains(&edge.from))
        .map(|edge| {
            found(
                rule,
                edge,
                format!("`{} -> {}` restarts the run from a branch of a parallel node", edge.from, edge.to),
            )
        })
        .collect()
}

/// Returns parallel nodes and the nodes in their branches.
fn in_parallel<'a>(context: &LintContext<'a>) -> BTreeSet<&'a NodeId> {
    let pipeline = context.pipeline;
    let parallels = pipeline.nodes.iter().filter(|node| node.handler == Handler::Parallel);
    // Without a join, the nodes of the branches are unknown. `parallel_join` reports the missing join.
    let parallels = parallels.filter(|parallel| pipeline.region(&parallel.id).is_ok());
    parallels
        .flat_map(|parallel| {
            let branches =
                pipeline.outgoing(&parallel.id).flat_map(|(_, edge)| pipeline.branch_nodes(&parallel.id, &edge.to));
            branches.chain([&parallel.id])
        })
        .collect()
}

pub(super) fn class_guard(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let of_failures = |edge: &&Edge| edge.condition.as_ref().is_some_and(is_of_any_failure);
    context
        .pipeline
        .edges
        .iter()
        .filter(|edge| edge.loop_restart)
        .filter(of_failures)
        .map(|edge| found(rule, edge, format!("`{} -> {}` restarts the run after any failure", edge.from, edge.to)))
        .collect()
}

/// Returns true for a condition that requires a failed stage, whatever the class of the failure.
fn is_of_any_failure(condition: &Condition) -> bool {
    let asks = |clause: &Clause| match (clause.key.is_outcome(), clause.operator) {
        (true, Operator::Equal) => [Status::Fail, Status::Retry].iter().any(|status| clause.literal == status.as_str()),
        (true, Operator::NotEqual) => clause.literal == Status::Success.as_str(),
        _ => false,
    };
    condition.clauses.iter().any(asks) && !condition.requires_class(FailureClass::Transient)
}

fn found(rule: &Rule, edge: &Edge, message: String) -> Diagnostic {
    let span =
        edge.attributes.get(key::LOOP_RESTART).map_or(edge.span, |attribute| attribute.key_span.to(attribute.span));
    rule.found(message, span).with_edge(edge.from.as_str(), edge.to.as_str())
}
