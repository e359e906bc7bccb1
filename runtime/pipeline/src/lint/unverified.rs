//! The rule about ways past verification: from the start, through a stage that may write, to an exit, with nothing in between
//! that looked at the result and passed.
//!
//! One walk over places: a node, whether something was built before it, and whether a verifier's failure is what leads there.
//! A verifier that passes after something was built ends the walk; one before it has seen nothing. Linear in the file.

use super::routes::{may_hold, must_hold};
use super::subject::Link;
use super::{Found, Rule, Subject};
use crate::diagnostic::Diagnostic;
use crate::holdouts::is_builder;
use crate::ir::{Edge, Handler, Node, Status};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use std::collections::VecDeque;

/// The most stages of a way that are drawn; the middle of a longer one is left out.
const DRAWN_MAX: usize = 12;

/// Where the walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    node: usize,
    built: bool,
    failed: bool,
}

impl Place {
    fn number(self) -> usize {
        self.node * 4 + usize::from(self.built) * 2 + usize::from(self.failed)
    }
}

pub(super) fn verify_does_not_dominate_exit(rule: &Rule, subject: &Subject<'_>) -> Found {
    match subject.pipeline.nodes.iter().any(verifies) {
        true => ways(rule, subject).collect(),
        false => Found::none(),
    }
}

/// Where nothing verifies, the first way past it stands for all.
pub(super) fn no_verification(rule: &Rule, subject: &Subject<'_>) -> Found {
    match subject.pipeline.nodes.iter().any(verifies) {
        true => Found::none(),
        false => ways(rule, subject).take(1).collect(),
    }
}

/// One drawn way for each exit that unverified work reaches.
fn ways(rule: &Rule, subject: &Subject<'_>) -> impl Iterator<Item = Diagnostic> {
    let nodes = &subject.pipeline.nodes;
    let is_judged = nodes.iter().any(builds) && !nodes.iter().any(|node| node.goal_gate);
    let walk = is_judged.then(|| Walk::new(subject));
    let exits = walk.as_ref().map_or_else(Vec::new, |walk| walk.exits.clone());
    exits.into_iter().filter_map(move |exit| walk.as_ref().map(|walk| drawn(rule, subject, &walk.way_to(exit))))
}

/// A stage that may change the workspace. A plugin without a scope may not (design §9 #21).
fn builds(node: &Node) -> bool {
    let may_write = match &node.allowed_write_paths {
        Some(scope) => !scope.0.is_empty(),
        None => node.handler.name() == "codergen",
    };
    is_builder(node) && may_write
}

/// A stage whose success is somebody else's word: a command's, or a person's.
fn verifies(node: &Node) -> bool {
    let by_command = node.attributes.get("verify_command").is_some_and(|command| !command.value.trim().is_empty());
    by_command || matches!(node.handler.name(), "tool" | "verify" | "verification" | "wait.human")
}

struct Walk<'a, 'b> {
    subject: &'b Subject<'a>,
    /// By number of place: the place before it, which is the place itself at the start.
    before: Vec<Option<Place>>,
    open: VecDeque<Place>,
    /// Fan-ins that wait for a branch with a verifier in it.
    guarded: Vec<bool>,
    /// Unverified arrivals, the first for each exit.
    exits: Vec<Place>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(subject: &'b Subject<'a>) -> Self {
        let count = subject.pipeline.nodes.len();
        let guarded = guarded_joins(subject);
        let mut walk =
            Self { subject, before: vec![None; count * 4], open: VecDeque::new(), guarded, exits: Vec::new() };
        for start in subject.numbers_with(&Handler::Start) {
            let place = Place { node: start, built: false, failed: false };
            walk.step(place, place);
        }
        while let Some(place) = walk.open.pop_front() {
            walk.leave(place);
        }
        walk
    }

    fn step(&mut self, from: Place, to: Place) {
        let known = &mut self.before[to.number()];
        if known.is_none() {
            *known = Some(from);
            self.open.push_back(to);
        }
    }

    fn leave(&mut self, place: Place) {
        let node = &self.subject.pipeline.nodes[place.node];
        let built = place.built || builds(node);
        match &node.handler {
            Handler::Exit if built && !verifies(node) => self.arrive(place),
            Handler::Exit => {}
            Handler::Conditional => self.pass_on(place),
            _ if built && self.guarded[place.node] => {}
            _ if verifies(node) && built => self.fail(place, node),
            _ => self.go_anywhere(Place { built, ..place }, place),
        }
    }

    fn arrive(&mut self, place: Place) {
        if !self.exits.iter().any(|known| known.node == place.node) {
            self.exits.push(place);
        }
    }

    /// A diamond passes the outcome on, and with it that it is a failure.
    fn pass_on(&mut self, place: Place) {
        for edge in open_edges(self.subject, place) {
            if let Some(to) = self.subject.index(edge.to.as_str()) {
                self.step(place, Place { node: to, ..place });
            }
        }
    }

