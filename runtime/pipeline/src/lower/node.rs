//! Converts the attributes of one node from text to a [`Node`].

use super::backend;
use super::confine;
use super::defaults;
use super::document_schema;
use super::handler;
use super::holdout_attributes;
use super::inputs::Expansion;
use super::output;
use super::parallel;
use super::placement;
use super::reader::Findings;
use super::scope::{Attributes, Declarations, RawNode};
use super::verification;
use crate::condition::Condition;
use crate::diagnostic::Diagnostic;
use crate::files;
use crate::inputs::Inputs;
use crate::ir::holdouts::Feedback;
use crate::ir::{
    Access, AgentSettings, Attribute, Backoff, CHILD_EXIT, CYCLES_DEFAULT, Checks, Child, GATE_REQUIREMENTS,
    GateSettings, Handler, HandlerKind, Node, NodeBounds, NodeId, Routing, SHAPES, SessionSettings, Supervision, Text,
    ToolHooks, ToolProviders, ToolServers,
};
use crate::key::{self, Key};
use glovebox_record::Need;
use glovebox_record::question::QUESTION_TYPES;
use glovebox_record::{Fidelity, ThreadId};
use std::sync::Arc;

/// Attributes that only Glovebox itself may write.
const RESERVED: [Key<'static>; 4] =
    [key::STACK_CHILD, key::STACK_CHILD_OF, key::STACK_CHILD_GOAL, key::STACK_CHILD_MAX_STEPS];
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

/// Returns the retry preset of the graph, including its number of attempts.
pub(super) fn retry_policy(graph: &Attributes, findings: &mut Findings<'_>) -> Option<Backoff> {
    findings.choice(graph, key::RETRY_POLICY, RETRY_POLICIES)
}

/// The settings of the graph that apply to nodes.
pub(super) struct GraphScope<'a, 'b> {
    pub(super) graph: &'a Attributes,
    pub(super) graph_turns_max: Option<u32>,
    pub(super) graph_visits_max: Option<u32>,
    /// Delays of the graph's preset, without its number of attempts (see [`retry_policy`]).
    pub(super) graph_backoff: Backoff,
    pub(super) feedback: Feedback,
    /// What the graph asks of the machine of each stage.
    pub(super) need: Option<Arc<Need>>,
    pub(super) declarations: &'a Declarations,
    pub(super) expansion: &'a mut Expansion<'b>,
    pub(super) inputs: &'a Inputs,
    /// Folders with hold-outs, from which no prompt may be read.
    pub(super) sealed: &'a [String],
}

pub(super) fn lower(mut raw: RawNode, scope: &mut GraphScope<'_, '_>, findings: &mut Findings<'_>) -> Node {
    if !scope.expansion.is_settled() {
        refuse_reserved(&raw, findings);
    }
    read_exec(&mut raw, findings);
    let (shape, handler) = resolve(&mut raw);
    defaults::drop_ignored(&mut raw, &handler);
    let classes = classes(&mut raw);
    read_script(&mut raw, &handler, findings);
    read_mode(&mut raw, &handler, findings);
    read_child_file(&mut raw, &handler, findings);
    document_schema::settle(&mut raw, &handler, scope, findings);
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
    let node = Node {
        shape,
        prompt,
        label,
        classes,
        routing: routing(&handler, from, scope, findings),
        bounds: bounds(from, scope, findings),
        access: access(&handler, from, scope, findings),
        checks: checks(from, scope, findings),
        agent: agent(&handler, &raw, scope, findings),
        gate: gate(from, findings),
        parallel: parallel::settings(from, findings),
        child: child(from, findings).map(Box::new),
        need: placement::node(&raw, &handler, scope.need.as_ref(), findings),
        child_of: scope.declarations.target(from, key::STACK_CHILD_OF),
        id: raw.id,
        role: handler.kind().role(),
        handler,
        attributes: raw.attributes,
        span: raw.span,
    };
    let verification = verification::lower(&node, findings).map(Box::new);
    Node { checks: Checks { verification, ..node.checks }, ..node }
}

fn routing(handler: &Handler, from: &Attributes, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) -> Routing {
    Routing {
        max_retries: findings.count(from, key::MAX_RETRIES, 0),
        backoff: findings.choice(from, key::RETRY_POLICY, RETRY_POLICIES).unwrap_or(scope.graph_backoff),
        retry_target: scope.declarations.target(from, key::RETRY_TARGET),
        fallback_retry_target: scope.declarations.target(from, key::FALLBACK_RETRY_TARGET),
        auto_status: findings.boolean(from, key::AUTO_STATUS),
        status_file: backend::status_file(handler, from, findings),
        allow_partial: findings.boolean(from, key::ALLOW_PARTIAL),
    }
}

fn bounds(from: &Attributes, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) -> NodeBounds {
    NodeBounds {
        timeout: findings.duration(from, key::TIMEOUT),
        max_turns: findings.count(from, key::MAX_TURNS, 1).or(scope.graph_turns_max),
        spend_max: findings.spend(from),
        visits_max: findings.count(from, key::MAX_VISITS, 0).or(scope.graph_visits_max).filter(|most| *most > 0),
        steps_max: findings.integer(from, key::MAX_STEPS, 1, i64::MAX).and_then(|steps| u64::try_from(steps).ok()),
        wall_max: findings.duration(from, key::MAX_WALL_TIME),
        limits: findings.limits(from),
    }
}

fn access(handler: &Handler, from: &Attributes, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) -> Access {
    Access {
        allowed_write_paths: findings.scope(from, key::ALLOWED_WRITE_PATHS),
        read_paths: findings.scope(from, key::READ_PATHS),
        allowed_commands: findings.commands(from, handler.kind().allow_list()),
        confinement: confine::lower(from, findings),
        holdouts: holdout_attributes::node(from, scope.feedback, findings),
        subject: holdout_attributes::subject(from, findings),
    }
}

/// Returns the checks of a node without its verification, which is created from the finished node.
fn checks(from: &Attributes, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) -> Checks {
    Checks {
        goal_gate: findings.boolean(from, key::GOAL_GATE),
        gate_requires: findings.choice(from, key::GATE_REQUIRES, GATE_REQUIREMENTS).unwrap_or_default(),
        required_tool: required_tool(from, scope.declarations, findings),
        verification: None,
    }
}

fn agent(handler: &Handler, raw: &RawNode, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) -> AgentSettings {
    let from = &raw.attributes;
    AgentSettings {
        session: session(from, raw.derived.last()),
        backend: backend::lower(handler, from, findings),
        tool_hooks: tool_hooks(handler, from, scope.graph),
        tool_servers: tool_servers(handler, from, scope.graph),
        tool_providers: tool_providers(handler, from, scope.graph),
        output_schema: output::lower(handler, from, scope, findings),
    }
}

/// Returns the stage that must have passed before this node. `None` if the node requires none. The lint `required_tool_node`
/// reports a name for which there is no such stage.
fn required_tool(from: &Attributes, declarations: &Declarations, findings: &mut Findings<'_>) -> Option<NodeId> {
    let is_required = findings.boolean(from, key::REQUIRES_TOOL_SUCCESS);
    declarations.target(from, key::REQUIRED_TOOL_NODE).filter(|_| is_required)
}

/// Reads fidelity and thread. An unknown fidelity is treated as absent; the lint reports it.
pub(super) fn session(from: &Attributes, class: Option<&String>) -> SessionSettings {
    let word = |key| from.get(key).map(|attribute| attribute.value.trim()).filter(|text| !text.is_empty());
    SessionSettings {
        fidelity: word(key::FIDELITY).or_else(|| word(key::DEFAULT_FIDELITY)).and_then(Fidelity::parse),
        thread: word(key::THREAD_ID).map(ThreadId::from),
        class: class.map(|class| ThreadId::from(class.as_str())),
    }
}

/// Returns the node's own hooks, or else those of the graph. An empty text on the node means no hook. A node that cannot ask a
/// model has no hooks.
fn tool_hooks(handler: &Handler, node: &Attributes, graph: &Attributes) -> ToolHooks {
    if !handler.may_ask_model() {
        return ToolHooks::default();
    }
    let text = |key| {
        let written = node.get(key).or_else(|| graph.get(key)).filter(|attribute| !attribute.value.trim().is_empty());
        written.map(|attribute| attribute.value.clone())
    };
    let keys = [key::TOOL_HOOKS_PRE, key::TOOL_HOOKS_POST];
    let is_own = keys.iter().any(|key| node.get(*key).is_some_and(|attribute| !attribute.value.trim().is_empty()));
    ToolHooks { pre: text(keys[0]), post: text(keys[1]), is_own }
}

/// Returns the node's own list of tool servers, or else that of the graph.
fn tool_servers(handler: &Handler, node: &Attributes, graph: &Attributes) -> ToolServers {
    let ToolList { asked, is_own } = ToolList::read(key::MCP, handler, node, graph);
    ToolServers { asked, is_own }
}

/// Returns the node's own list of plugins with tools, or else that of the graph.
fn tool_providers(handler: &Handler, node: &Attributes, graph: &Attributes) -> ToolProviders {
    let ToolList { asked, is_own } = ToolList::read(key::TOOLS, handler, node, graph);
    ToolProviders { asked, is_own }
}

/// A list of tools that a model may call.
struct ToolList {
    asked: Vec<String>,
    is_own: bool,
}

impl ToolList {
    /// Returns the node's own list, or else that of the graph if the node can ask a model. An empty text means no tools.
    fn read(key: Key<'_>, handler: &Handler, node: &Attributes, graph: &Attributes) -> Self {
        let own = node.get(key);
        let written = own.or_else(|| graph.get(key).filter(|_| handler.may_ask_model()));
        let list = written.map(|attribute| attribute.value.as_str()).unwrap_or_default();
        let asked: Vec<String> =
            list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let is_own = own.is_some() && !asked.is_empty();
        Self { asked, is_own }
    }
}

/// Reads the attributes that Glovebox writes on a parallel node whose branch is a child pipeline.
fn child(from: &Attributes, findings: &mut Findings<'_>) -> Option<Child> {
    let file = from.get(key::STACK_CHILD)?.value.clone();
    let keys = |key| {
        let list = from.get(key).map(|attribute| attribute.value.as_str()).unwrap_or_default();
        list.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Text::new).collect()
    };
    Some(Child {
        file,
        goal: from.get(key::STACK_CHILD_GOAL).map(|goal| goal.value.clone()).unwrap_or_default(),
        context_in: keys(key::STACK_CONTEXT_IN),
        context_out: keys(key::STACK_CONTEXT_OUT),
        steps_max: findings.count(from, key::STACK_CHILD_MAX_STEPS, 1).map(u64::from),
        supervision: supervision(from, findings),
    })
}

