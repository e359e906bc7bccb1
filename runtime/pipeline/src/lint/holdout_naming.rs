//! Rules about the stages that hold-outs are for: what a stage names, what it has in reach, and which loop that blinds.
//!
//! These rules only report. [`crate::reach`] decides what a stage has in reach.

use super::structure::names;
use super::{Found, Rule, Subject};
use crate::holdout_roles::{Feedback, covers, is_builder, is_verifier};
use crate::ir::Node;
use crate::key;
use crate::reach::{Naming, command_naming, may_see};
use glovebox_record::scope::Entry;
use petgraph::algo::tarjan_scc;

/// Every entry of `holdouts` must contain a hold-out folder.
pub(super) fn holdout_folder(rule: &Rule, subject: &Subject<'_>) -> Found {
    let folders = subject.reach.folders();
    let found = |node: &Node| {
        let named = node.holdouts.named.as_ref().filter(|_| is_verifier(node))?;
        let wrong = |entry: &&Entry| !folders.iter().any(|folder| covers(std::slice::from_ref(*entry), folder));
        let wrong = named.iter().find(wrong)?;
        let span = node.attributes.get(key::HOLDOUTS).map_or(node.span, |attribute| attribute.span);
        let (id, list) = (&node.id, listed(folders));
        let message = format!("`holdouts` of `{id}` lists `{wrong}`, but the hold-outs are in {list}");
        Some(rule.found(message, span).with_node(id.as_str()))
    };
    subject.pipeline.stages().filter_map(found).collect()
}

/// Reports stages of a loop with a builder that have hold-outs in reach only because no stage names them.
pub(super) fn holdouts_blind_loop(rule: &Rule, subject: &Subject<'_>) -> Found {
    if !subject.has_holdouts {
        return Found::none();
    }
    let nodes = &subject.pipeline.nodes;
    let by_default = |node: &Node| {
        let folders = subject.reach.folders().iter();
        let is_withheld = is_verifier(node) && node.holdouts.feedback == Feedback::Summary;
        is_withheld && folders.into_iter().any(|folder| subject.reach.naming(node, folder) == Some(Naming::ByDefault))
    };
    let mut blind = Vec::new();
    for circle in tarjan_scc(&subject.graph) {
        let members = || circle.iter().filter_map(|index| nodes.get(index.index()));
        if members().any(is_builder) {
            blind.extend(
                circle
                    .iter()
                    .map(|index| index.index())
                    .filter(|at| nodes.get(*at).is_some_and(|node| node.stages().any(by_default))),
            );
        }
    }
    blind.sort_unstable();
    let blind: Vec<&Node> = blind.into_iter().map(|at| &nodes[at]).collect();
    let Some(first) = blind.first() else { return Found::none() };
    let (stages, list) = (names(&blind), listed(subject.reach.folders()));
    let message = format!("builders learn only the verdict of {stages}: no stage names the hold-outs in {list}");
    Found::one(rule.found(message, first.span).with_node(first.id.as_str()))
}

/// Reports a command that names a hold-out which its stage cannot see, and hold-outs that no stage has in reach.
pub(super) fn holdouts_unread(rule: &Rule, subject: &Subject<'_>) -> Found {
    let verifiers = || subject.pipeline.stages().filter(|node| is_verifier(node));
    let mut found = Found::none();
    for node in verifiers().filter(|node| node.holdouts.named.is_none()) {
        let hidden = |folder: &&Entry| !may_see(node, folder) && command_naming(node, folder).is_some();
        let Some(folder) = subject.reach.folders().iter().find(hidden) else { continue };
        let key = command_naming(node, folder).unwrap_or(key::COMMAND);
        let span = node.attributes.get(key).map_or(node.span, |attribute| attribute.span);
        let message =
            format!("`{key}` of `{}` names the hold-outs in `{folder}`, but its read scope hides them", node.id);
        found.push(rule.found(message, span).with_node(node.id.as_str()));
    }
    let is_unread = |folder: &&Entry| !verifiers().any(|node| subject.reach.naming(node, folder).is_some());
    let is_judged = subject.has_holdouts && verifiers().next().is_some();
    if !found.is_empty() {
        return found;
    }
    if let Some(folder) = subject.reach.folders().iter().find(is_unread).filter(|_| is_judged) {
        let message = format!("no stage has the hold-outs in `{folder}` in reach");
        found.push(rule.found(message, subject.pipeline.span));
    }
    found
}

fn listed(folders: &[Entry]) -> String {
    folders.iter().map(|folder| format!("`{folder}`")).collect::<Vec<_>>().join(", ")
}
