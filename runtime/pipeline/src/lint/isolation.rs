//! Rules about the program under test: where its attributes stand, and that it runs apart from the stage that judges it.
//!
//! Words only. Which commands ran where is known to the host alone, and recorded there.

use super::holdouts::may_have;
use super::{Found, Rule, Subject};
use crate::diagnostic::Diagnostic;
use crate::holdouts::is_verifier;
use crate::ir::{Attribute, Node};
use std::collections::HashSet;

/// The port on which the host's proxy accepts inside of a jail.
const PROXY_PORT: u16 = 3128;

/// A finding at an attribute of a node.
fn at(rule: &Rule, node: &Node, attribute: &Attribute, message: String) -> Diagnostic {
    rule.found(message, attribute.key_span.to(attribute.span)).with_node(node.id.as_str())
}

fn written<'a>(node: &'a Node, key: &str) -> Option<&'a Attribute> {
    node.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty())
}

/// An attribute without effect would look like a wall. A value from a defaults block is told once.
pub(super) fn verifier_attribute(rule: &Rule, subject: &Subject<'_>) -> Found {
    let mut told = HashSet::new();
    let misplaced = |node: &'_ Node| {
        let is_verifier = is_verifier(node);
        let reaches = may_have(subject.pipeline, node);
        let keys =
            [("verify_subject", is_verifier), ("verify_subject_port", is_verifier), ("scenario_writes", reaches)];
        keys.into_iter().filter(|(_, belongs)| !belongs).map(|(key, _)| key)
    };
    let mut found = Found::none();
    for node in &subject.pipeline.nodes {
        for key in misplaced(node) {
            if let Some(attribute) = written(node, key).filter(|attribute| told.insert(attribute.span)) {
                let what = if key == "scenario_writes" { "has no hold-outs in reach" } else { "verifies nothing" };
                found.push(at(rule, node, attribute, format!("`{key}` stands on `{}`, which {what}", node.id)));
            }
        }
    }
    found
}

/// A port belongs to a program that the host starts, and is not the one of the host's proxy.
pub(super) fn subject_port(rule: &Rule, subject: &Subject<'_>) -> Found {
    let found = |node: &Node| {
        let (port, attribute) = (node.subject.port?, written(node, "verify_subject_port")?);
        if port == PROXY_PORT {
            let message = format!("`verify_subject_port` of `{}` is {PROXY_PORT}, the port of the proxy", node.id);
            return Some(at(rule, node, attribute, message).with_help("choose another port, such as 8080"));
        }
        let message = format!("`{}` has `verify_subject_port` and no `verify_subject`", node.id);
        node.subject.command.is_none().then(|| at(rule, node, attribute, message))
    };
    subject.pipeline.nodes.iter().filter(|node| is_verifier(node)).filter_map(found).collect()
}

/// There is nothing to fill.
pub(super) fn cache_from(rule: &Rule, subject: &Subject<'_>) -> Found {
    let empty = |node: &&Node| node.confinement.cache_from.is_some() && node.confinement.cache.0.is_empty();
    let found = |node: &Node| {
        let attribute = written(node, "cache_from")?;
        Some(at(rule, node, attribute, format!("`{}` has `cache_from` and no `cache`", node.id)))
    };
    subject.pipeline.nodes.iter().filter(empty).filter_map(found).collect()
}
