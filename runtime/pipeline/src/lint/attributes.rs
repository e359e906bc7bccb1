//! Rules about single attributes: unknown keys, keys on the wrong kind of element, and unknown values.

use super::unknown_keys::UnknownKey;
use super::{LintContext, Rule, RuleFindings};
use crate::attributes::{ATTRIBUTES, Carrier, guard_meant, known};
use crate::diagnostic::Diagnostic;
use crate::dot::{is_identifier, quote};
use crate::hash::HashSet;
use crate::ir::{Attribute, Handler, HandlerKind, Node, NodeId, SHAPES, TYPES};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::nearest::{certain, nearest};
use std::cell::LazyCell;

const FIDELITIES: &[&str] = &["full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"];

const EFFORTS: &[&str] = &["low", "medium", "high"];

const PROVIDERS: &[&str] = &[
    "anthropic",
    "openai",
    "gemini",
    "google",
    "vertex",
    "azure",
    "bedrock",
    "openrouter",
    "mistral",
    "groq",
    "deepseek",
    "xai",
    "cohere",
    "cerebras",
    "kimi",
    "moonshot",
    "zai",
    "minimax",
    "ollama",
    "lmstudio",
    "vllm",
    "openai_compatible",
    "scripted",
    "simulated",
];

/// Reports an unknown value, and suggests the most similar known value.
fn unknown_word(rule: &Rule, key: Key<'_>, attribute: &Attribute, known: &[&str]) -> Diagnostic {
    let found = rule.found(format!("`{key}` has the unknown value `{}`", attribute.value), attribute.span);
    match nearest(&attribute.value, known.iter().copied()) {
        Some(meant) => {
            let found = found.with_help(format!("did you mean `{meant}`?"));
            match written(attribute, meant) {
                Some(text) => found.with_fix(attribute.span, text),
                None => found,
            }
        }
        None => found,
    }
}

/// Returns the text for a fix that replaces the value by `word`: quoted if the value is quoted, bare if it is bare, as in a style
/// sheet. `None` if the value contains escapes, or if its span covers other text.
fn written(attribute: &Attribute, word: &str) -> Option<String> {
    let bare = attribute.span.end - attribute.span.start == attribute.value.len();
    let quoted = attribute.span.end - attribute.span.start == attribute.value.len() + 2;
    match bare && is_identifier(word) {
        true => Some(word.to_owned()),
        false => (bare || quoted).then(|| quote(word)),
    }
}

/// Returns the attribute if its value is not one of the known values.
fn unknown<'a>(from: &'a Attributes, key: Key<'_>, known: &[&str]) -> Option<&'a Attribute> {
    from.get(key).filter(|attribute| !attribute.value.is_empty() && !known.contains(&attribute.value.as_str()))
}

/// Reports values of a node attribute that are not known. A value from a defaults block is reported once.
fn node_words(
    rule: &Rule,
    context: &LintContext<'_>,
    key: Key<'_>,
    known: &[&str],
    applies: impl Fn(&Node) -> bool,
) -> RuleFindings {
    let mut reported = HashSet::default();
    let nodes = context.pipeline.nodes.iter().filter(|node| applies(node));
    let unknown = nodes.filter_map(|node| unknown(&node.attributes, key, known).map(|attribute| (node, attribute)));
    let fresh = unknown.filter(|(_, attribute)| reported.insert(attribute.span));
    fresh.map(|(node, attribute)| unknown_word(rule, key, attribute, known).with_node(node.id.as_str())).collect()
}

/// Reports unknown names in `type`. Names with a dot belong to plugins, which only the operator knows. So a name with a
/// dot is reported only if it is similar to a built-in name.
pub(super) fn type_known(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let ours = |node: &Node| {
        let name = node.handler.name();
        !name.contains('.') || nearest(name, TYPES.iter().copied().filter(|known| known.contains('.'))).is_some()
    };
    node_words(rule, context, key::TYPE, TYPES, ours)
}

pub(super) fn shape_known(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let shapes: Vec<&str> = SHAPES.iter().map(|(shape, _)| *shape).collect();
    let decides = |node: &Node| node.attributes.get(key::TYPE).is_none_or(|name| name.value.trim().is_empty());
    node_words(rule, context, key::SHAPE, &shapes, decides)
}

pub(super) fn provider_valid(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    node_words(rule, context, key::LLM_PROVIDER, PROVIDERS, |_| true)
}

pub(super) fn reasoning_effort_valid(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    node_words(rule, context, key::REASONING_EFFORT, EFFORTS, |_| true)
}