fn supervision(from: &Attributes, findings: &mut Findings<'_>) -> Option<Supervision> {
    let interval = findings.duration(from, key::MANAGER_POLL_INTERVAL)?;
    let stop = from.get(key::MANAGER_STOP_CONDITION).filter(|condition| !condition.value.trim().is_empty());
    let stop = stop.and_then(|written| match Condition::parse(&written.value, &findings.places(written)) {
        Ok(stop) => Some(stop),
        Err(fault) => {
            findings.push(fault);
            None
        }
    });
    Some(Supervision {
        interval,
        cycles_max: findings.count(from, key::MANAGER_MAX_CYCLES, 1).unwrap_or(CYCLES_DEFAULT),
        stop,
        steering: from.get(key::PROMPT).map(|prompt| prompt.value.clone()).filter(|text| !text.trim().is_empty()),
    })
}

/// Reports attributes that only Glovebox itself may write.
fn refuse_reserved(raw: &RawNode, findings: &mut Findings<'_>) {
    let attributes = RESERVED.iter().filter_map(|key| raw.attributes.get(*key));
    let end = raw.attributes.get(key::TYPE).filter(|name| name.value.trim() == CHILD_EXIT);
    for attribute in attributes.chain(end) {
        let message = "only Glovebox sets this attribute, on the stages that it inserts for a child pipeline";
        let found = Diagnostic::error("child_pipeline", message, attribute.key_span).with_node(raw.id.as_str());
        findings.push(found.with_help("remove it"));
    }
}

