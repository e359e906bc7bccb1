//! A component's own words, made fit to be shown: escaped, cut, and put at a place that exists.
//!
//! Names of rules, severities, nodes and edges are checked; what is none is told in the finding, which counts as an error.

use glovebox_host::rules::Finding;
use glovebox_pipeline::diagnostic::{Diagnostic, RuleName, Severity};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_sandbox::refusal::escaped;

/// The name under which changes of the graph are told; no finding of a component's own may have it.
pub(super) const TRANSFORM: &str = "transform";

/// The longest text of a finding, bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// The longest name of a rule, bytes.
const NAME_BYTES_MAX: usize = 64;

/// A finding as a diagnostic: its place is the node, the edge or the graph, its words are escaped and cut.
pub(super) fn diagnostic(name: &str, finding: Finding, pipeline: &Pipeline) -> Diagnostic {
    let Finding { rule, severity, message, node, edge, help } = finding;
    let mut notes = Vec::new();
    let severity = match severity.as_str() {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        "info" => Severity::Info,
        other => {
            notes.push(format!("the severity `{}` is not known", bounded(other)));
            Severity::Error
        }
    };
    let named = is_rule_name(&rule).then_some(rule.as_str());
    if named.is_none() {
        notes.push(format!("`{}` is no name for a rule", bounded(&rule)));
    }
    let known = node.as_ref().and_then(|id| pipeline.node(&NodeId::new(id.as_str())));
    let between = edge
        .as_ref()
        .and_then(|(from, to)| pipeline.edges.iter().find(|edge| edge.from.as_str() == from && edge.to.as_str() == to));
    if node.is_some() && known.is_none() {
        notes.push(format!("there is no node `{}`", bounded(node.as_deref().unwrap_or_default())));
    }
    if let (Some((from, to)), None) = (&edge, between) {
        notes.push(format!("there is no edge `{} -> {}`", bounded(from), bounded(to)));
    }
    let place = between.map(|edge| edge.span).or(known.map(|node| node.span)).unwrap_or(pipeline.span);
    let mut told = Diagnostic::new(rule_name(name, named), severity, bounded(&message), place);
    told.note = notes.join("; ");
    told.help = help.map(|help| bounded(&help));
    told.node = known.map(|node| node.id.to_string());
    told.edge = between.map(|edge| (edge.from.to_string(), edge.to.to_string()));
    told
}

/// A component's text without anything that moves a cursor, and no longer than is read.
pub(super) fn bounded(text: &str) -> String {
    let cut = text.floor_char_boundary(TEXT_BYTES_MAX);
    let mark = if cut < text.len() { "…" } else { "" };
    escaped(&text[..cut]) + mark
}

fn is_rule_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(allowed) && name != TRANSFORM
}

/// The name of a component's rule, such as `acme.house/its-rule`; without a rule the component's own.
pub(super) fn rule_name(component: &str, rule: Option<&str>) -> RuleName {
    rule.map_or_else(|| component.to_owned(), |rule| format!("{component}/{rule}")).into()
}
