//! Rules that report every way in which a builder can see hold-outs.
//!
//! These rules only warn. Binding the plan decides and records which hold-outs a stage can see.

use super::{LintContext, Rule, RuleFindings};
use crate::holdout_roles::runs_scenarios;
use crate::ir::holdouts::{Feedback, NodeHoldouts, Writes, covers};
use crate::ir::{Attribute, Node, Pipeline};
use crate::key::{self, Key};
use petgraph::Direction;
use petgraph::graph::NodeIndex;
use std::collections::VecDeque;

/// Reports each opt-out. Opt-outs are allowed, but they are never silent.
pub(super) fn scenario_opt_out(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    let full = |attribute: &&Attribute| attribute.value == "full";
    let graph = pipeline
        .attributes
        .get(key::SCENARIO_FEEDBACK)
        .filter(full)
        .map(|attribute| rule.found("builders get all output of stages with hold-outs", attribute.span));
    let allowed = |attribute: &&Attribute| attribute.value == "allow";
    let copies = pipeline.attributes.get(key::SCENARIO_COPIES).filter(allowed).map(|attribute| {
        rule.found("the workspace may contain copies of hold-outs, which every stage can read", attribute.span)
    });
    let is_default = |node: &&Node| node.access.holdouts == NodeHoldouts::default();
    let nodes = pipeline.nodes.iter().filter(|node| !is_default(node)).flat_map(|node| {
        let id = &node.id;
        let span = |key: Key<'_>| node.attributes.get(key).map_or(node.span, |attribute| attribute.span);
        let found = |message: String, key: Key<'_>| rule.found(message, span(key)).with_node(id.as_str());
        let reads = (node.access.holdouts.allow_read && node.is_builder())
            .then(|| found(format!("`{id}` may read the hold-outs that test it"), key::CODEX_ALLOW_READ_SCENARIOS));
        let discloses = (node.access.holdouts.feedback == Feedback::Full
            && node.attributes.contains_key(key::SCENARIO_FEEDBACK))
        .then(|| found(format!("builders get all output of `{id}`"), key::SCENARIO_FEEDBACK));
        let commits = (node.access.holdouts.writes == Writes::Commit && may_have(context, node))
            .then(|| found(format!("`{id}` commits what it writes with hold-outs in reach"), key::SCENARIO_WRITES));
        [
            reads,
            uncovered(context.pipeline, node).map(|message| found(message, key::CODEX_BLOCK_READ_PATHS)),
            discloses,
            commits,
        ]
    });
    graph.into_iter().chain(copies).chain(nodes.flatten()).collect()
}

/// Describes the hold-outs that a node's own `codex.block_read_paths` does not hide. The attribute replaces the
/// default, which hides all hold-outs. `None` if the attribute hides all of them too.
fn uncovered(pipeline: &Pipeline, node: &Node) -> Option<String> {
    let blocked = node.access.holdouts.block_read.as_ref().filter(|_| node.is_builder())?;
    let open = pipeline.scenario_entries().into_iter().find(|folder| !covers(blocked, folder))?;
    Some(format!(
        "`{}` may read the hold-outs in `{open}`: its `codex.block_read_paths` does not contain them",
        node.id
    ))
}

/// Returns true for a stage that has hold-outs in reach, if the run has hold-outs.
pub(super) fn may_have(context: &LintContext<'_>, node: &Node) -> bool {
    match node.is_verifier() {
        true => context.reach.reaches(node),
        false => node.is_builder() && (node.access.holdouts.allow_read || uncovered(context.pipeline, node).is_some()),
    }
}

/// Reports prompts of builders that mention a hold-out folder. A builder must not know the name of the folder, not even
/// from a sentence that forbids reading it.
pub(super) fn prompt_mentions_scenarios(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let folders = context.pipeline.scenario_folders();
    let found = |node: &Node| {
        let prompt = node.prompt.as_ref().filter(|_| node.is_builder())?;
        let named = folders.iter().map(|folder| folder.trim_end_matches('/')).find(|folder| prompt.contains(folder))?;
        let message = format!("the prompt of `{}` mentions the hold-outs in `{named}`", node.id);
        let span = node.attributes.get(key::PROMPT).map_or(node.span, |attribute| attribute.span);
        Some(rule.found(message, span).with_node(node.id.as_str()))
    };
    context.pipeline.nodes.iter().filter_map(found).collect()
}

/// Returns true for a stage whose output shows hold-outs to later stages.
fn shows_holdouts(context: &LintContext<'_>, node: &Node) -> bool {
    let has_them = node.is_verifier() && context.reach.reaches(node);
    let reads_them = node.is_builder() && node.access.holdouts.allow_read;
    reads_them || (has_them && node.access.holdouts.feedback == Feedback::Full)
}

