//! The transform chain: each plugin sees the draft that the plugin before it made.
//!
//! The first plugin that fails ends the chain: its graph is discarded, no later plugin is called, and there is no
//! pipeline. Each change is reported as a remark, one for each node, each edge and the graph. Findings about a changed
//! place name the plugin.

use super::RulePlugin;
use super::finding_text::bounded;
use super::widening::TransformStep;
use crate::config::TransformGrant;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_pipeline::span::Span;
use glovebox_pipeline::transform::{ChangePlace, GraphChange, SettledGraph, TransformedGraph, apply, changes};
use glovebox_pipeline::{CheckResult, LoweredFile, validate};
use glovebox_record::LimitSettings;
use std::collections::HashSet;
use std::fmt;

/// Maximum number of changed places of one plugin that are reported one by one.
const PLACES_MAX: usize = 50;

pub(super) struct TransformChain<'p> {
    draft: LoweredFile,
    /// The user's file as it was read. `None` until a plugin changes it. Its findings refer to its own text.
    file: Option<LoweredFile>,
    /// Earlier drafts, each with the plugin that made it.
    superseded: Vec<(&'p RulePlugin, LoweredFile)>,
    /// The plugin that made the current draft, and the draft as canonical text.
    latest: Option<(&'p RulePlugin, String)>,
    remarks: Vec<Diagnostic>,
    /// The changes of each plugin that returned a graph.
    changes: Vec<(&'p RulePlugin, Vec<GraphChange>)>,
    is_open: bool,
}

/// The result of the transforms.
pub(super) struct ChainResult {
    /// The pipeline and its findings.
    pub(super) checked: CheckResult,
    /// The pipeline as canonical text. `None` if no plugin changed it.
    pub(super) text: Option<String>,
    /// The changes of each plugin, in order. Plugins that were not called are missing at the end.
    pub(super) changes: Vec<Vec<GraphChange>>,
    /// The user's file, and the result of each plugin. Empty if no plugin changed it.
    pub(super) trail: Vec<TransformStep>,
}

impl<'p> TransformChain<'p> {
    pub(super) fn open(draft: LoweredFile) -> Self {
        Self {
            draft,
            file: None,
            superseded: Vec::new(),
            latest: None,
            remarks: Vec::new(),
            changes: Vec::new(),
            is_open: true,
        }
    }

    /// Creates a chain in which no plugin sees the draft.
    pub(super) fn closed(draft: LoweredFile) -> Self {
        Self { is_open: false, ..Self::open(draft) }
    }

    /// Lets a plugin change the draft.
    pub(super) fn apply(&mut self, plugin: &'p RulePlugin, limits: &LimitSettings) {
        if !self.is_open {
            return;
        }
        let name = &plugin.name;
        let graph = SettledGraph::from_pipeline(&self.draft.pipeline);
        let json = serde_json::to_string(&graph).expect("a graph holds text and numbers only");
        let answered = match plugin.component.transform(&json, limits) {
            Ok(Ok(answer)) => answer,
            Ok(Err(refusal)) => {
                return self
                    .stop(plugin.error(format!("`{name}` refuses the graph: {}", bounded(&refusal)), &self.draft));
            }
            Err(fault) => {
                let found = plugin.error(format!("the transform of `{name}` failed: {fault}"), &self.draft);
                return self.stop(found.with_help(plugin.remedy()));
            }
        };
        let Some(answer) = answered else { return self.changes.push((plugin, Vec::new())) };
        match SettledGraph::parse(&answer).and_then(|answer| apply(&self.draft.pipeline, &answer)) {
            Ok(applied) => self.accept(plugin, &graph, applied),
            Err(reason) => {
                let message = format!("the transform of `{name}` returned an invalid graph: {}", bounded(&reason));
                self.stop(plugin.error(message, &self.draft).with_help(plugin.remedy()));
            }
        }
    }

    /// Replaces the draft with a plugin's graph, if the graph has no errors and the operator allows its changes.
    fn accept(&mut self, plugin: &'p RulePlugin, before: &SettledGraph, applied: TransformedGraph) {
        let name = &plugin.name;
        let TransformedGraph { text, lowered: mut draft } = applied;
        if draft.has_errors() {
            draft.diagnostics.retain(Diagnostic::is_error);
            for found in &mut draft.diagnostics {
                found.message = bounded(&found.message);
                add_note(found, &format_args!("in the graph that `{name}` returned"));
            }
            self.remarks.append(&mut draft.diagnostics);
            self.is_open = false;
            return;
        }
        let found = changes(before, &SettledGraph::from_pipeline(&draft.pipeline));
        if let Some(first) = found.first().filter(|_| plugin.grant == TransformGrant::None) {
            let message = format!(
                "`{name}` changes the graph, but glovebox.toml does not allow it; first of {} changes: {}",
                found.len(),
                bounded(&first.to_string())
            );
            let help = format!(
                "to allow it, set `transform = true` under `[rules.\"{name}\"]` (glovebox.toml:{}), then run `glovebox plugin lock`",
                plugin.line
            );
            return self.stop(plugin.error(message, &self.draft).with_help(help));
        }
        if !found.is_empty() {
            self.remarks.extend(remarks(plugin, &found, [&self.draft.pipeline, &draft.pipeline]));
            self.replace_draft(plugin, draft, text);
        }
        self.changes.push((plugin, found));
    }

    fn replace_draft(&mut self, plugin: &'p RulePlugin, draft: LoweredFile, text: String) {
        let before = std::mem::replace(&mut self.draft, draft);
        match self.latest.replace((plugin, text)) {
            Some((maker, _)) => self.superseded.push((maker, before)),
            None => self.file = Some(before),
        }
        let own = self.file.as_ref().map_or(&[][..], |file| &file.diagnostics);
        // There can be as many findings as the file has values, so each is looked up in a set.
        let known: HashSet<(&str, &str)> = own.iter().map(|own| (&*own.rule, own.message.as_str())).collect();
        self.draft.diagnostics.retain(|found| !known.contains(&(&*found.rule, found.message.as_str())));
        self.draft.diagnostics.extend(own.iter().cloned());
    }

    fn stop(&mut self, found: Diagnostic) {
        self.remarks.push(found);
        self.is_open = false;
    }

    /// Lints the last draft. A finding that the user's file does not have names the plugin that changed the place, and
    /// offers no fix.
    pub(super) fn finish(self) -> ChainResult {
        let mut checked = validate(self.draft);
        let mut trail = Vec::new();
        if let (Some(file), Some((last, _))) = (self.file, &self.latest) {
            let CheckResult { pipeline, diagnostics: known, .. } = validate(file);
            for found in checked.diagnostics.iter_mut().filter(|found| !known.contains(found)) {
                found.fix = None;
                let changed = |changes: &[GraphChange]| changes.iter().any(|change| is_about(found, &change.place));
                let maker = self.changes.iter().find(|(_, changes)| changed(changes));
                if let Some((plugin, _)) = maker.filter(|_| !known.iter().any(|known| is_same_finding(known, found))) {
                    add_note(found, &format_args!("the rule plugin `{}` changed this place", plugin.name));
                }
            }
            trail.push(TransformStep { plugin: None, pipeline });
            let between = self.superseded.into_iter();
            trail.extend(between.map(|(plugin, draft)| TransformStep::new(plugin, validate(draft).pipeline)));
            trail.push(TransformStep::new(last, checked.pipeline.clone()));
        }
        if self.remarks.iter().any(Diagnostic::is_error) {
            checked.pipeline = None;
        }
        checked.diagnostics.extend(self.remarks);
        let changes = self.changes.into_iter().map(|(_, changes)| changes).collect();
        ChainResult { checked, text: self.latest.map(|(_, text)| text), changes, trail }
    }
}

fn is_same_finding(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.rule, &one.message) == (&other.rule, &other.message)
}

fn add_note(found: &mut Diagnostic, note: &dyn fmt::Display) {
    let separator = if found.note.is_empty() { "" } else { "; " };
    found.note += &format!("{separator}{note}");
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

/// Returns remarks about a plugin's changes, one for each place.
fn remarks(plugin: &RulePlugin, changes: &[GraphChange], [before, after]: [&Pipeline; 2]) -> Vec<Diagnostic> {
    let mut places: Vec<(&ChangePlace, Vec<String>)> = Vec::new();
    for change in changes {
        match places.last_mut().filter(|(place, _)| *place == &change.place) {
            Some((_, lines)) => lines.push(change.to_string()),
            None => places.push((&change.place, vec![change.to_string()])),
        }
    }
    let (name, count) = (&plugin.name, places.len());
    let mut remarks: Vec<Diagnostic> = Vec::new();
    for (place, lines) in places.into_iter().take(PLACES_MAX) {
        let message = format!("`{name}` changes the graph: {}", lines.join(", "));
        let span = span_of(place, after).or_else(|| span_of(place, before)).unwrap_or(after.span);
        let found = Diagnostic::info(plugin.transform_rule(), bounded(&message), span);
        remarks.push(match place {
            ChangePlace::Graph => found,
            ChangePlace::Node(id) => found.with_node(id),
            ChangePlace::Edge(from, to) => found.with_edge(from, to),
        });
    }
    if count > PLACES_MAX {
        let message = format!("`{name}` changes the graph at {} more places", count - PLACES_MAX);
        let found = Diagnostic::info(plugin.transform_rule(), message, after.span);
        remarks.push(found.with_help("`glovebox plan FILE --json` lists the changes"));
    }
    remarks
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
