//! A draft on its way through the transforms: each sees what the one before it made.
//!
//! The first that fails ends the way: what it answered is not taken, nobody after it is asked, and there is no pipeline. What was
//! changed is told as remarks, one for each node, edge or the graph, and marks the findings about it.

use super::finding_text::{TRANSFORM, bounded, rule_name};
use super::widening::Trail;
use crate::config::TransformGrant;
use glovebox_host::limits::LimitSettings;
use glovebox_host::rules::RuleComponent;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_pipeline::span::Span;
use glovebox_pipeline::transform::{Applied, Change, ChangePlace, SettledGraph, apply, changes};
use glovebox_pipeline::{Checked, Lowered, validate};
use std::collections::HashSet;

/// The most places of one component's changes that are told one by one.
const PLACES_MAX: usize = 50;

pub(super) struct TransformChain {
    draft: Lowered,
    /// The draft as canonical text, once somebody changed it, and what the user's file says.
    text: Option<(String, Lowered)>,
    told: Vec<Diagnostic>,
    /// What each component that was asked changed.
    pub(super) changes: Vec<Vec<Change>>,
    /// Findings of reading the user's file: they speak of its text.
    own: Vec<Diagnostic>,
    /// Who changed what.
    touched: Vec<(String, ChangePlace)>,
    /// The file as it was read, and what each component that changed it made of it.
    pub(super) trail: Trail,
    is_open: bool,
}

/// A component that is asked, and what the operator allows it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) grant: TransformGrant,
    /// Line of its table in glovebox.toml.
    pub(super) line: usize,
}

/// What to do about a component that gives no answer.
pub(super) fn remedy(name: &str) -> String {
    format!("mend the component, or leave `[rules.\"{name}\"]` out of glovebox.toml")
}

impl TransformChain {
    pub(super) fn open(draft: Lowered) -> Self {
        let own = draft.diagnostics.clone();
        Self {
            draft,
            text: None,
            told: Vec::new(),
            changes: Vec::new(),
            own,
            touched: Vec::new(),
            trail: Trail::default(),
            is_open: true,
        }
    }

    /// A draft that nobody is shown.
    pub(super) fn closed(draft: Lowered) -> Self {
        Self { is_open: false, ..Self::open(draft) }
    }

    /// Asks a component for another graph.
    pub(super) fn through(&mut self, asked: Asked<'_>, component: &RuleComponent, limits: &LimitSettings) {
        let name = asked.name;
        if !self.is_open {
            return;
        }
        let graph = SettledGraph::of(&self.draft.pipeline);
        let json = serde_json::to_string(&graph).expect("a graph holds text and numbers only");
        let answered = match component.transform(&json, limits) {
            Ok(Ok(answer)) => answer,
            Ok(Err(refusal)) => {
                return self.stop(name, format!("`{name}` refuses the graph: {}", bounded(&refusal)), None);
            }
            Err(fault) => {
                let message = format!("the transform of `{name}` gave no answer: {fault}");
                return self.stop(name, message, Some(remedy(name)));
            }
        };
        let Some(answer) = answered else { return self.changes.push(Vec::new()) };
        match SettledGraph::parse(&answer).and_then(|answer| apply(&self.draft.pipeline, &answer)) {
            Ok(applied) => self.take(asked, &graph, applied),
            Err(reason) => {
                let message = format!("the transform of `{name}` answered no graph: {}", bounded(&reason));
                self.stop(name, message, Some(remedy(name)));
            }
        }
    }

    fn take(&mut self, asked: Asked<'_>, before: &SettledGraph, applied: Applied) {
        let name = asked.name;
        let Applied { text, lowered: mut draft } = applied;
        if draft.has_errors() {
            draft.diagnostics.retain(Diagnostic::is_error);
            for found in &mut draft.diagnostics {
                found.message = bounded(&found.message);
                note(found, &format!("as `{name}` answered the graph"));
            }
            self.told.append(&mut draft.diagnostics);
            self.is_open = false;
            return;
        }
        let found = changes(before, &SettledGraph::of(&draft.pipeline));
        if let Some(first) = found.first().filter(|_| asked.grant == TransformGrant::None) {
            let first = bounded(&first.to_string());
            let message = format!(
                "`{name}` changes the graph, and glovebox.toml does not allow that; the first of {} changes: {first}",
                found.len()
            );
            let help = format!(
                "if it may: `transform = true` under `[rules.\"{name}\"]` (glovebox.toml:{}), then `glovebox plugin lock`",
                asked.line
            );
            return self.stop(name, message, Some(help));
        }
        if !found.is_empty() {
            self.trail.add(name, &self.draft, &draft);
            self.told.extend(told(name, &found, &self.draft.pipeline, &draft.pipeline));
            self.touched.extend(found.iter().map(|change| (name.to_owned(), change.place.clone())));
            // As many as the file has values: each is looked up, not searched for.
            let known: HashSet<(&str, &str)> = self.own.iter().map(|own| (&*own.rule, own.message.as_str())).collect();
            draft.diagnostics.retain(|found| !known.contains(&(&*found.rule, found.message.as_str())));
            draft.diagnostics.extend(self.own.iter().cloned());
            let before = std::mem::replace(&mut self.draft, draft);
            let original = self.text.take().map_or(before, |(_, original)| original);
            self.text = Some((text, original));
        }
        self.changes.push(found);
    }