/// Returns the settings of a human gate.
fn gate(from: &Attributes, findings: &mut Findings<'_>) -> GateSettings {
    let default = from.get(key::HUMAN_DEFAULT_CHOICE).map(|attribute| attribute.value.trim());
    GateSettings {
        kind: findings.choice(from, key::HUMAN_TYPE, QUESTION_TYPES).unwrap_or_default(),
        default: default.filter(|text| !text.is_empty()).map(Text::new),
        timeout: findings.duration(from, key::HUMAN_TIMEOUT),
    }
}

/// Returns the shape and the handler of a node. The handler comes from `type`, or else from the shape.
fn resolve(raw: &mut RawNode) -> (Text, Handler) {
    let shape = Text::from(shape(raw));
    if let Some(written) = raw.attributes.get_mut(key::SHAPE).filter(|written| !written.value.is_empty()) {
        written.value.clone_from(&shape);
    }
    let handler = typed(raw).unwrap_or_else(|| handler::of_shape(&shape));
    let has_prompt = raw.attributes.get(key::PROMPT).is_some_and(|prompt| !prompt.value.trim().is_empty());
    let handler = handler::judged(handler, &shape, has_prompt);
    (shape, handler)
}

/// Returns the shape of a node. The first of these applies: the node's own known shape, the shape that its id implies,
/// any written or default shape, `box`. So a node `start` that is drawn as a circle is still a start (spec §7.2).
pub(super) fn shape(raw: &RawNode) -> &str {
    let written = raw.attributes.get(key::SHAPE).map(|shape| shape.value.as_str()).filter(|shape| !shape.is_empty());
    let decides = |shape: &&str| raw.own_shape && SHAPES.iter().any(|(known, _)| known == shape);
    written.filter(decides).or_else(|| handler::shape_of_id(&raw.id)).or(written).unwrap_or("box")
}

