//! The rules about paths without verification: paths from the start to an exit, through a stage that may write, on
//! which no verification passes after the write.
//!
//! The rules search the graph once, breadth-first. A search state ([`Step`]) is a node, whether a stage before the node
//! wrote, and whether the path comes from a failed verifier. A verifier that passes after a write ends only the path
//! through it. A verifier before the write ends no path. There are at most four states for each node, so the time is
//! linear in the length of the file.

use super::context::Link;
use super::routes::{may_hold_for_failure, must_hold};
use super::{LintContext, Rule, RuleFindings};
use crate::diagnostic::Diagnostic;
use crate::ir::{Edge, Handler, HandlerKind, Node, Status};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use std::collections::VecDeque;

/// Maximum number of stages of a path that a message shows. The middle of a longer path is left out.
const DRAWN_MAX: usize = 12;

/// A search state. `built` is true if a stage before the node wrote. `failed` is true if the path comes from a failed
/// verifier, with only conditional nodes in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    node: usize,
    built: bool,
    failed: bool,
}

impl Step {
    fn number(self) -> usize {
        self.node * 4 + usize::from(self.built) * 2 + usize::from(self.failed)
    }
}

pub(super) fn verify_does_not_dominate_exit(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    match context.pipeline.nodes.iter().any(verifies) {
        true => unverified_paths(rule, context).collect(),
        false => RuleFindings::none(),
    }
}

/// If no stage verifies, reports only the first path, as an example.
pub(super) fn no_verification(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    match context.pipeline.nodes.iter().any(verifies) {
        true => RuleFindings::none(),
        false => unverified_paths(rule, context).take(1).collect(),
    }
}

/// Returns a finding with one path for each exit that unverified work can reach.
fn unverified_paths(rule: &Rule, context: &LintContext<'_>) -> impl Iterator<Item = Diagnostic> {
    let nodes = &context.pipeline.nodes;
    let is_checked = nodes.iter().any(builds) && !nodes.iter().any(|node| node.checks.goal_gate);
    let walk = is_checked.then(|| Walk::new(context));
    walk.into_iter().flat_map(move |mut walk| {
        let exits = std::mem::take(&mut walk.exits);
        exits.into_iter().map(move |exit| drawn(rule, context, &walk.path_to(exit)))
    })
}

/// Returns true for a stage that may change the workspace. A plugin without a write scope may not.
fn builds(node: &Node) -> bool {
    let may_write = match &node.access.allowed_write_paths {
        Some(scope) => !scope.is_empty(),
        None => node.handler.kind() == HandlerKind::Codergen,
    };
    node.is_builder() && may_write
}

/// Returns true for a node that verifies: a command or a person decides about its success.
fn verifies(node: &Node) -> bool {
    node.checks.verification.is_some() || node.is_verifier() || node.handler.kind() == HandlerKind::Human
}

struct Walk<'a, 'b> {
    context: &'b LintContext<'a>,
    /// For each state, by number: the state before it. The first state is its own predecessor.
    before: Vec<Option<Step>>,
    open: VecDeque<Step>,
    /// For each node, whether it is a fan-in with a verifier in one of its branches.
    guarded: Vec<bool>,
    /// The first state at each exit that unverified work reaches.
    exits: Vec<Step>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(context: &'b LintContext<'a>) -> Self {
        let count = context.pipeline.nodes.len();
        let guarded = guarded_joins(context);
        let mut walk =
            Self { context, before: vec![None; count * 4], open: VecDeque::new(), guarded, exits: Vec::new() };
        for start in context.numbers_with(&Handler::Start) {
            let step = Step { node: start, built: false, failed: false };
            walk.visit(step, step);
        }
        while let Some(step) = walk.open.pop_front() {
            walk.leave(step);
        }
        walk
    }

    fn visit(&mut self, from: Step, to: Step) {
        let known = &mut self.before[to.number()];
        if known.is_none() {
            *known = Some(from);
            self.open.push_back(to);
        }
    }

    fn leave(&mut self, step: Step) {
        let node = &self.context.pipeline.nodes[step.node];
        let built = step.built || builds(node);
        match &node.handler {
            Handler::Exit if built && !verifies(node) => self.arrive(step),
            Handler::Exit => {}
            Handler::Conditional if node.checks.verification.is_none() => self.pass_on(step),
            _ if built && self.guarded[step.node] => {}
            _ if verifies(node) && built => self.fail(step, node),
            _ => self.go_anywhere(Step { built, ..step }, step),
        }
    }

    fn arrive(&mut self, step: Step) {
        if !self.exits.iter().any(|known| known.node == step.node) {
            self.exits.push(step);
        }
    }

    /// Continues after a conditional node, which keeps the outcome, including a failure.
    fn pass_on(&mut self, step: Step) {
        for edge in open_edges(self.context, step) {
            if let Some(to) = self.context.index(&edge.to) {
                self.visit(step, Step { node: to, ..step });
            }
        }
    }