    /// Only the ways of a failure lead on unverified (spec §3.7).
    fn fail(&mut self, place: Place, node: &Node) {
        let subject = self.subject;
        let target = node.retry_target.as_ref().or(node.fallback_retry_target.as_ref());
        let edges = open_edges(subject, place).map(|edge| &edge.to);
        for to in edges.chain(target).filter_map(|to| subject.index(to.as_str())) {
            self.step(place, Place { node: to, built: true, failed: true });
        }
    }

    fn go_anywhere(&mut self, left: Place, from: Place) {
        let links: Vec<usize> = self.subject.graph.neighbors(NodeIndex::new(from.node)).map(|to| to.index()).collect();
        // Neighbours come last first; the walk prefers the file's order.
        for to in links.into_iter().rev().filter(|to| *to < self.subject.pipeline.nodes.len()) {
            self.step(from, Place { node: to, built: left.built, failed: false });
        }
    }

    fn way_to(&self, exit: Place) -> Vec<Place> {
        let mut way = vec![exit];
        let mut place = exit;
        while let Some(before) = self.before[place.number()].filter(|before| *before != place) {
            way.push(before);
            place = before;
        }
        way.reverse();
        way
    }
}

/// The edges that may be taken from a place: behind a diamond those of the outcome that came in, behind a verifier those of its failure.
fn open_edges<'b>(subject: &'b Subject<'_>, place: Place) -> impl Iterator<Item = &'b Edge> {
    let node = &subject.pipeline.nodes[place.node];
    let is_diamond = node.handler == Handler::Conditional;
    let is_failure = !is_diamond && verifies(node) && (place.built || builds(node));
    let is_decided =
        is_diamond && place.failed && subject.outgoing(place.node).any(|edge| must_hold(edge, Status::Fail));
    let to_diamond =
        move |edge: &Edge| subject.node(edge.to.as_str()).is_some_and(|to| to.handler == Handler::Conditional);
    subject.outgoing(place.node).filter(move |edge| match &edge.condition {
        Some(condition) if is_failure => condition.reads_outcome() && may_hold(edge, Status::Fail),
        None if is_failure => to_diamond(edge),
        Some(_) => !is_diamond || !place.failed || may_hold(edge, Status::Fail),
        None => !is_decided,
    })
}

/// Which fan-ins a verifier leads to within the branches: all branches are executed, so the verifier is too.
fn guarded_joins(subject: &Subject<'_>) -> Vec<bool> {
    let nodes = &subject.pipeline.nodes;
    let mut seen = vec![false; nodes.len()];
    let mut open: Vec<usize> = (0..nodes.len()).filter(|number| verifies(&nodes[*number])).collect();
    open.iter().for_each(|number| seen[*number] = true);
    let mut guarded = vec![false; nodes.len()];
    while let Some(number) = open.pop() {
        for link in subject.graph.edges_directed(NodeIndex::new(number), Direction::Outgoing) {
            let to = link.target().index();
            if *link.weight() == Link::Jump || to >= nodes.len() {
                continue;
            }
            if nodes[to].handler.name() == "parallel.fan_in" {
                guarded[to] = true;
            } else if nodes[to].handler.name() != "parallel" && !std::mem::replace(&mut seen[to], true) {
                open.push(to);
            }
        }
    }
    guarded
}

/// The way, drawn at its last edge, with a word where a verifier is left on its failure.
fn drawn(rule: &Rule, subject: &Subject<'_>, way: &[Place]) -> Diagnostic {
    let nodes = &subject.pipeline.nodes;
    let names: Vec<&str> = way.iter().map(|place| nodes[place.node].id.as_str()).collect();
    let exit = names.last().copied().unwrap_or_default();
    let builder = way.iter().map(|place| &nodes[place.node]).find(|node| builds(node));
    let builder = builder.map_or(exit, |node| node.id.as_str());
    let drawing = match names.len() {
        0..=DRAWN_MAX => names.join(" -> "),
        count => {
            format!("{} -> … -> {}", names[..DRAWN_MAX / 2].join(" -> "), names[count - DRAWN_MAX / 2..].join(" -> "))
        }
    };
    let edge = |from: &Place, to: &Place| {
        let target = nodes[to.node].id.as_str();
        open_edges(subject, *from).find(|edge| edge.to.as_str() == target)
    };
    let last = way.windows(2).last().and_then(|pair| edge(&pair[0], &pair[1]));
    let span = last.map_or(nodes[way[way.len() - 1].node].span, |edge| edge.span);
    let message = format!("what `{builder}` wrote reaches `{exit}` without a passing verification");
    let mut found = rule.found(message, span).with_note(drawing).with_node(exit);
    for pair in way.windows(2).filter(|pair| pair[0].built && verifies(&nodes[pair[0].node])) {
        if let Some(edge) = edge(&pair[0], &pair[1]).filter(|edge| edge.span != span) {
            found = found.with_label(edge.span, format!("`{}` has failed", edge.from));
        }
    }
    match last {
        Some(edge) => found.with_edge(edge.from.as_str(), edge.to.as_str()),
        None => found,
    }
}
