//! Rules about the structure of the graph: starts, exits (decision one-or-more-exits), targets of edges, and nodes that a run can
//! reach and leave (decision declared-and-reached).

use super::context::Link;
use super::{LintContext, Rule, RuleFindings};
use crate::diagnostic::Diagnostic;
use crate::hash::HashSet;
use crate::ir::{Edge, Handler, Node, NodeId};
use crate::key;
use crate::lower::handler::{of_shape, shape_of_id};
use crate::span::Span;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::NodeIndex;
use petgraph::unionfind::UnionFind;
use petgraph::visit::EdgeRef;
use std::collections::BTreeMap;

pub(super) fn start_node(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut starts = context.with_handler(&Handler::Start);
    let Some(first) = starts.next() else {
        if is_undeclared(context, &Handler::Start) {
            return RuleFindings::none();
        }
        return RuleFindings::one(rule.found("the pipeline has no start node", context.pipeline.span));
    };
    let second = |node: &Node| {
        let message = format!("`{}` is a second start node", node.id);
        let found = rule.found(message, node.span).with_label(first.span, "the first start node");
        found
            .with_help("keep one; a node called `start` is a start node unless it has a shape")
            .with_node(node.id.as_str())
    };
    starts.map(second).collect()
}

pub(super) fn terminal_node(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    match context.with_handler(&Handler::Exit).next() {
        Some(_) => RuleFindings::none(),
        None if is_undeclared(context, &Handler::Exit) => RuleFindings::none(),
        None => RuleFindings::one(rule.found("the pipeline has no exit node", context.pipeline.span)),
    }
}

/// Returns true if an edge names an undeclared node with an id that implies the handler. `edge_target_exists` reports that edge.
fn is_undeclared(context: &LintContext<'_>, handler: &Handler) -> bool {
    let mut names = context.pipeline.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    names
        .any(|name| shape_of_id(name).is_some_and(|shape| of_shape(shape) == *handler) && context.index(name).is_none())
}

pub(super) fn reachability(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    if context.with_handler(&Handler::Start).next().is_none() {
        return RuleFindings::none();
    }
    let reached = context.reached();
    let unreached =
        context.pipeline.nodes.iter().zip(reached).filter(|(node, reached)| !reached && node.handler != Handler::Start);
    let found = |(node, _): (&Node, bool)| {
        let message = format!("no path from the start reaches `{}`", node.id);
        rule.found(message, node.span).with_node(node.id.as_str())
    };
    unreached.map(found).collect()
}

pub(super) fn edge_target_exists(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut reported: HashSet<usize> = HashSet::default();
    let mut found = RuleFindings::none();
    if context.has_declared_ends() {
        return found;
    }
    for edge in &context.pipeline.edges {
        if found.is_full() {
            break;
        }
        for end in [End::To, End::From] {
            let (name, span) = end.name_in(edge);
            if context.index(name).is_none() && reported.insert(span.start) {
                found.push(undeclared(rule, context, edge, end));
            }
        }
    }
    found
}

/// One end of an edge.
#[derive(Clone, Copy)]
enum End {
    From,
    To,
}

impl End {
    /// Returns the node at this end of the edge, and the span of its name.
    fn name_in(self, edge: &Edge) -> (&NodeId, Span) {
        match self {
            End::From => (&edge.from, edge.from_span),
            End::To => (&edge.to, edge.to_span),
        }
    }
}

fn undeclared(rule: &Rule, context: &LintContext<'_>, edge: &Edge, end: End) -> Diagnostic {
    let (name, span) = end.name_in(edge);
    let verb = match end {
        End::From => "comes from",
        End::To => "leads to",
    };
    let message = format!("the edge {verb} `{name}`, which is not declared");
    let found = rule.found(message, span).with_edge(edge.from.as_str(), edge.to.as_str());
    match context.meant.get(name).copied() {
        Some(meant) => context.with_certain_name(found.with_help(format!("did you mean `{meant}`?")), span, name),
        None => found.with_help(match shape_of_id(name) {
            Some(shape) => format!("declare it: `{name} [shape={shape}]`"),
            None => format!("declare it: `{name} [prompt=\"…\"]`"),
        }),
    }
}

