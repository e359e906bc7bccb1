//! Creates the separate stage, named `ID.verify`, that runs a node's `verify_command` (decision verify-command) or `verify_plugin`.
//!
//! The stage has the write scope of the node and the view of a verify stage. Settings of the agent (`read_paths`, `codex.*`,
//! hooks, its model) do not apply to the stage, so that a check can read a test that the agent must not read.

use super::reader::Findings;
use crate::attributes::{Carrier, is_known};
use crate::diagnostic::Diagnostic;
use crate::ir::holdouts::NodeHoldouts;
use crate::ir::{
    Access, AgentSettings, Attribute, Checks, Confinement, Handler, HandlerKind, Node, NodeBounds, Role, Routing,
};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use glovebox_record::spend::SpendBounds;
use std::time::Duration;

/// The attribute that names the handler of the verified node. Messages about a failure mention it.
const VERIFIES: Key<'static> = Key::new("verifies");
/// The handler of a verification with `verify_command`.
const HANDLER: &str = "verify";
/// Allows all commands within the grants (decision granted-agent-commands).
const ANY_COMMAND: &str = "*";
/// Timeout of a verification without `verify_timeout`, in seconds and as text.
const TIMEOUT_DEFAULT: (u64, &str) = (60, "60s");
/// Additional time of the stage, in which its component starts and stores the command's output.
const MARGIN: Duration = Duration::from_secs(5);
/// Attributes of the node that are copied to its verification, in addition to `env_*`.
const SHARED: [Key<'static>; 10] = [
    key::VERIFY_COMMAND,
    key::VERIFY_PLUGIN,
    key::WORKING_DIR,
    key::ALLOWED_WRITE_PATHS,
    key::HOLDOUTS,
    key::SCENARIO_FEEDBACK,
    key::SCENARIO_WRITES,
    key::VERIFY_SUBJECT,
    key::VERIFY_SUBJECT_PORT,
    key::CACHE_FROM,
];

/// Returns the verification of a node. `None` without `verify_command` and `verify_plugin`. Reports a verification that
/// could not run.
pub(super) fn lower(node: &Node, findings: &mut Findings<'_>) -> Option<Node> {
    let verifier = Verifier::new(node, findings)?;
    if let Some(help) = misplaced(&node.handler) {
        let (key, own) = (verifier.key(), verifier.attribute());
        let message = format!("`{}` is a `{}` node, which takes no `{key}`", node.id, node.handler.name());
        findings.push(found(node, own, message).with_help(help));
        return None;
    }
    Some(Node {
        id: node.id.verification(),
        handler: Handler::Component(verifier.handler().into()),
        role: Some(Role::Verifier),
        prompt: None,
        routing: Routing { auto_status: false, status_file: false, ..node.routing.clone() },
        bounds: bounds(node, findings),
        access: access(node, &verifier),
        checks: Checks::default(),
        agent: AgentSettings { session: node.agent.session.clone(), ..AgentSettings::default() },
        child: None,
        attributes: attributes(node, &verifier),
        ..node.clone()
    })
}

/// Returns the limits of the node, without the budget of its model calls and with the timeout of the verification.
fn bounds(node: &Node, findings: &mut Findings<'_>) -> NodeBounds {
    let timeout = findings.duration(&node.attributes, key::VERIFY_TIMEOUT);
    let timeout = timeout.unwrap_or(Duration::from_secs(TIMEOUT_DEFAULT.0)).saturating_add(MARGIN);
    NodeBounds { timeout: Some(timeout), spend_max: SpendBounds::default(), ..node.bounds.clone() }
}

fn access(node: &Node, verifier: &Verifier<'_>) -> Access {
    let Access { allowed_write_paths, confinement, holdouts, subject, .. } = node.access.clone();
    let Confinement { scratch, cache, cache_from, network, .. } = confinement;
    Access {
        allowed_write_paths,
        read_paths: None,
        allowed_commands: verifier.commands(),
        confinement: Confinement { scratch, cache, cache_from, network, ..Confinement::default() },
        holdouts: NodeHoldouts { allow_read: false, block_read: None, ..holdouts },
        subject,
    }
}

