//! Makes a plugin's own text safe to show: escaped, cut, and attached to a place that exists.
//!
//! Names of rules, severities, nodes and edges are checked. If a name is not valid, the finding becomes an error that reports
//! the name.

use super::RulePlugin;
use glovebox_host::rules::Finding;
use glovebox_pipeline::LoweredFile;
use glovebox_pipeline::diagnostic::{Diagnostic, RuleName, Severity};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_workspace::refusal::escaped;

/// The rule name of remarks about changes of the graph. No finding of a plugin may use it.
const TRANSFORM: &str = "transform";

/// Maximum length of a finding's text, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// Maximum length of a rule name, in bytes.
const NAME_BYTES_MAX: usize = 64;

impl RulePlugin {
    /// Returns the rule name of remarks about this plugin's changes, such as `acme.house/transform`.
    pub(super) fn transform_rule(&self) -> RuleName {
        format!("{}/{TRANSFORM}", self.name).into()
    }

    /// Returns the rule name of errors about the plugin itself, which is the plugin's name.
    pub(super) fn own_rule(&self) -> RuleName {
        self.name.as_str().to_owned().into()
    }

    /// Creates an error about the plugin, with the span of the whole graph.
    pub(super) fn error(&self, message: String, draft: &LoweredFile) -> Diagnostic {
        Diagnostic::error(self.own_rule(), message, draft.pipeline.span)
    }

    /// Returns what the operator can do about a plugin that fails.
    pub(super) fn remedy(&self) -> String {
        format!("fix the component, or remove `[rules.\"{}\"]` from glovebox.toml", self.name)
    }

    /// Converts a finding to a diagnostic. Its place is the node, the edge or the graph, and its text is escaped and cut.
    pub(super) fn diagnostic(&self, finding: Finding, pipeline: &Pipeline) -> Diagnostic {
        let mut notes = Vec::new();
        let severity = severity(&finding).unwrap_or_else(|| {
            let other = bounded(&finding.severity);
            notes.push(format!("`{other}` is not a severity: expected `error`, `warning` or `info`"));
            Severity::Error
        });
        let rule = match has_valid_rule(&finding) {
            true => format!("{}/{}", self.name, finding.rule).into(),
            false => {
                notes.push(format!("`{}` is not a valid rule name", bounded(&finding.rule)));
                self.own_rule()
            }
        };
        let node = finding.node.as_ref().map(|id| (id, pipeline.node(&NodeId::new(id.as_str()))));
        let edge = finding.edge.as_ref().map(|(from, to)| {
            let mut edges = pipeline.edges.iter();
            ((from, to), edges.find(|edge| edge.from.as_str() == from && edge.to.as_str() == to))
        });
        if let Some((id, None)) = node {
            notes.push(format!("the graph has no node `{}`", bounded(id)));
        }
        if let Some(((from, to), None)) = edge {
            notes.push(format!("the graph has no edge `{} -> {}`", bounded(from), bounded(to)));
        }
        let (node, edge) = (node.and_then(|(_, node)| node), edge.and_then(|(_, edge)| edge));
        let span = edge.map(|edge| edge.span).or(node.map(|node| node.span)).unwrap_or(pipeline.span);
        let mut found = Diagnostic::new(rule, severity, bounded(&finding.message), span);
        found.note = notes.join("; ");
        found.help = finding.help.as_deref().map(bounded);
        found.node = node.map(|node| node.id.to_string());
        found.edge = edge.map(|edge| (edge.from.to_string(), edge.to.to_string()));
        found
    }
}

fn severity(finding: &Finding) -> Option<Severity> {
    match finding.severity.as_str() {
        "error" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "info" => Some(Severity::Info),
        _ => None,
    }
}

/// Returns a plugin's text without control characters, cut to [`TEXT_BYTES_MAX`].
pub(super) fn bounded(text: &str) -> String {
    let cut = text.floor_char_boundary(TEXT_BYTES_MAX);
    let mark = if cut < text.len() { "…" } else { "" };
    escaped(&text[..cut]) + mark
}

fn has_valid_rule(Finding { rule, .. }: &Finding) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=NAME_BYTES_MAX).contains(&rule.len()) && rule.chars().all(allowed) && rule != TRANSFORM
}