pub(super) fn fidelity_valid(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = node_words(rule, context, key::FIDELITY, FIDELITIES, |_| true);
    if let Some(attribute) = unknown(&context.pipeline.attributes, key::DEFAULT_FIDELITY, FIDELITIES) {
        found.push(unknown_word(rule, key::DEFAULT_FIDELITY, attribute, FIDELITIES));
    }
    let mut reported = HashSet::default();
    for edge in &context.pipeline.edges {
        if found.is_full() {
            break;
        }
        if let Some(attribute) =
            unknown(&edge.attributes, key::FIDELITY, FIDELITIES).filter(|attribute| reported.insert(attribute.span))
        {
            found.push(
                unknown_word(rule, key::FIDELITY, attribute, FIDELITIES)
                    .with_edge(edge.from.as_str(), edge.to.as_str()),
            );
        }
    }
    found
}

pub(super) fn retry_target_exists(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut reported = HashSet::default();
    let pipeline = context.pipeline;
    let targets = [&pipeline.retry_target, &pipeline.fallback_retry_target];
    let graph = std::iter::once((None, &pipeline.attributes, targets));
    let nodes = pipeline
        .nodes
        .iter()
        .map(|node| (Some(node), &node.attributes, [&node.routing.retry_target, &node.routing.fallback_retry_target]));
    let mut found = RuleFindings::none();
    for (node, attributes, targets) in graph.chain(nodes) {
        if found.is_full() {
            break;
        }
        for (key, target) in [(key::RETRY_TARGET, targets[0]), (key::FALLBACK_RETRY_TARGET, targets[1])] {
            let Some(attribute) = attributes.get(key) else { continue };
            let name = attribute.value.trim();
            if name.is_empty() || target.is_some() || !reported.insert(attribute.span) {
                continue;
            }
            let mut finding = rule.found(format!("`{key}` names `{name}`, which is not declared"), attribute.span);
            // Each suggestion costs a search over all names.
            if reported.len() < 20
                && let Some(meant) = nearest(name, context.pipeline.nodes.iter().map(|node| node.id.as_str()))
            {
                finding = finding.with_help(format!("did you mean `{meant}`?"));
                finding = context.with_certain_name(finding, attribute.span, &NodeId::new(name));
            }
            finding.node = node.map(|node| node.id.to_string());
            found.push(finding);
        }
    }
    found
}

pub(super) fn goal_gate_has_retry(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    if pipeline.retry_target.is_some() || pipeline.fallback_retry_target.is_some() {
        return RuleFindings::none();
    }
    // In a pipeline with only checks, no stage could repair anything, so the run should fail at the exit.
    let only_checks = |node: &Node| {
        node.stages().all(Node::is_verifier)
            || matches!(node.handler, Handler::Start | Handler::Exit | Handler::Conditional)
    };
    if pipeline.nodes.iter().all(only_checks) {
        return RuleFindings::none();
    }
    // Goal gates of a child pipeline use the retry targets of the child's graph, which are attributes of the child's exits.
    let stuck = |node: &&Node| {
        let has_target = node.routing.retry_target.is_some() || node.routing.fallback_retry_target.is_some();
        node.checks.goal_gate && !has_target && node.child_of.is_none()
    };
    let found = |node: &Node| {
        let message = format!("the goal gate `{}` has no `retry_target`", node.id);
        rule.found(message, node.span).with_node(node.id.as_str())
    };
    pipeline.nodes.iter().filter(stuck).map(found).collect()
}

pub(super) fn prompt_on_llm_nodes(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let is_set = |node: &Node, key: Key<'_>| {
        node.attributes.get(key).is_some_and(|attribute| !attribute.value.trim().is_empty())
    };
    let unprompted = |node: &&Node| {
        node.handler.kind() == HandlerKind::Codergen && !is_set(node, key::PROMPT) && !is_set(node, key::LABEL)
    };
    let found = |node: &Node| {
        let message = format!("the agent stage `{}` has neither `prompt` nor `label`", node.id);
        rule.found(message, node.span).with_node(node.id.as_str())
    };
    context.pipeline.nodes.iter().filter(unprompted).map(found).collect()
}

/// Reports `auto_status` on nodes with a component. The attribute replaces a missing outcome, but a component always
/// returns an outcome or fails.
pub(super) fn auto_status_no_effect(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let relies = |node: &&Node| node.routing.auto_status && node.handler.component().is_some();
    let found = |node: &Node| {
        let span = node.attributes.get(key::AUTO_STATUS).map_or(node.span, |attribute| attribute.span);
        let message = format!("`auto_status` of `{}` has no effect", node.id);
        rule.found(message, span).with_node(node.id.as_str())
    };
    context.pipeline.nodes.iter().filter(relies).map(found).collect()
}