/// What verifies a node.
enum Verifier<'a> {
    /// `verify_command`: a command of the author.
    Command(&'a Attribute),
    /// `verify_plugin`: a component that the operator binds as a verifier.
    Plugin(&'a Attribute),
}

impl<'a> Verifier<'a> {
    fn new(node: &'a Node, findings: &mut Findings<'_>) -> Option<Self> {
        match (written(node, key::VERIFY_COMMAND), written(node, key::VERIFY_PLUGIN)) {
            (Some(_), Some(plugin)) => {
                let message = format!("`{}` has both `verify_command` and `verify_plugin`, expected one", node.id);
                findings.push(found(node, plugin, message).with_help("verify with a second stage after the node"));
                None
            }
            (Some(command), None) => Some(Self::Command(command)),
            (None, Some(plugin)) => Some(Self::Plugin(plugin)),
            (None, None) => {
                let timeout = written(node, key::VERIFY_TIMEOUT)?;
                let message =
                    format!("`{}` has `verify_timeout`, but neither `verify_command` nor `verify_plugin`", node.id);
                findings.push(found(node, timeout, message).with_help("add `verify_command`, or remove it"));
                None
            }
        }
    }

    fn key(&self) -> Key<'static> {
        match self {
            Self::Command(_) => key::VERIFY_COMMAND,
            Self::Plugin(_) => key::VERIFY_PLUGIN,
        }
    }

    fn attribute(&self) -> &'a Attribute {
        match self {
            Self::Command(attribute) | Self::Plugin(attribute) => attribute,
        }
    }

    /// Returns the allowed commands. A plugin may run what the operator grants; the node's own list is for its agent.
    fn commands(&self) -> Option<Vec<String>> {
        matches!(self, Self::Plugin(_)).then(|| vec![ANY_COMMAND.to_owned()])
    }

    fn handler(&self) -> &'a str {
        match self {
            Self::Command(_) => HANDLER,
            Self::Plugin(plugin) => plugin.value.trim(),
        }
    }
}

fn written<'a>(node: &'a Node, key: Key<'_>) -> Option<&'a Attribute> {
    node.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty())
}

fn found(node: &Node, at: &Attribute, message: String) -> Diagnostic {
    Diagnostic::error("verify_command_place", message, at.key_span.to(at.span)).with_node(node.id.as_str())
}

/// Returns what to do instead if a node cannot have a `verify_command`. `None` if it can.
pub(super) fn misplaced(handler: &Handler) -> Option<&'static str> {
    match handler {
        Handler::Exit | Handler::ChildExit | Handler::Conditional | Handler::FanIn(_) => None,
        Handler::Component(_) if matches!(handler.kind(), HandlerKind::Codergen | HandlerKind::Plugin) => None,
        Handler::Component(_) => Some(
            "its own command is the check; for a second check add a stage: `shape=octagon, command=\"cargo test\"`",
        ),
        _ => Some(
            "set it on an agent, a plugin, a diamond, a fan-in or an exit, or add a stage: `shape=octagon, command=\"cargo test\"`",
        ),
    }
}

/// Returns the attributes of the verification, including the handler of the node that is verified. A plugin also gets the node's
/// attributes that Glovebox does not know.
fn attributes(node: &Node, verifier: &Verifier<'_>) -> Attributes {
    let mut attributes = Attributes::new();
    let is_for_plugin = |key: Key<'_>| matches!(verifier, Verifier::Plugin(_)) && !is_known(key, Carrier::Node);
    let is_shared = |key: Key<'_>| SHARED.contains(&key) || key.as_str().starts_with("env_") || is_for_plugin(key);
    for (key, attribute) in node.attributes.iter().filter(|(key, _)| is_shared(*key)) {
        attributes.insert(key, attribute.clone());
    }
    if let Verifier::Command(command) = verifier {
        attributes.insert(key::COMMAND, (*command).clone());
    }
    attributes.insert(VERIFIES, Attribute { value: node.handler.name().into(), ..verifier.attribute().clone() });
    let timeout = written(node, key::VERIFY_TIMEOUT).cloned();
    let by_default = || Attribute { value: TIMEOUT_DEFAULT.1.into(), ..verifier.attribute().clone() };
    attributes.insert(key::TIMEOUT, timeout.unwrap_or_else(by_default));
    attributes
}
