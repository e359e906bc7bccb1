//! One node: from attributes as text to a [`Node`].

use super::confine;
use super::handler;
use super::holdouts;
use super::inputs::Expansion;
use super::reader::{Findings, other_spelling};
use super::scope::{Attributes, RawNode};
use crate::Inputs;
use crate::files;
use crate::holdouts::Feedback;
use crate::ir::{Attribute, Backoff, Handler, Node, NodeId, Words};

/// Presets of attempts and delays (spec §3.6).
const RETRY_POLICIES: &[(&str, Backoff)] = &[
    ("none", policy(1, 0, 1.0)),
    ("standard", policy(5, 200, 2.0)),
    ("aggressive", policy(5, 500, 2.0)),
    ("linear", policy(3, 500, 1.0)),
    ("patient", policy(3, 2_000, 3.0)),
];

const fn policy(attempts: u32, initial_ms: u64, factor: f64) -> Backoff {
    Backoff { attempts: Some(attempts), initial_ms, factor, max_ms: 60_000, jitter: true }
}

/// What a node needs to know of its graph.
pub(super) struct Surroundings<'a, 'b> {
    pub(super) graph: &'a Attributes,
    pub(super) graph_turns_max: Option<u32>,
    pub(super) feedback: Feedback,
    pub(super) declared: &'a dyn Fn(&str) -> bool,
    pub(super) expansion: &'a mut Expansion<'b>,
    pub(super) inputs: &'a Inputs,
    /// Folders with hold-outs: no prompt comes from there.
    pub(super) sealed: &'a [String],
}

pub(super) fn lower(mut raw: RawNode, around: &mut Surroundings<'_, '_>, findings: &mut Findings<'_>) -> Node {
    let (shape, handler) = resolve(&mut raw);
    let classes = classes(&mut raw);
    read_script(&mut raw, &handler, findings);
    inherit_model(&mut raw.attributes, around.graph);
    let from = &raw.attributes;
    let label = from.get("label").filter(|label| !label.value.trim().is_empty());
    let label = label.map_or_else(|| Words::new(raw.id.as_str()), |label| label.value.clone());
    files::child_fault(from, around.sealed).into_iter().for_each(|fault| findings.push(fault));
    let written = from.get("prompt").filter(|prompt| !prompt.value.trim().is_empty());
    let written = written.map(|prompt| match around.expansion.is_settled() {
        true => prompt.value.as_str(),
        false => files::prompt(prompt, around.inputs, around.sealed, |fault| findings.push(fault)),
    });
    let instruction = written.or((handler.name() == "codergen").then_some(label.as_str()));
    let prompt = instruction.map(|text| around.expansion.prompt(text));
    Node {
        shape,
        prompt,
        label,
        classes,
        max_retries: findings.count(from, "max_retries", 0),
        backoff: findings.choice(from, "retry_policy", RETRY_POLICIES).unwrap_or_default(),
        goal_gate: findings.boolean(from, "goal_gate"),
        retry_target: target(from, "retry_target", around.declared),
        fallback_retry_target: target(from, "fallback_retry_target", around.declared),
        timeout: findings.duration(from, "timeout"),
        max_turns: findings.count(from, "max_turns", 1).or(around.graph_turns_max),
        allowed_write_paths: findings.scope(from, "allowed_write_paths"),
        read_paths: findings.scope(from, "read_paths"),
        confinement: confine::lower(from, findings),
        allowed_commands: findings.commands(from, "allowed_commands"),
        holdouts: holdouts::node(from, around.feedback, findings),
        subject: holdouts::subject(from, findings),
        limits: findings.limits(from),
        auto_status: findings.boolean(from, "auto_status"),
        allow_partial: findings.boolean(from, "allow_partial"),
        id: raw.id,
        handler,
        attributes: raw.attributes,
        span: raw.span,
    }
}

/// Settles shape and handler: `type`, else what the shape stands for.
fn resolve(raw: &mut RawNode) -> (Words, Handler) {
    let shape = Words::from(shape(raw));
    if let Some(written) = raw.attributes.get_mut("shape").filter(|written| !written.value.is_empty()) {
        written.value.clone_from(&shape);
    }
    let handler = typed(raw).unwrap_or_else(|| handler::of_shape(&shape));
    (shape, handler)
}

/// The shape on the node if it stands for a handler, else the one its id stands for, else what it says itself or by default, else a
/// box. A start drawn as a circle is a start (spec §7.2: the shape or the id).
pub(super) fn shape(raw: &RawNode) -> &str {
    let written = raw.attributes.get("shape").map(|shape| shape.value.as_str()).filter(|shape| !shape.is_empty());
    let decides = |shape: &&str| raw.own_shape && handler::SHAPES.iter().any(|(known, _)| known == shape);
    written.filter(decides).or_else(|| handler::shape_of_id(raw.id.as_str())).or(written).unwrap_or("box")
}

fn typed(raw: &RawNode) -> Option<Handler> {
    let name = raw.attributes.get("type").map(|name| name.value.trim())?;
    (!name.is_empty()).then(|| handler::of_type(name))
}

/// Joins the classes written on the node with those of its subgraphs, and writes the whole list back to `class`.
fn classes(raw: &mut RawNode) -> Vec<String> {
    let own = raw.attributes.get("class").map(|class| class.value.as_str()).unwrap_or_default();
    let mut classes: Vec<String> = Vec::new();
    for class in own.split(',').map(str::trim).chain(raw.derived.iter().map(String::as_str)) {
        if !class.is_empty() && !classes.iter().any(|known| known == class) {
            classes.push(class.to_owned());
        }
    }
    if !raw.derived.is_empty() {
        let written = raw.attributes.get_or_insert_with("class", || Attribute {
            value: Words::default(),
            key_span: raw.span,
            span: raw.span,
        });
        written.value = classes.join(",").into();
    }
    classes
}

/// `script` is what other engines call the command of a tool stage (design §9 #36).
fn read_script(raw: &mut RawNode, handler: &Handler, findings: &mut Findings<'_>) {
    if handler.name() != "tool" || raw.attributes.contains_key("tool_command") {
        return;
    }
    let Some(script) = raw.attributes.get("script").filter(|script| !script.value.trim().is_empty()).cloned() else {
        return;
    };
    findings.push(other_spelling("script", "tool_command", script.key_span));
    raw.attributes.insert("tool_command", script);
}

/// Takes model settings of the graph where neither the node nor the style sheet has any (spec §8.5).
fn inherit_model(node: &mut Attributes, graph: &Attributes) {
    for key in crate::stylesheet::PROPERTIES {
        if let Some(attribute) = graph.get(key) {
            node.get_or_insert_with(key, || attribute.clone());
        }
    }
}

/// A node named by an attribute; none when it is not declared, which the lint `retry_target_exists` says.
pub(super) fn target(from: &Attributes, key: &str, declared: &dyn Fn(&str) -> bool) -> Option<NodeId> {
    let name = from.get(key)?.value.trim();
    declared(name).then(|| NodeId::new(name))
}
