//! Rules about hold-outs: every way to give them away is said out loud.
//!
//! Words only. What a stage sees of hold-outs is settled where the plan is bound, and recorded there.

use super::{Found, Rule, Subject};
use crate::holdouts::{Feedback, covers, is_builder};
use crate::ir::{Attribute, Node};

/// Opting out is allowed and never silent (seed 2).
pub(super) fn scenario_opt_out(rule: &Rule, subject: &Subject<'_>) -> Found {
    let pipeline = subject.pipeline;
    let full = |attribute: &&Attribute| attribute.value == "full";
    let graph =
        pipeline.attributes.get("scenario_feedback").filter(full).map(|attribute| {
            rule.found("builders are told everything that stages with hold-outs print", attribute.span)
        });
    let nodes = pipeline.nodes.iter().flat_map(|node| {
        let id = &node.id;
        let place = |key: &str| node.attributes.get(key).map_or(node.span, |attribute| attribute.span);
        let found = |message: String, key: &str| rule.found(message, place(key)).with_node(id.as_str());
        let reads = (node.holdouts.allow_read && is_builder(node))
            .then(|| found(format!("`{id}` may read the hold-outs it is judged by"), "codex.allow_read_scenarios"));
        let tells = (node.holdouts.feedback == Feedback::Full && node.attributes.contains_key("scenario_feedback"))
            .then(|| found(format!("builders are told everything that `{id}` prints"), "scenario_feedback"));
        [reads, uncovered(subject, node).map(|message| found(message, "codex.block_read_paths")), tells]
    });
    graph.into_iter().chain(nodes.flatten()).collect()
}

/// What is wrong with a node's own `codex.block_read_paths`, which stands in place of the default.
fn uncovered(subject: &Subject<'_>, node: &Node) -> Option<String> {
    let blocked = node.holdouts.block_read.as_ref().filter(|_| is_builder(node))?;
    let open = subject.pipeline.scenario_folders().into_iter().find(|folder| !covers(blocked, folder))?;
    Some(format!(
        "`{}` may read the hold-outs in `{open}`: its own `codex.block_read_paths` does not name them",
        node.id
    ))
}

/// A builder has no name for what judges it, not even in a sentence that forbids to read it.
pub(super) fn prompt_mentions_scenarios(rule: &Rule, subject: &Subject<'_>) -> Found {
    let folders = subject.pipeline.scenario_folders();
    let found = |node: &Node| {
        let prompt = node.prompt.as_ref().filter(|_| is_builder(node))?;
        let named = folders.iter().map(|folder| folder.trim_end_matches('/')).find(|folder| prompt.contains(folder))?;
        let message = format!("the prompt of `{}` names the hold-outs in `{named}`", node.id);
        let place = node.attributes.get("prompt").map_or(node.span, |attribute| attribute.span);
        Some(rule.found(message, place).with_node(node.id.as_str()))
    };
    subject.pipeline.nodes.iter().filter_map(found).collect()
}