    fn stop(&mut self, name: &str, message: String, help: Option<String>) {
        let found = Diagnostic::error(rule_name(name, None), message, self.draft.pipeline.span);
        self.told.push(Diagnostic { help, ..found });
        self.is_open = false;
    }

    /// Lints what came out. A finding that the user's file does not have says who changed the place, and offers no edit of that file.
    pub(super) fn validated(self) -> (Checked, Option<String>) {
        let mut checked = validate(self.draft);
        let text = self.text.map(|(text, original)| {
            let known = validate(original).diagnostics;
            for found in checked.diagnostics.iter_mut().filter(|found| !known.contains(found)) {
                found.fix = None;
                let who = self.touched.iter().find(|(_, place)| is_about(found, place));
                let who = who.filter(|_| !known.iter().any(|known| says_the_same(known, found)));
                who.iter().for_each(|(name, _)| note(found, &format!("`{name}` changed it")));
            }
            text
        });
        if self.told.iter().any(Diagnostic::is_error) {
            checked.pipeline = None;
        }
        checked.diagnostics.extend(self.told);
        (checked, text)
    }
}

fn says_the_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.rule, &one.message) == (&other.rule, &other.message)
}

fn note(found: &mut Diagnostic, text: &str) {
    let before = if found.note.is_empty() { String::new() } else { format!("{}; ", found.note) };
    found.note = before + text;
}

fn is_about(found: &Diagnostic, place: &ChangePlace) -> bool {
    match place {
        ChangePlace::Graph => false,
        ChangePlace::Node(id) => found.node.as_deref() == Some(id),
        ChangePlace::Edge(from, to) => {
            found.edge.as_ref().is_some_and(|(found_from, found_to)| found_from == from && found_to == to)
        }
    }
}

/// Remarks about a component's changes, one for each place.
fn told(name: &str, changes: &[Change], before: &Pipeline, after: &Pipeline) -> Vec<Diagnostic> {
    let mut places: Vec<(&ChangePlace, Vec<String>)> = Vec::new();
    for change in changes {
        match places.last_mut().filter(|(place, _)| *place == &change.place) {
            Some((_, lines)) => lines.push(change.to_string()),
            None => places.push((&change.place, vec![change.to_string()])),
        }
    }
    let count = places.len();
    let rule = || rule_name(name, Some(TRANSFORM));
    let mut told: Vec<Diagnostic> = Vec::new();
    for (place, lines) in places.into_iter().take(PLACES_MAX) {
        let message = format!("`{name}` changes the graph: {}", lines.join(", "));
        let span = span_of(place, after).or_else(|| span_of(place, before)).unwrap_or(after.span);
        let found = Diagnostic::info(rule(), bounded(&message), span);
        told.push(match place {
            ChangePlace::Graph => found,
            ChangePlace::Node(id) => found.with_node(id),
            ChangePlace::Edge(from, to) => found.with_edge(from, to),
        });
    }
    if count > PLACES_MAX {
        let message = format!("`{name}` changes the graph at {} more places", count - PLACES_MAX);
        told.push(
            Diagnostic::info(rule(), message, after.span).with_help("`glovebox plan FILE --json` lists the changes"),
        );
    }
    told
}

fn span_of(place: &ChangePlace, pipeline: &Pipeline) -> Option<Span> {
    match place {
        ChangePlace::Graph => Some(pipeline.span),
        ChangePlace::Node(id) => pipeline.node(&NodeId::new(id.as_str())).map(|node| node.span),
        ChangePlace::Edge(from, to) => {
            let mut edges = pipeline.edges.iter();
            edges.find(|edge| edge.from.as_str() == from && edge.to.as_str() == to).map(|edge| edge.span)
        }
    }
}