pub(super) fn start_no_incoming(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let found = |edge: &Edge| {
        let message = format!("the edge from `{}` leads back into the start node `{}`", edge.from, edge.to);
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    context.numbers_with(&Handler::Start).flat_map(|start| context.incoming(start)).map(found).collect()
}

pub(super) fn exit_no_outgoing(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let found = |edge: &Edge| {
        let message = format!("an edge leaves the exit node `{}`", edge.from);
        rule.found(message, edge.span).with_edge(edge.from.as_str(), edge.to.as_str())
    };
    context.numbers_with(&Handler::Exit).flat_map(|exit| context.outgoing(exit)).map(found).collect()
}

/// Reports each weakly connected component of the graph that does not contain the start.
pub(super) fn orphan_node(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let Some(start) = context.with_handler(&Handler::Start).next().and_then(|node| context.index(&node.id)) else {
        return RuleFindings::none();
    };
    let mut parts = UnionFind::<usize>::new(context.graph.node_count());
    for edge in context.graph.edge_references() {
        parts.union(edge.source().index(), edge.target().index());
    }
    let mut apart: BTreeMap<usize, Vec<&Node>> = BTreeMap::new();
    for (index, node) in context.pipeline.nodes.iter().enumerate() {
        if !parts.equiv(start, index) {
            apart.entry(parts.find(index)).or_default().push(node);
        }
    }
    let found = |part: Vec<&Node>| {
        let message = match part.len() {
            1 => format!("no edge connects {} to another node", names(&part)),
            _ => format!("no edge connects {} to the rest of the graph", names(&part)),
        };
        rule.found(message, part[0].span).with_node(part[0].id.as_str())
    };
    apart.into_values().map(found).collect()
}

/// Reports each dead end, and each loop from which no path leads to an exit, once.
pub(super) fn exit_reachable(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    if context.with_handler(&Handler::Exit).next().is_none() {
        return RuleFindings::none();
    }
    let leading = context.leading_out();
    if leading.iter().all(|leads| *leads) {
        return RuleFindings::none();
    }
    let reached = context.reached();
    let lost = |node: &NodeIndex| context.is_declared(*node) && !leading[node.index()] && reached[node.index()];
    let is_end = |cycle: &Vec<NodeIndex>| {
        let inside: HashSet<NodeIndex> = cycle.iter().copied().collect();
        let leaves = cycle.iter().flat_map(|node| context.graph.neighbors(*node)).any(|next| !inside.contains(&next));
        !leaves && cycle.iter().all(lost)
    };
    loops(context, is_end).iter().map(|cycle| dead_end(rule, context, cycle)).collect()
}

fn dead_end(rule: &Rule, context: &LintContext<'_>, cycle: &[NodeIndex]) -> Diagnostic {
    let nodes = in_file_order(context, cycle);
    let message = match nodes.as_slice() {
        [node] if context.graph.neighbors(cycle[0]).next().is_none() => {
            format!("`{}` has no outgoing edge: a run that reaches it fails without a route", node.id)
        }
        _ => format!("the loop through {} has no path to an exit", names(&nodes)),
    };
    rule.found(message, nodes[0].span).with_node(nodes[0].id.as_str())
}

pub(super) fn loop_without_bound(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let graph = &context.pipeline.attributes;
    if graph.contains_key(key::MAX_STEPS) || graph.contains_key(key::MAX_WALL_TIME) {
        return RuleFindings::none();
    }
    if toposort(&context.graph, None).is_ok() {
        return RuleFindings::none();
    }
    let repeats = |cycle: &Vec<NodeIndex>| {
        cycle.iter().any(|node| context.is_declared(*node))
            && (cycle.len() > 1
                || context.graph.edges(cycle[0]).any(|edge| edge.target() == cycle[0] && *edge.weight() != Link::Meant))
    };
    let found = |cycle: &Vec<NodeIndex>| {
        let mut nodes = in_file_order(context, cycle);
        // The loop that an unsatisfied goal gate causes includes the start and the exit, but only the other nodes are repeated.
        if nodes.iter().any(|node| !is_end(node)) {
            nodes.retain(|node| !is_end(node));
        }
        let steps = context.pipeline.bounds.steps_max;
        let message = format!("only the default of {steps} steps stops the loop through {}", names(&nodes));
        rule.found(message, nodes[0].span).with_node(nodes[0].id.as_str())
    };
    loops(context, repeats).iter().map(found).collect()
}

fn is_end(node: &Node) -> bool {
    matches!(node.handler, Handler::Start | Handler::Exit)
}

/// Returns the strongly connected components that `wanted` accepts, in file order.
fn loops(context: &LintContext<'_>, wanted: impl Fn(&Vec<NodeIndex>) -> bool) -> Vec<Vec<NodeIndex>> {
    let mut loops: Vec<Vec<NodeIndex>> = kosaraju_scc(&context.graph).into_iter().filter(wanted).collect();
    loops.sort_by_key(|cycle| cycle.iter().min().copied());
    loops
}

fn in_file_order<'a>(context: &LintContext<'a>, nodes: &[NodeIndex]) -> Vec<&'a Node> {
    let mut numbers: Vec<usize> =
        nodes.iter().filter(|node| context.is_declared(**node)).map(|node| node.index()).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| &context.pipeline.nodes[number]).collect()
}

/// Lists the names of nodes, such as `a`, `b` and `c`. If there are more than four, lists the first four and the number
/// of the others.
pub(super) fn names(nodes: &[&Node]) -> String {
    const SHOWN_MAX: usize = 4;
    let shown: Vec<String> = nodes.iter().take(SHOWN_MAX).map(|node| format!("`{}`", node.id)).collect();
    match (shown.split_last(), nodes.len().saturating_sub(SHOWN_MAX)) {
        (Some((_, [])), _) => shown.concat(),
        (Some((last, rest)), 0) => format!("{} and {last}", rest.join(", ")),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
