//! What a file may ask for and this version would not enforce: accepted by `check` with a warning, refused by a run.
//!
//! An attribute that promises a bound or a guard and is silently ignored is worse than none.

use super::{Found, Rule, Subject};
use crate::attributes::ATTRIBUTES;
use crate::diagnostic::Diagnostic;
use crate::ir::{Attribute, Handler};
use crate::keyed::{Attributes, Key};
use std::collections::HashSet;

/// Attributes by name; one that ends in a dot means all that begin with it.
const REFUSED: &[&str] = &[
    "verify_command",
    "max_budget_usd",
    "max_tokens",
    "tool_hooks.",
    "requires_tool_success",
    "join_policy",
    "loop_restart",
    "loop_restart_signature_limit",
    "codex.sandbox",
    "codex.approval",
    "codex.auto_approve_commands",
    "codex.dangerous_bypass",
    "codex.disable_mcp",
];

pub(super) fn check(rule: &Rule, subject: &Subject<'_>) -> Found {
    let pipeline = subject.pipeline;
    let mut found = Found::none();
    let mut told = HashSet::new();
    let known: Vec<bool> = ATTRIBUTES.iter().map(|known| is_refused(known.name)).collect();
    let mut look = |attributes: &Attributes, node: Option<&str>, edge: Option<(&str, &str)>| {
        let named = |key: &Key| key.number().map_or_else(|| is_refused(key), |number| known[number]);
        let asks = |attribute: &Attribute| !matches!(attribute.value.trim(), "" | "false");
        for (key, attribute) in attributes.iter().filter(|(key, attribute)| named(key) && asks(attribute)) {
            if !found.is_full() && told.insert(attribute.span) {
                let message = format!("`{key}` is not enforced in this version");
                let mut finding = rule.found(message, attribute.key_span.to(attribute.span));
                finding.node = node.map(str::to_owned);
                finding.edge = edge.map(|(from, to)| (from.to_owned(), to.to_owned()));
                found.push(finding);
            }
        }
    };
    look(&pipeline.attributes, None, None);
    pipeline.nodes.iter().for_each(|node| look(&node.attributes, Some(node.id.as_str()), None));
    pipeline.edges.iter().for_each(|edge| look(&edge.attributes, None, Some((edge.from.as_str(), edge.to.as_str()))));
    found.into_iter().chain(handlers(rule, subject)).collect()
}

fn is_refused(key: &str) -> bool {
    REFUSED.iter().any(|refused| key == *refused || (refused.ends_with('.') && key.starts_with(refused)))
}

fn handlers<'a>(rule: &'a Rule, subject: &Subject<'a>) -> impl Iterator<Item = Diagnostic> + 'a {
    subject.pipeline.nodes.iter().filter_map(move |node| {
        let Handler::Unavailable(name) = &node.handler else { return None };
        let written = node.attributes.get("type").or_else(|| node.attributes.get("shape"));
        let message = format!("the handler `{name}` of `{}` is not executed in this version", node.id);
        let found = rule.found(message, written.map_or(node.span, |attribute| attribute.span));
        Some(found.with_label(node.span, "this node").with_node(node.id.as_str()))
    })
}
