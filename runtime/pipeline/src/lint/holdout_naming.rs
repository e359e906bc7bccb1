//! Rules about stages that use hold-outs: the folders that they name, the folders in reach, and the writes that are discarded.
//!
//! These rules only report. [`crate::reach`] decides which hold-outs a stage has in reach.

use super::{LintContext, Rule, RuleFindings};
use crate::ir::Node;
use crate::ir::holdouts::{Writes, covers};
use crate::key;
use crate::reach::{command_attribute, listed, may_have_contract, may_see, reach_reason, writes_dropped};
use glovebox_record::scope::Entry;

/// Reports entries of `holdouts` that contain no hold-out folder.
pub(super) fn holdout_folder(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let folders = context.reach.folders();
    let found = |node: &Node| {
        let named = node.access.holdouts.named.as_ref().filter(|_| node.is_verifier())?;
        let wrong = |entry: &&Entry| !folders.iter().any(|folder| covers(std::slice::from_ref(*entry), folder));
        let wrong = named.listed().iter().find(wrong)?;
        let span = node.attributes.get(key::HOLDOUTS).map_or(node.span, |attribute| attribute.span);
        let (id, list) = (&node.id, listed(folders));
        let message = format!("`holdouts` of `{id}` lists `{wrong}`, but the hold-outs are in {list}");
        Some(rule.found(message, span).with_node(id.as_str()))
    };
    context.pipeline.stages().filter_map(found).collect()
}

/// Reports stages with a write scope that have hold-outs in reach, because their writes are discarded.
pub(super) fn holdout_writes_dropped(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let found = |node: &Node| {
        let (folder, reason) =
            context.reach.folders().iter().find_map(|folder| Some((folder, reach_reason(node, folder)?)))?;
        let written = node.access.allowed_write_paths.as_ref().filter(|paths| !paths.is_empty())?;
        let span = node.attributes.get(key::ALLOWED_WRITE_PATHS).map_or(node.span, |attribute| attribute.span);
        let message = writes_dropped(&node.id, folder, reason, written);
        Some(rule.found(message, span).with_node(node.id.as_str()))
    };
    if !context.has_holdouts {
        return RuleFindings::none();
    }
    let drops = |node: &&Node| node.is_verifier() && node.access.holdouts.writes == Writes::Scratch;
    context.pipeline.stages().filter(drops).filter_map(found).collect()
}

/// Reports a command that names hold-outs which its stage cannot see, and hold-outs that no stage has in reach.
pub(super) fn holdouts_unread(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let verifiers = || context.pipeline.stages().filter(|node| node.is_verifier());
    let mut found = RuleFindings::none();
    for node in verifiers().filter(|node| node.access.holdouts.named.is_none()) {
        let hidden = |folder: &&Entry| !may_see(node, folder) && command_attribute(node, folder).is_some();
        let Some(folder) = context.reach.folders().iter().find(hidden) else { continue };
        let key = command_attribute(node, folder).unwrap_or(key::COMMAND);
        let span = node.attributes.get(key).map_or(node.span, |attribute| attribute.span);
        let message =
            format!("`{key}` of `{}` names the hold-outs in `{folder}`, but its read scope hides them", node.id);
        found.push(rule.found(message, span).with_node(node.id.as_str()));
    }
    // A verify contract may name the hold-outs; it is not part of the pipeline file.
    let has_them = |node: &Node, folder: &Entry| reach_reason(node, folder).is_some() || may_have_contract(node);
    let is_unread = |folder: &&Entry| !verifiers().any(|node| has_them(node, folder));
    let is_judged = context.has_holdouts && verifiers().next().is_some();
    if !found.is_empty() {
        return found;
    }
    if let Some(folder) = context.reach.folders().iter().find(is_unread).filter(|_| is_judged) {
        let message = format!("no stage can read the hold-outs in `{folder}`, so they test nothing");
        found.push(rule.found(message, context.pipeline.span));
    }
    found
}
