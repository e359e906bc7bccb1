//! The keys of attributes that are not known on their kind of element, each once.

use crate::attributes::{Carrier, guard_meant, is_known};
use crate::diagnostic::Diagnostic;
use crate::hash::HashSet;
use crate::ir::{Attribute, Node, Pipeline, TYPES};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::nearest::nearest;

/// A key that is not known on a kind of element, at its first use.
pub(super) struct UnknownKey<'a> {
    pub(super) key: Key<'a>,
    pub(super) attribute: &'a Attribute,
    pub(super) carrier: Carrier,
    /// The node. `None` for the graph and edges.
    node: Option<&'a Node>,
    /// All attributes of the element.
    pub(super) beside: &'a Attributes,
}

impl UnknownKey<'_> {
    /// Adds the node to a finding.
    pub(super) fn with_place(&self, finding: Diagnostic) -> Diagnostic {
        match self.node {
            Some(node) => finding.with_node(node.id.as_str()),
            None => finding,
        }
    }
}

/// Returns each key that is not known on its kind of element, once for each kind.
pub(super) fn unknown_keys(pipeline: &Pipeline) -> Vec<UnknownKey<'_>> {
    let mut look = Names::default();
    look.at(&pipeline.attributes, Carrier::Graph, None, |_| true);
    for node in &pipeline.nodes {
        let is_ours = |stage: &Node| stage.handler.component().is_none_or(|name| TYPES.contains(&name.as_str()));
        let third_party = !node.stages().all(is_ours);
        // A plugin defines its own attributes. Report only a key that is probably a misspelt guardrail, which would
        // protect nothing.
        let is_required = misspelt_command(node).map(|(key, _)| key);
        look.at(&node.attributes, Carrier::Node, Some(node), |key| {
            Some(key) != is_required && (!third_party || guard_meant(key).is_some())
        });
    }
    pipeline.edges.iter().for_each(|edge| look.at(&edge.attributes, Carrier::Edge, None, |_| true));
    look.found
}

/// The unknown keys that were found. Checks each key once for each kind of element.
#[derive(Default)]
struct Names<'a> {
    /// The keys that were already checked, with their kind of element.
    seen: HashSet<(Carrier, Key<'a>)>,
    found: Vec<UnknownKey<'a>>,
}

impl<'a> Names<'a> {
    fn at(
        &mut self,
        attributes: &'a Attributes,
        carrier: Carrier,
        node: Option<&'a Node>,
        ours: impl Fn(Key<'_>) -> bool,
    ) {
        for (key, attribute) in attributes.iter().filter(|(key, _)| ours(*key)) {
            // The lowering has already read this attribute as `tool_command`.
            if key == key::SCRIPT && attributes.get(key::TOOL_COMMAND).is_some_and(|ours| ours.span == attribute.span) {
                continue;
            }
            if self.seen.insert((carrier, key)) && !is_known(key, carrier) {
                self.found.push(UnknownKey { key, attribute, carrier, node, beside: attributes });
            }
        }
    }
}

/// For a stage without a command, returns the attribute whose key is probably a misspelling of the command's key. Only
/// the rule `tool_command_required` reports this attribute.
pub(super) fn misspelt_command(node: &Node) -> Option<(Key<'_>, &Attribute)> {
    let key = node.handler.kind().command().filter(|key| !node.attributes.contains_key(*key))?;
    let is_meant = |own: Key<'_>| !is_known(own, Carrier::Node) && nearest(own.as_str(), [key.as_str()]).is_some();
    node.attributes.iter().find(|(own, _)| is_meant(*own))
}