fn typed(raw: &RawNode) -> Option<Handler> {
    let name = raw.attributes.get(key::TYPE).map(|name| name.value.trim())?;
    (!name.is_empty()).then(|| handler::of_type(name))
}

/// Merges the node's own classes with those of its subgraphs, and stores the list in `class`.
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

/// Reads `type=exec` with its `command` as a tool stage, because other engines use that type (decision other-spellings).
fn read_exec(raw: &mut RawNode, findings: &mut Findings<'_>) {
    let Some(written) = raw.attributes.get(key::TYPE).filter(|written| written.value == "exec").cloned() else {
        return;
    };
    findings.push(Diagnostic::other_spelling("exec", "tool", written.span));
    raw.attributes.insert(key::TYPE, Attribute { value: Text::new_static("tool"), ..written });
    if raw.attributes.contains_key(key::TOOL_COMMAND) {
        return;
    }
    let Some(command) = raw.attributes.remove(key::COMMAND) else { return };
    findings.push(Diagnostic::other_spelling("command", "tool_command", command.key_span));
    raw.attributes.insert(key::TOOL_COMMAND, command);
}

/// Reads `script` as `tool_command`, because other engines use that key (decision other-spellings).
fn read_script(raw: &mut RawNode, handler: &Handler, findings: &mut Findings<'_>) {
    if handler.kind() != HandlerKind::Tool || raw.attributes.contains_key(key::TOOL_COMMAND) {
        return;
    }
    let Some(script) = raw.attributes.get(key::SCRIPT).filter(|script| !script.value.trim().is_empty()).cloned() else {
        return;
    };
    findings.push(Diagnostic::other_spelling("script", "tool_command", script.key_span));
    raw.attributes.insert(key::TOOL_COMMAND, script);
}

/// Reads the `mode` of a human gate as `human.type`, because another engine uses that key.
fn read_mode(raw: &mut RawNode, handler: &Handler, findings: &mut Findings<'_>) {
    if *handler != Handler::Human || raw.attributes.contains_key(key::HUMAN_TYPE) {
        return;
    }
    let is_type = |mode: &&Attribute| QUESTION_TYPES.iter().any(|(word, _)| *word == mode.value);
    let Some(mode) = raw.attributes.get(key::MODE).filter(is_type).cloned() else { return };
    findings.push(Diagnostic::other_spelling("mode", "human.type", mode.key_span));
    raw.attributes.insert(key::HUMAN_TYPE, mode);
}

/// Reads `stack.child_workflow` as `stack.child_dotfile`, because another engine uses that key.
fn read_child_file(raw: &mut RawNode, handler: &Handler, findings: &mut Findings<'_>) {
    let has_child = matches!(handler.kind(), HandlerKind::Subpipeline | HandlerKind::Manager);
    if !has_child || raw.attributes.contains_key(key::STACK_CHILD_DOTFILE) {
        return;
    }
    let Some(file) = raw.attributes.remove(key::STACK_CHILD_WORKFLOW) else { return };
    findings.push(Diagnostic::other_spelling("stack.child_workflow", "stack.child_dotfile", file.key_span));
    raw.attributes.insert(key::STACK_CHILD_DOTFILE, file);
}

/// Copies model settings of the graph to a node for which neither the node itself nor the style sheet sets them (spec §8.5).
pub(super) fn inherit_model(node: &mut Attributes, graph: &Attributes) {
    for key in crate::stylesheet::PROPERTIES {
        if let Some(attribute) = graph.get(key) {
            node.get_or_insert_with(key, || attribute.clone());
        }
    }
}
