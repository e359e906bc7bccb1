//! One node: from attributes as text to a [`Node`].

use super::confine;
use super::handler::{self, HandlerKind};
use super::holdout_attributes;
use super::inputs::Expansion;
use super::reader::{Findings, other_spelling};
use super::scope::{Attributes, Declared, RawNode};
use crate::files;
use crate::holdout_roles::Feedback;
use crate::inputs::Inputs;
use crate::ir::{Attribute, Backoff, Handler, Node, Text};
use crate::key;

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

/// The settings of the graph that apply to its nodes.
pub(super) struct GraphScope<'a, 'b> {
    pub(super) graph: &'a Attributes,
    pub(super) graph_turns_max: Option<u32>,
    pub(super) graph_visits_max: Option<u32>,
    pub(super) feedback: Feedback,
    pub(super) declared: &'a Declared,
    pub(super) expansion: &'a mut Expansion<'b>,
    pub(super) inputs: &'a Inputs,
    /// Folders with hold-outs; a prompt must not come from them.
    pub(super) sealed: &'a [String],
}

pub(super) fn lower(mut raw: RawNode, scope: &mut GraphScope<'_, '_>, findings: &mut Findings<'_>) -> Node {
    let (shape, handler) = resolve(&mut raw);
    let classes = classes(&mut raw);
    read_script(&mut raw, &handler, findings);
    inherit_model(&mut raw.attributes, scope.graph);
    let from = &raw.attributes;
    let label = from.get(key::LABEL).filter(|label| !label.value.trim().is_empty());
    let label = label.map_or_else(|| Text::new(raw.id.as_str()), |label| label.value.clone());
    files::child_fault(from, scope.sealed).into_iter().for_each(|fault| findings.push(fault));
    let written = from.get(key::PROMPT).filter(|prompt| !prompt.value.trim().is_empty());
    let written = written.map(|prompt| match scope.expansion.is_settled() {
        true => prompt.value.as_str(),
        false => files::prompt(prompt, scope.inputs, scope.sealed, |fault| findings.push(fault)),
    });
    let instruction = written.or((handler.kind() == HandlerKind::Codergen).then_some(label.as_str()));
    let prompt = instruction.map(|text| scope.expansion.expand(text));
    Node {
        shape,
        prompt,
        label,
        classes,
        max_retries: findings.count(from, key::MAX_RETRIES, 0),
        backoff: findings.choice(from, key::RETRY_POLICY, RETRY_POLICIES).unwrap_or_default(),
        goal_gate: findings.boolean(from, key::GOAL_GATE),
        retry_target: scope.declared.target(from, key::RETRY_TARGET),
        fallback_retry_target: scope.declared.target(from, key::FALLBACK_RETRY_TARGET),
        timeout: findings.duration(from, key::TIMEOUT),
        max_turns: findings.count(from, key::MAX_TURNS, 1).or(scope.graph_turns_max),
        visits_max: findings.count(from, key::MAX_VISITS, 0).or(scope.graph_visits_max).filter(|most| *most > 0),
        allowed_write_paths: findings.scope(from, key::ALLOWED_WRITE_PATHS),
        read_paths: findings.scope(from, key::READ_PATHS),
        confinement: confine::lower(from, findings),
        allowed_commands: findings.commands(from, key::ALLOWED_COMMANDS),
        holdouts: holdout_attributes::node(from, scope.feedback, findings),
        subject: holdout_attributes::subject(from, findings),
        limits: findings.limits(from),
        auto_status: findings.boolean(from, key::AUTO_STATUS),
        allow_partial: findings.boolean(from, key::ALLOW_PARTIAL),
        id: raw.id,
        role: handler.kind().role(),
        handler,
        attributes: raw.attributes,
        span: raw.span,
    }
}

/// Decides shape and handler: the handler comes from `type`, else from the shape.
fn resolve(raw: &mut RawNode) -> (Text, Handler) {
    let shape = Text::from(shape(raw));
    if let Some(written) = raw.attributes.get_mut(key::SHAPE).filter(|written| !written.value.is_empty()) {
        written.value.clone_from(&shape);
    }
    let handler = typed(raw).unwrap_or_else(|| handler::of_shape(&shape));
    (shape, handler)
}

/// Shape: explicit known shape, then well-known id, then any written or default shape, then `box`. So a start drawn as a circle is
/// a start (spec §7.2).
pub(super) fn shape(raw: &RawNode) -> &str {
    let written = raw.attributes.get(key::SHAPE).map(|shape| shape.value.as_str()).filter(|shape| !shape.is_empty());
    let decides = |shape: &&str| raw.own_shape && handler::SHAPES.iter().any(|(known, _)| known == shape);
    written.filter(decides).or_else(|| handler::shape_of_id(&raw.id)).or(written).unwrap_or("box")
}

fn typed(raw: &RawNode) -> Option<Handler> {
    let name = raw.attributes.get(key::TYPE).map(|name| name.value.trim())?;
    (!name.is_empty()).then(|| handler::of_type(name))
}

/// Joins the node's own classes with those of its subgraphs, and stores the list in `class`.
fn classes(raw: &mut RawNode) -> Vec<String> {
    let own = raw.attributes.get(key::CLASS).map(|class| class.value.as_str()).unwrap_or_default();
    let mut classes: Vec<String> = Vec::new();
    for class in own.split(',').map(str::trim).chain(raw.derived.iter().map(String::as_str)) {
        if !class.is_empty() && !classes.iter().any(|known| known == class) {
            classes.push(class.to_owned());
        }
    }
    if !raw.derived.is_empty() {
        let written = raw.attributes.get_or_insert_with(key::CLASS, || Attribute {
            value: Text::default(),
            key_span: raw.span,
            span: raw.span,
        });
        written.value = classes.join(",").into();
    }
    classes
}

/// Reads `script` as `tool_command`, because other engines use that name.
fn read_script(raw: &mut RawNode, handler: &Handler, findings: &mut Findings<'_>) {
    if handler.kind() != HandlerKind::Tool || raw.attributes.contains_key(key::TOOL_COMMAND) {
        return;
    }
    let Some(script) = raw.attributes.get(key::SCRIPT).filter(|script| !script.value.trim().is_empty()).cloned() else {
        return;
    };
    findings.push(other_spelling("script", "tool_command", script.key_span));
    raw.attributes.insert(key::TOOL_COMMAND, script);
}

/// Copies model settings of the graph that neither the node nor the style sheet sets (spec §8.5).
fn inherit_model(node: &mut Attributes, graph: &Attributes) {
    for key in crate::stylesheet::PROPERTIES {
        if let Some(attribute) = graph.get(key) {
            node.get_or_insert_with(key, || attribute.clone());
        }
    }
}
