//! The rule about attributes and handlers that this version does not enforce. `check` warns about them, and `run` refuses them.
//!
//! An attribute that looks like a limit or a protection and has no effect is worse than no attribute. The table of
//! attributes marks the attributes that are not enforced. The rule reports each key once, with the places where it is
//! used.

use super::{LintContext, Rule, RuleFindings};
use crate::attributes::instead_of;
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Label};
use crate::dot::Element;
use crate::hash::HashMap;
use crate::ir::{Attribute, Handler, Pipeline};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::span::Span;

/// Maximum number of uses that a finding names and labels.
const PLACES_MAX: usize = 3;

pub(super) fn check(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    found(rule, context.pipeline)
}

pub(super) fn found(rule: &Rule, pipeline: &Pipeline) -> RuleFindings {
    let mut uses = Uses::default();
    uses.look(&pipeline.attributes, Element::Graph);
    pipeline.nodes.iter().for_each(|node| uses.look(&node.attributes, Element::Node(&node.id)));
    for edge in &pipeline.edges {
        uses.look(&edge.attributes, Element::Edge(&edge.from, &edge.to));
    }
    handlers(rule, pipeline).into_iter().chain(uses.list.iter().map(|one| one.found(rule))).collect()
}

/// Returns the name of an element for messages.
fn quoted(element: Element<'_>) -> String {
    match element {
        Element::Graph => "the graph".to_owned(),
        Element::Node(id) => format!("`{id}`"),
        Element::Edge(from, to) => format!("`{from} -> {to}`"),
    }
}

/// The uses of one key. Only the first [`PLACES_MAX`] places are stored.
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
    /// What to use instead of each key, cached because keys repeat in a file.
    known: HashMap<Key<'a>, Option<&'static str>>,
}

impl<'a> Uses<'a> {
    fn look(&mut self, attributes: &'a Attributes, place: Element<'a>) {
        let asks = |attribute: &Attribute| !matches!(attribute.value.trim(), "" | "false");
        for (key, attribute) in attributes.iter() {
            let instead = *self.known.entry(key).or_insert_with(|| instead_of(key));
            if let Some(instead) = instead.filter(|_| asks(attribute)) {
                let first = Use { key, instead, places: Vec::new(), count: 0 };
                self.add(first, place, attribute.key_span.to(attribute.span));
            }
        }
    }

    /// Counts one use of a key. `first` is the entry to add if this is the first use of the key.
    fn add(&mut self, first: Use<'a>, element: Element<'a>, span: Span) {
        let number = match self.numbers.get(&first.key) {
            Some(number) => *number,
            // There are already more keys than a file may have findings.
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
fn handlers(rule: &Rule, pipeline: &Pipeline) -> Vec<Diagnostic> {
    let mut handlers: Vec<(&str, Diagnostic, Vec<String>, usize)> = Vec::new();
    // `child::splice` reports the reason why the stages of a child are missing.
    for node in pipeline.nodes.iter().filter(|node| !node.wants_child()) {
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

/// Lists the first elements, and the number of further ones.
fn listed(places: impl Iterator<Item = String>, count: usize) -> String {
    let named: Vec<String> = places.collect();
    match count.saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
