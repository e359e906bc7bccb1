//! The rule about `requires_tool_success` and `required_tool_node` (decision required-tool-success): a node must have both or
//! neither, and `required_tool_node` must name a stage whose command can pass.
//!
//! A node with these attributes is executed only after that stage has passed in the run, so a wrong name would block
//! the node forever.

use super::rule_findings::RuleFindings;
use super::{LintContext, Rule};
use crate::diagnostic::Diagnostic;
use crate::ir::{Attribute, Handler, HandlerKind, Node, NodeId};
use crate::key::{self, Key};
use crate::nearest::nearest;

/// Maximum number of findings with a suggestion. Each suggestion costs a search over all names.
const SUGGESTIONS_MAX: usize = 20;

pub(super) fn required_tool_node(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    let mut suggestions = SUGGESTIONS_MAX;
    for node in &context.pipeline.nodes {
        if found.is_full() {
            break;
        }
        if let Some(problem) =
            ToolRequirement::from_node(node).and_then(|asks| asks.problem(rule, context, &mut suggestions))
        {
            found.push(problem.with_node(node.id.as_str()));
        }
    }
    found
}

/// A node that requires the success of a tool stage.
struct ToolRequirement<'a> {
    node: &'a Node,
    is_required: bool,
    /// The attribute that the finding shows.
    shown: (Key<'static>, &'a Attribute),
    named: Option<&'a Attribute>,
}

impl<'a> ToolRequirement<'a> {
    fn from_node(node: &'a Node) -> Option<Self> {
        let (asks, named) =
            (node.attributes.get(key::REQUIRES_TOOL_SUCCESS), node.attributes.get(key::REQUIRED_TOOL_NODE));
        let is_required = asks.is_some_and(|asks| asks.value.trim() == "true");
        let named = named.filter(|named| !named.value.trim().is_empty());
        let shown = match (asks.filter(|_| is_required), named) {
            (Some(asks), _) => (key::REQUIRES_TOOL_SUCCESS, asks),
            (None, Some(named)) => (key::REQUIRED_TOOL_NODE, named),
            (None, None) => return None,
        };
        Some(Self { node, is_required, shown, named })
    }

    fn problem(&self, rule: &Rule, context: &LintContext<'_>, suggestions: &mut usize) -> Option<Diagnostic> {
        let (id, (key, attribute)) = (&self.node.id, self.shown);
        let at_pair = |message: String| rule.found(message, attribute.key_span.to(attribute.span));
        if !works(self.node) {
            let handler = self.node.handler.name();
            let problem = at_pair(format!(
                "`{key}` is set on `{id}`, but a `{handler}` node does no work that could wait for a tool"
            ));
            return Some(problem.with_help("move it to the stage that must wait until the tool has passed"));
        }
        let Some(named) = self.named else {
            return Some(at_pair(format!("`{id}` has `{key}`, but no `required_tool_node`")));
        };
        if !self.is_required {
            return Some(at_pair(format!("`{id}` has `{key}`, but not `requires_tool_success=true`")));
        }
        let name = named.value.trim();
        let Some(tool) = context.pipeline.node(&NodeId::new(name)) else {
            let problem = rule.found(format!("`required_tool_node` names `{name}`, which is not declared"), named.span);
            *suggestions = suggestions.checked_sub(1)?;
            let meant = nearest(name, context.pipeline.nodes.iter().map(|node| node.id.as_str()));
            return Some(match meant {
                Some(meant) => problem.with_help(format!("did you mean `{meant}`?")),
                None => problem,
            });
        };
        let wrong = |what: String| Some(rule.found(format!("`required_tool_node` names {what}"), named.span));
        match is_tool(tool) {
            _ if tool.id == *id => wrong(format!("`{name}` itself, so the node would wait for itself and never work")),
            false => wrong(format!(
                "`{name}`, which is a `{}` node and has no command that proves anything",
                tool.handler.name()
            )),
            true => None,
        }
    }
}

/// Returns true for a node whose work is done by a component. A fan-in with a judge only chooses among finished work.
fn works(node: &Node) -> bool {
    matches!(node.handler, Handler::Component(_))
}

fn is_tool(node: &Node) -> bool {
    matches!(node.handler.kind(), HandlerKind::Tool | HandlerKind::Verify | HandlerKind::Verification)
}