/// Reports each stage that shows hold-outs to a builder once, with the nearest builder after it.
pub(super) fn scenario_reader_feeds_builder(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let nodes = &context.pipeline.nodes;
    if !nodes.iter().any(|node| shows_holdouts(context, node)) {
        return RuleFindings::none();
    }
    let nearest = nearest_builders(context);
    let found = |(number, node): (usize, &Node)| {
        let next = context.graph.neighbors(NodeIndex::new(number)).filter_map(|next| nearest[next.index()]);
        let builder = next.filter(|builder| *builder != number).min()?;
        let builder = &nodes[builder];
        let key = if node.is_builder() { key::CODEX_ALLOW_READ_SCENARIOS } else { key::SCENARIO_FEEDBACK };
        let span = node.attributes.get(key).map_or(node.span, |attribute| attribute.span);
        let message = match node.is_builder() {
            true => format!("`{}` may read the hold-outs and leads to the builder `{}`", node.id, builder.id),
            false => {
                format!("all output of `{}` about the hold-outs reaches the builder `{}`", node.id, builder.id)
            }
        };
        Some(
            rule.found(message, span)
                .with_label(builder.span, "the hold-outs test this stage")
                .with_node(node.id.as_str()),
        )
    };
    nodes.iter().enumerate().filter(|(_, node)| shows_holdouts(context, node)).filter_map(found).collect()
}

/// Returns, for each node, the nearest builder on a path from it. For a builder, that is the node itself.
fn nearest_builders(context: &LintContext<'_>) -> Vec<Option<usize>> {
    let nodes = &context.pipeline.nodes;
    let mut nearest = vec![None; context.graph.node_count()];
    let mut open: VecDeque<usize> = (0..nodes.len()).filter(|number| nodes[*number].is_builder()).collect();
    open.iter().for_each(|builder| nearest[*builder] = Some(*builder));
    while let Some(number) = open.pop_front() {
        for before in context.graph.neighbors_directed(NodeIndex::new(number), Direction::Incoming) {
            if nearest[before.index()].is_none() {
                nearest[before.index()] = nearest[number];
                open.push_back(before.index());
            }
        }
    }
    nearest
}

/// Reports ids of live models in the commands and the environment of stages that run scenarios.
pub(super) fn hardcoded_model_in_scenario(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let folders = context.pipeline.scenario_folders();
    let mut found = RuleFindings::none();
    for node in context.pipeline.nodes.iter().filter(|node| runs_scenarios(node, &folders)) {
        for (key, attribute) in node.attributes.iter().filter(|(key, _)| key.is_command_input()) {
            let mut words = attribute.value.split(|c: char| c.is_whitespace() || "\"'=;|&()".contains(c));
            if let Some(id) = words.find_map(model_id) {
                let message = format!("`{key}` of `{}` names the live model `{id}` for a scenario", node.id);
                found.push(rule.found(message, attribute.span).with_node(node.id.as_str()));
            }
        }
    }
    found
}

/// Prefixes of model ids. An id also contains a digit, or ends with one of `RELEASES`.
const FAMILIES: &[&str] = &[
    "gpt-",
    "chatgpt-",
    "o1-",
    "o3-",
    "o4-",
    "claude-",
    "gemini-",
    "gemma-",
    "mistral-",
    "mixtral-",
    "codestral-",
    "llama-",
    "deepseek-",
    "grok-",
    "kimi-",
    "qwen",
    "command-r",
    "glm-",
    "minimax-",
];

/// Names of releases that contain no digit.
const RELEASES: &[&str] = &["latest", "chat", "reasoner", "large", "medium", "small", "coder"];

/// Returns the id of a live model in a word such as `${MODEL:-gpt-4o}` or `openai/gpt-4o`. `None` if there is none.
pub(super) fn model_id(word: &str) -> Option<&str> {
    let in_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    word.split(|c: char| !in_id(c)).map(|part| part.trim_start_matches(['-', '.'])).find(|part| {
        let lower = part.to_ascii_lowercase();
        let rest = FAMILIES.iter().find_map(|family| lower.strip_prefix(family));
        // The name of a file may contain the name of a model.
        let is_file = [".sh", ".json", ".py", ".txt", ".md", ".js"].iter().any(|ending| lower.ends_with(ending));
        rest.is_some_and(|rest| {
            !is_file
                && (lower.bytes().any(|byte| byte.is_ascii_digit()) || RELEASES.iter().any(|name| rest.ends_with(name)))
        })
    })
}