    /// Continues only after a failure of the verifier, because work that passes the verifier is verified (spec §3.7).
    fn fail(&mut self, step: Step, node: &Node) {
        let context = self.context;
        let target = node.routing.retry_target.as_ref().or(node.routing.fallback_retry_target.as_ref());
        let edges = open_edges(context, step).map(|edge| &edge.to);
        for to in edges.chain(target).filter_map(|to| context.index(to)) {
            self.visit(step, Step { node: to, built: true, failed: true });
        }
    }

    fn go_anywhere(&mut self, left: Step, from: Step) {
        let links: Vec<usize> = self.context.graph.neighbors(NodeIndex::new(from.node)).map(|to| to.index()).collect();
        // `neighbors` returns the last edge first, but the walk follows the order of the file.
        for to in links.into_iter().rev().filter(|to| *to < self.context.pipeline.nodes.len()) {
            self.visit(from, Step { node: to, built: left.built, failed: false });
        }
    }

    fn path_to(&self, exit: Step) -> Vec<Step> {
        let mut path = vec![exit];
        let mut step = exit;
        while let Some(before) = self.before[step.number()].filter(|before| *before != step) {
            path.push(before);
            step = before;
        }
        path.reverse();
        path
    }
}

/// Returns the edges that a run may take from a state: for a conditional node the edges for the incoming outcome, for a
/// verifier the edges for its failure.
fn open_edges<'a: 'b, 'b>(context: &'b LintContext<'a>, step: Step) -> impl Iterator<Item = &'a Edge> + use<'a, 'b> {
    let node = &context.pipeline.nodes[step.node];
    let is_diamond = node.handler == Handler::Conditional && node.checks.verification.is_none();
    let is_failure = !is_diamond && verifies(node) && (step.built || builds(node));
    let is_decided = is_diamond && step.failed && context.outgoing(step.node).any(|edge| must_hold(edge, Status::Fail));
    let to_diamond = move |edge: &Edge| context.node(&edge.to).is_some_and(|to| to.handler == Handler::Conditional);
    context.outgoing(step.node).filter(move |edge| match &edge.condition {
        Some(condition) if is_failure => condition.reads_outcome() && may_hold_for_failure(edge),
        None if is_failure => to_diamond(edge),
        Some(_) => !is_diamond || !step.failed || may_hold_for_failure(edge),
        None => !is_decided,
    })
}

/// Returns, for each node, whether it is a fan-in with a verifier in one of its branches. All branches run, so the verifier runs
/// too.
fn guarded_joins(context: &LintContext<'_>) -> Vec<bool> {
    let nodes = &context.pipeline.nodes;
    let mut seen = vec![false; nodes.len()];
    let mut open: Vec<usize> = (0..nodes.len()).filter(|number| verifies(&nodes[*number])).collect();
    open.iter().for_each(|number| seen[*number] = true);
    let mut guarded = vec![false; nodes.len()];
    while let Some(number) = open.pop() {
        for link in context.graph.edges_directed(NodeIndex::new(number), Direction::Outgoing) {
            let to = link.target().index();
            if *link.weight() == Link::Jump || to >= nodes.len() {
                continue;
            }
            if nodes[to].handler.is_fan_in() {
                guarded[to] = true;
            } else if nodes[to].handler != Handler::Parallel && !std::mem::replace(&mut seen[to], true) {
                open.push(to);
            }
        }
    }
    guarded
}

/// Creates a finding for a path at its last edge, with a label at each verifier that the path leaves after a failure.
fn drawn(rule: &Rule, context: &LintContext<'_>, path: &[Step]) -> Diagnostic {
    let nodes = &context.pipeline.nodes;
    let names: Vec<&str> = path.iter().map(|step| nodes[step.node].id.as_str()).collect();
    let exit = names.last().copied().unwrap_or_default();
    let builder = path.iter().map(|step| &nodes[step.node]).find(|node| builds(node));
    let builder = builder.map_or(exit, |node| node.id.as_str());
    let drawing = match names.len() {
        0..=DRAWN_MAX => names.join(" -> "),
        count => {
            format!("{} -> … -> {}", names[..DRAWN_MAX / 2].join(" -> "), names[count - DRAWN_MAX / 2..].join(" -> "))
        }
    };
    let edge = |from: &Step, to: &Step| {
        let target = nodes[to.node].id.as_str();
        open_edges(context, *from).find(|edge| edge.to.as_str() == target)
    };
    let last = path.windows(2).last().and_then(|pair| edge(&pair[0], &pair[1]));
    let span = last.map_or(nodes[path[path.len() - 1].node].span, |edge| edge.span);
    let message = format!("the work of `{builder}` reaches `{exit}` without a passing verification");
    let mut found = rule.found(message, span).with_note(drawing).with_node(exit);
    for pair in path.windows(2).filter(|pair| pair[0].built && verifies(&nodes[pair[0].node])) {
        if let Some(edge) = edge(&pair[0], &pair[1]).filter(|edge| edge.span != span) {
            found = found.with_label(edge.span, format!("taken after `{}` has failed", edge.from));
        }
    }
    match last {
        Some(edge) => found.with_edge(edge.from.as_str(), edge.to.as_str()),
        None => found,
    }
}
