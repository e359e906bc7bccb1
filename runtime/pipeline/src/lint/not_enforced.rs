//! Attributes and handlers that this version does not enforce: `check` warns about them, `run` refuses them.
//!
//! An attribute that promises a limit or a guard and has no effect is worse than none. The table of attributes lists them. The rule
//! reports each name once, with its uses.

use super::{Rule, RuleFindings, Subject};
use crate::attributes::instead_of;
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Label};
use crate::dot::Element;
use crate::hash::HashMap;
use crate::ir::{Attribute, Handler};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::span::Span;

/// The most uses that a message names and points at.
const PLACES_MAX: usize = 3;

pub(super) fn check(rule: &Rule, subject: &Subject<'_>) -> RuleFindings {
    let pipeline = subject.pipeline;
    let mut uses = Uses::default();
    uses.look(&pipeline.attributes, Element::Graph);
    pipeline.nodes.iter().for_each(|node| uses.look(&node.attributes, Element::Node(&node.id)));
    for edge in &pipeline.edges {
        uses.look(&edge.attributes, Element::Edge(&edge.from, &edge.to));
    }
    handlers(rule, subject).into_iter().chain(uses.list.iter().map(|one| one.found(rule))).collect()
}

/// The element in a message.
fn quoted(element: Element<'_>) -> String {
    match element {
        Element::Graph => "the graph".to_owned(),
        Element::Node(id) => format!("`{id}`"),
        Element::Edge(from, to) => format!("`{from} -> {to}`"),
    }
}

/// All uses of one name, of which the first few are kept.
struct Use<'a> {
    key: Key<'a>,
    instead: &'static str,
    places: Vec<(Element<'a>, Span)>,
    count: usize,
}

impl Use<'_> {
    fn found(&self, rule: &Rule) -> Diagnostic {
        let (first, span) = self.places.first().copied().unwrap_or((Element::Graph, Span::new(0, 0)));
        let places = listed(self.places.iter().map(|(element, _)| quoted(*element)), self.count);
        let uses = if self.count > 1 { format!(": {} uses, on {places}", self.count) } else { String::new() };
        let message = format!("this version does not enforce `{}`{uses}", self.key);
        let mut found = rule.found(message, span).with_help(self.instead);
        match first {
            Element::Graph => {}
            Element::Node(id) => found.node = Some(id.to_string()),
            Element::Edge(from, to) => found.edge = Some((from.to_string(), to.to_string())),
        }
        let others = self.places.iter().map(|(_, at)| *at).filter(|at| *at != span);
        others.fold(found, |found, at| found.with_label(at, "also here"))
    }
}

#[derive(Default)]
struct Uses<'a> {
    list: Vec<Use<'a>>,
    numbers: HashMap<Key<'a>, usize>,
    /// The alternative to each name, cached because files repeat names.
    known: HashMap<Key<'a>, Option<&'static str>>,
}

impl<'a> Uses<'a> {
    fn look(&mut self, attributes: &'a Attributes, place: Element<'a>) {
        let asks = |attribute: &Attribute| !matches!(attribute.value.trim(), "" | "false");
        for (key, attribute) in attributes.iter().filter(|(_, attribute)| asks(attribute)) {
            if let Some(instead) = *self.known.entry(key).or_insert_with(|| instead_of(key)) {
                let first = Use { key, instead, places: Vec::new(), count: 0 };
                self.add(first, place, attribute.key_span.to(attribute.span));
            }
        }
    }

    /// Adds a use of a name; `first` is what to list if there was none before.
    fn add(&mut self, first: Use<'a>, element: Element<'a>, span: Span) {
        let number = match self.numbers.get(&first.key) {
            Some(number) => *number,
            // There are already more names than a file may have findings.
            None if self.list.len() > DIAGNOSTICS_MAX => return,
            None => {
                self.numbers.insert(first.key, self.list.len());
                self.list.push(first);
                self.list.len() - 1
            }
        };
        let one = &mut self.list[number];
        one.count += 1;
        if one.places.len() < PLACES_MAX {
            one.places.push((element, span));
        }
    }
}

/// Reports each handler that this version does not execute, once.
fn handlers(rule: &Rule, subject: &Subject<'_>) -> Vec<Diagnostic> {
    let mut handlers: Vec<(&str, Diagnostic, Vec<String>, usize)> = Vec::new();
    // `child::splice` reports why a child's stages are missing.
    for node in subject.pipeline.nodes.iter().filter(|node| !node.wants_child()) {
        let Handler::Unavailable(name) = &node.handler else { continue };
        let written = node.attributes.get(key::TYPE).or_else(|| node.attributes.get(key::SHAPE));
        let span = written.map_or(node.span, |attribute| attribute.span);
        if let Some((_, finding, nodes, count)) = handlers.iter_mut().find(|(known, ..)| known == name) {
            *count += 1;
            if nodes.len() < PLACES_MAX {
                nodes.push(format!("`{}`", node.id));
                finding.labels.push(Label { span: node.span, text: "also this node".to_owned() });
            }
            continue;
        }
        let finding = rule.found("", span).with_label(node.span, "this node").with_node(node.id.as_str());
        handlers.push((name, finding, vec![format!("`{}`", node.id)], 1));
    }
    let found = handlers.into_iter().map(|(name, finding, nodes, count)| {
        let nodes = listed(nodes.into_iter(), count);
        Diagnostic { message: format!("this version does not execute the handler `{name}` of {nodes}"), ..finding }
    });
    found.collect()
}

/// The first elements, and the number of the others.
fn listed(places: impl Iterator<Item = String>, count: usize) -> String {
    let named: Vec<String> = places.collect();
    match count.saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
