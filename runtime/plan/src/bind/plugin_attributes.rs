//! Checks the attributes of a plugin's nodes against those that the plugin declares.
//!
//! A plugin without a declaration reads whatever it likes, and its nodes may have any attribute. The declaration never changes what
//! Glovebox itself reads: a plugin that declares such an attribute is refused.

use glovebox_host::inspect::Manifest;
use glovebox_host::inspect::attribute_schema::AttributeSchema;
use glovebox_pipeline::attributes::{Carrier, guard_meant, is_known, is_reserved};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Attribute, Node};
use glovebox_pipeline::key::Key;
use glovebox_pipeline::nearest::nearest;
use glovebox_pipeline::span::Span;
use glovebox_workspace::refusal::escaped;
use std::collections::{BTreeMap, BTreeSet};

type Schemas = BTreeMap<String, AttributeSchema>;

/// The findings so far. One in a defaults block is reported once, although every node has the attribute.
#[derive(Default)]
pub(super) struct AttributeCheck {
    reported: BTreeSet<(String, Span)>,
}

impl AttributeCheck {
    /// Returns what is wrong with the attributes of a node.
    pub(super) fn findings(&mut self, node: &Node, manifest: Option<&Manifest>) -> Vec<Diagnostic> {
        let Some((manifest, schemas)) = manifest.and_then(|own| Some((own, own.attributes.as_ref()?))) else {
            return Vec::new();
        };
        let plugin = &manifest.name;
        let mut found: Vec<Diagnostic> = missing(node, plugin, schemas).into_iter().collect();
        for (key, attribute) in node.attributes.iter() {
            let finding = match schemas.get(key.as_str()) {
                Some(schema) => wrong_value(key, attribute, plugin, schema),
                None => unknown_key(key, attribute, plugin, schemas),
            };
            let Some(finding) = finding.map(|finding| finding.with_node(node.id.as_str())) else { continue };
            if self.reported.insert((plugin.clone(), attribute.span)) {
                found.push(finding);
            }
        }
        found
    }
}

/// Returns the first declared attribute that Glovebox itself reads.
pub fn declared_by_glovebox(manifest: &Manifest) -> Option<&str> {
    let is_ours = |name: &&str| is_reserved(Key::new(name));
    manifest.attributes.iter().flat_map(BTreeMap::keys).map(String::as_str).find(is_ours)
}

/// Returns the value that a node gets for each declared attribute that it does not have.
pub fn defaults<'m>(node: &Node, manifest: Option<&'m Manifest>) -> impl Iterator<Item = (&'m str, &'m str)> {
    manifest.into_iter().flat_map(|manifest| manifest.defaults(|name| node.attributes.contains_key(Key::new(name))))
}

fn missing(node: &Node, plugin: &str, schemas: &Schemas) -> Option<Diagnostic> {
    let is_missing =
        |(name, schema): &(&String, &AttributeSchema)| schema.required && !node.attributes.contains_key(Key::new(name));
    let (name, schema) = schemas.iter().find(is_missing)?;
    let message = format!("node `{}` has no `{name}`, which plugin `{plugin}` needs", node.id);
    let help = format!("add `{name}` to the node: {}{}", schema.expected(), documentation(schema));
    Some(Diagnostic::error("plugin_attribute_required", message, node.span).with_help(help).with_node(node.id.as_str()))
}

fn wrong_value(key: Key<'_>, attribute: &Attribute, plugin: &str, schema: &AttributeSchema) -> Option<Diagnostic> {
    let expected = schema.check(&attribute.value).err()?;
    let message = format!("`{key}` is `{}`, but plugin `{plugin}` expects {expected}", escaped(&attribute.value));
    let finding = Diagnostic::error("plugin_attribute_value", message, attribute.span);
    Some(match nearest(&attribute.value, schema.values()) {
        Some(meant) => finding.with_help(format!("did you mean `{meant}`?")),
        None if schema.doc.is_empty() => finding,
        None => finding.with_help(format!("`{key}`{}", documentation(schema))),
    })
}

/// Reports a key that neither Glovebox nor the plugin knows. The lint already reports a key that is probably a misspelt guardrail.
fn unknown_key(key: Key<'_>, attribute: &Attribute, plugin: &str, schemas: &Schemas) -> Option<Diagnostic> {
    if is_known(key, Carrier::Node) || guard_meant(key).is_some() {
        return None;
    }
    let message = format!("plugin `{plugin}` has no attribute `{}`", escaped(key.as_str()));
    let finding = Diagnostic::warning("plugin_attribute_known", message, attribute.key_span);
    let names = || schemas.keys().map(String::as_str);
    Some(match nearest(key.as_str(), names()) {
        Some(meant) => finding.with_help(format!("did you mean `{meant}`?")),
        None if schemas.is_empty() => finding.with_help("remove it: the plugin reads no attributes of its own"),
        None => finding.with_help(format!("it has `{}`", names().collect::<Vec<_>>().join("`, `"))),
    })
}

fn documentation(schema: &AttributeSchema) -> String {
    if schema.doc.is_empty() { String::new() } else { format!(": {}", schema.doc) }
}
