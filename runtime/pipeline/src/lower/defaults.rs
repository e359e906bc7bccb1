//! Removes inherited attributes that have no effect on a node.
//!
//! A `node [...]` block applies to every node after it, but a limit or a check in the block is meant only for nodes
//! that can use it. On any other node, the attribute is an error if the node itself sets it, and is removed if it comes
//! from the block. So the pipeline and its canonical text contain these attributes only where they have an effect.

use super::backend;
use super::placement;
use super::scope::{Attributes, RawNode};
use super::verification;
use crate::hash::HashSet;
use crate::ir::{Handler, Node};
use crate::key::{self, Key};
use crate::span::Span;

/// Attributes that verify the work of a node.
pub(super) const VERIFYING: [Key<'static>; 2] = [key::VERIFY_COMMAND, key::VERIFY_PLUGIN];
/// Attributes that require another stage to pass before this one is executed.
const REQUIRING: [Key<'static>; 2] = [key::REQUIRES_TOOL_SUCCESS, key::REQUIRED_TOOL_NODE];

/// Removes the inherited attributes of a node that its handler ignores.
pub(super) fn drop_ignored(raw: &mut RawNode, handler: &Handler) {
    let mut ignored: Vec<Key<'static>> = handler.ignored_bounds().to_vec();
    if verification::misplaced(handler).is_some() {
        ignored.extend(VERIFYING);
    }
    if !matches!(handler, Handler::Component(_)) {
        ignored.extend(REQUIRING);
    }
    if !backend::starts_program(handler, &raw.attributes) {
        ignored.push(key::STATUS_FILE);
    }
    if raw.attributes.get(key::GOAL_GATE).is_none_or(|gate| gate.value.trim() != "true") {
        ignored.push(key::GATE_REQUIRES);
    }
    if !placement::makes_attempts(raw, handler) {
        ignored.push(key::RUNS_ON);
    }
    drop_inherited(raw, &ignored);
    let is_verified = VERIFYING.iter().any(|key| is_set(&raw.attributes, *key));
    if !is_verified {
        drop_inherited(raw, &[key::VERIFY_TIMEOUT]);
    }
}

/// Removes tool hooks that a node without tool calls inherits from a block, if a node with tool calls inherits the same hooks. If
/// there is no such node, the lint `tool_hooks_without_tools` reports the block.
pub(super) fn drop_ignored_hooks(nodes: &mut [Node]) {
    for key in [key::TOOL_HOOKS_PRE, key::TOOL_HOOKS_POST] {
        let hook = |node: &Node| node.attributes.get(key).map(|attribute| attribute.key_span);
        let with_tools = nodes.iter().filter(|node| node.handler.may_ask_model());
        let used: HashSet<Span> = with_tools.filter_map(hook).collect();
        for node in nodes.iter_mut().filter(|node| !node.handler.may_ask_model()) {
            if hook(node).is_some_and(|span| used.contains(&span)) {
                node.attributes.remove(key);
            }
        }
    }
}

fn drop_inherited(raw: &mut RawNode, keys: &[Key<'static>]) {
    for key in keys {
        // A block from which a node inherits is always before the node's first declaration.
        if raw.attributes.get(*key).is_some_and(|attribute| attribute.key_span.start < raw.span.start) {
            raw.attributes.remove(*key);
        }
    }
}

pub(super) fn is_set(attributes: &Attributes, key: Key<'_>) -> bool {
    attributes.get(key).is_some_and(|attribute| !attribute.value.trim().is_empty())
}