/// Reports unknown keys that are similar to a known one, and known keys on the wrong kind of element.
pub(super) fn attribute_known(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let found = |unknown: &UnknownKey<'_>| Some(unknown.with_place(mistake(rule, unknown)?));
    context.unknown_keys().iter().filter_map(found).collect()
}

/// Returns what is probably wrong with an unknown key. `None` if it may be the key of a plugin.
fn mistake(rule: &Rule, unknown: &UnknownKey<'_>) -> Option<Diagnostic> {
    let UnknownKey { key, attribute, carrier, beside, .. } = *unknown;
    misplaced(rule, key, attribute, carrier).or_else(|| misspelt(rule, key, attribute, carrier, beside))
}

/// Reports the unknown keys that `attribute_known` does not report. Plugins may read them. A graph attribute that a
/// text uses as `$name` is an input and is not reported.
pub(super) fn attribute_unread(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let inputs = LazyCell::new(|| inputs(context));
    let is_input =
        |unknown: &UnknownKey<'_>| unknown.carrier == Carrier::Graph && inputs.contains(unknown.key.as_str());
    let unread = context.unknown_keys().iter().filter(|unknown| mistake(rule, unknown).is_none() && !is_input(unknown));
    let found = |unknown: &UnknownKey<'_>| {
        let message = format!("Glovebox does not read the attribute `{}`", unknown.key);
        unknown.with_place(rule.found(message, unknown.attribute.key_span))
    };
    unread.map(found).collect()
}

/// Returns every `$name` in the text of an attribute.
fn inputs<'a>(context: &LintContext<'a>) -> HashSet<&'a str> {
    let graph = std::iter::once(&context.pipeline.attributes);
    let texts = graph.chain(context.pipeline.nodes.iter().map(|node| &node.attributes)).flat_map(Attributes::iter);
    let names = texts.flat_map(|(_, attribute)| attribute.value.split('$').skip(1));
    names
        .map(|rest| &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())])
        .collect()
}

fn misplaced(rule: &Rule, key: Key<'_>, attribute: &Attribute, carrier: Carrier) -> Option<Diagnostic> {
    let known = known(key)?;
    let place = |carrier: &Carrier| match carrier {
        Carrier::Graph => "the graph",
        Carrier::Node => "a node",
        Carrier::Edge => "an edge",
    };
    let places: Vec<&str> = known.on.iter().map(place).collect();
    let message = format!("`{key}` has no effect on {}", place(&carrier));
    Some(rule.found(message, attribute.key_span).with_help(format!("put it on {}", places.join(" or "))))
}

fn misspelt(
    rule: &Rule,
    key: Key<'_>,
    attribute: &Attribute,
    carrier: Carrier,
    beside: &Attributes,
) -> Option<Diagnostic> {
    const LENGTH_MIN: usize = 4;
    let candidates = ATTRIBUTES.iter().filter(|known| known.on.contains(&carrier)).map(|known| known.key.as_str());
    let found = || rule.found(format!("unknown attribute `{key}`"), attribute.key_span);
    if let Some(ours) = name_here(key, carrier) {
        return Some(found().with_help(format!("write `{ours}`, which is the name for `{key}` here")));
    }
    let meant = guard_meant(key).or_else(|| nearest(key.as_str(), candidates).map(Key::new));
    let meant = meant.filter(|_| key.as_str().len() >= LENGTH_MIN)?;
    let found = found().with_help(format!("did you mean `{meant}`?"));
    // If the right key is also set, the fix would replace its value.
    let is_certain = !beside.contains_key(meant) && (guard_meant(key).is_some() || is_slip(key, meant));
    Some(if is_certain { found.with_fix(attribute.key_span, meant.as_str()) } else { found })
}

/// Returns true for keys that differ by one typing mistake, or only in punctuation and case.
fn is_slip(key: Key<'_>, meant: Key<'_>) -> bool {
    let plain = |key: Key<'_>| -> String { key.as_str().to_lowercase().replace(['_', '.', '-'], "") };
    certain(key.as_str(), [meant.as_str()]).is_some() || plain(key) == plain(meant)
}

/// Returns Glovebox's key for a node attribute of other engines. The finding has no fix, because the values of other engines may
/// differ.
fn name_here(key: Key<'_>, carrier: Carrier) -> Option<Key<'static>> {
    match key.as_str() {
        _ if carrier != Carrier::Node => None,
        "node_type" => Some(key::TYPE),
        "script" => Some(key::TOOL_COMMAND),
        "stack.child_workflow" => Some(key::STACK_CHILD_DOTFILE),
        _ => None,
    }
}
