//! What a file may ask for and this version would not enforce: accepted by `check` with a warning, refused by a run.
//!
//! An attribute that promises a bound or a guard and is silently ignored is worse than none. Which those are stands in the table of
//! attributes. Each name is reported once, with its uses.

use super::{Found, Rule, Subject};
use crate::attributes::{ATTRIBUTES, instead_of};
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::ir::{Attribute, Handler};
use crate::keyed::{Attributes, Key};
use crate::span::Span;
use std::collections::HashMap;

/// Places named in a message, and pointed at.
const PLACES_MAX: usize = 3;

pub(super) fn check(rule: &Rule, subject: &Subject<'_>) -> Found {
    let pipeline = subject.pipeline;
    let mut uses = Uses::default();
    uses.look(&pipeline.attributes, Place::Graph);
    pipeline.nodes.iter().for_each(|node| uses.look(&node.attributes, Place::Node(node.id.as_str())));
    for edge in &pipeline.edges {
        uses.look(&edge.attributes, Place::Edge(edge.from.as_str(), edge.to.as_str()));
    }
    handlers(rule, subject).into_iter().chain(uses.met.iter().map(|one| one.found(rule))).collect()
}

/// What carries an attribute.
#[derive(Clone, Copy)]
enum Place<'a> {
    Graph,
    Node(&'a str),
    Edge(&'a str, &'a str),
}

impl Place<'_> {
    fn told(self) -> String {
        match self {
            Place::Graph => "the graph".to_owned(),
            Place::Node(id) => format!("`{id}`"),
            Place::Edge(from, to) => format!("`{from} -> {to}`"),
        }
    }
}

/// All uses of one name, of which the first few are kept.
struct Use<'a> {
    name: &'a str,
    instead: &'static str,
    places: Vec<(Place<'a>, Span)>,
    count: usize,
}

impl Use<'_> {
    fn found(&self, rule: &Rule) -> Diagnostic {
        let (first, span) = self.places.first().copied().unwrap_or((Place::Graph, Span::new(0, 0)));
        let places = listed(self.places.iter().map(|(place, _)| place.told()), self.count);
        let uses = if self.count > 1 { format!(": {} uses, on {places}", self.count) } else { String::new() };
        let message = format!("`{}` is not enforced by this version{uses}", self.name);
        let mut found = rule.found(message, span).with_help(format!("{}; a run refuses it", self.instead));
        match first {
            Place::Graph => {}
            Place::Node(id) => found.node = Some(id.to_owned()),
            Place::Edge(from, to) => found.edge = Some((from.to_owned(), to.to_owned())),
        }
        let others = self.places.iter().map(|(_, at)| *at).filter(|at| *at != span);
        others.fold(found, |found, at| found.with_label(at, "and here"))
    }
}

#[derive(Default)]
struct Uses<'a> {
    met: Vec<Use<'a>>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Uses<'a> {
    fn look(&mut self, attributes: &'a Attributes, place: Place<'a>) {
        let asks = |attribute: &Attribute| !matches!(attribute.value.trim(), "" | "false");
        for (key, attribute) in attributes.iter().filter(|(_, attribute)| asks(attribute)) {
            if let Some(instead) = instead(key) {
                self.add(key.as_str(), instead, (place, attribute.key_span.to(attribute.span)));
            }
        }
    }

    fn add(&mut self, name: &'a str, instead: &'static str, at: (Place<'a>, Span)) {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            // More names than a file may have findings.
            None if self.met.len() > DIAGNOSTICS_MAX => return,
            None => {
                self.numbers.insert(name, self.met.len());
                self.met.push(Use { name, instead, places: Vec::new(), count: 0 });
                self.met.len() - 1
            }
        };
        let one = &mut self.met[number];
        one.count += 1;
        if one.places.len() < PLACES_MAX {
            one.places.push(at);
        }
    }
}

/// By number where the key has one: files have many attributes.
fn instead(key: &Key) -> Option<&'static str> {
    key.number().map_or_else(|| instead_of(key), |number| ATTRIBUTES[number].instead)
}

/// One finding for each handler that is not executed.
fn handlers(rule: &Rule, subject: &Subject<'_>) -> Vec<Diagnostic> {
    let mut met: Vec<(&str, Diagnostic, Vec<String>, usize)> = Vec::new();
    for node in &subject.pipeline.nodes {
        let Handler::Unavailable(name) = &node.handler else { continue };
        let written = node.attributes.get("type").or_else(|| node.attributes.get("shape"));
        let span = written.map_or(node.span, |attribute| attribute.span);
        if let Some((_, finding, nodes, count)) = met.iter_mut().find(|(known, ..)| known == name) {
            *count += 1;
            if nodes.len() < PLACES_MAX {
                nodes.push(format!("`{}`", node.id));
                let labelled = finding.clone().with_label(node.span, "and this one");
                *finding = labelled;
            }
            continue;
        }
        let finding = rule.found("", span).with_label(node.span, "this node").with_node(node.id.as_str());
        met.push((name, finding, vec![format!("`{}`", node.id)], 1));
    }
    let found = met.into_iter().map(|(name, finding, nodes, count)| {
        let nodes = listed(nodes.into_iter(), count);
        Diagnostic { message: format!("the handler `{name}` of {nodes} is not executed by this version"), ..finding }
    });
    found.collect()
}

/// The first places, and how many more there are.
fn listed(places: impl Iterator<Item = String>, count: usize) -> String {
    let named: Vec<String> = places.collect();
    match count.saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
