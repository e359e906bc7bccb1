//! One node. Its settings are grouped by who enforces them.

use super::{
    Access, AgentSettings, Checks, Child, GateSettings, Handler, HandlerKind, NodeBounds, NodeId, ParallelSettings,
    Role, Routing, Text,
};
use crate::keyed::Attributes;
use crate::span::Span;

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The displayed text; the id by default.
    pub label: Text,
    /// The Graphviz shape, `box` by default.
    pub shape: Text,
    /// Its behaviour.
    pub handler: Handler,
    /// Its role in the run; none if no component executes it.
    pub role: Option<Role>,
    /// The instruction with `$goal` expanded; the label by default for codergen (spec §2.6).
    pub prompt: Option<Text>,
    /// The routing after its attempts.
    pub routing: Routing,
    /// Its resource limits.
    pub bounds: NodeBounds,
    /// Its access to files, commands and the network.
    pub access: Access,
    /// The requirements for its success.
    pub checks: Checks,
    /// The settings of its agent.
    pub agent: AgentSettings,
    /// The settings of its question, if it is a human gate.
    pub gate: GateSettings,
    /// The settings of its branches, if it is a parallel node or a fan-in.
    pub parallel: ParallelSettings,
    /// The child pipeline whose stages are the branch of this node.
    pub child: Option<Box<Child>>,
    /// The node that runs the child pipeline that this node belongs to; none for a node of the file itself.
    pub child_of: Option<NodeId>,
    /// Class names, its own and those of its subgraphs.
    pub classes: Vec<String>,
    /// Every attribute, defaults included, by key.
    pub attributes: Attributes,
    /// The span of its first mention.
    pub span: Span,
}

impl Node {
    /// The node, and its verification if it has one.
    pub fn stages(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(self).chain(self.checks.verification.as_deref())
    }

    /// Its name in its own file: a node of a child pipeline has that of the node that runs the child in front.
    pub fn own_name(&self) -> &str {
        let owner = self.child_of.as_ref().map_or("", NodeId::as_str);
        let inside = self.id.as_str().strip_prefix(owner).and_then(|rest| rest.strip_prefix("__"));
        inside.filter(|_| self.child_of.is_some()).unwrap_or(self.id.as_str())
    }

    /// True if it runs a child pipeline whose stages are not part of the pipeline yet.
    pub fn wants_child(&self) -> bool {
        matches!(self.handler, Handler::Unavailable(_))
            && matches!(self.handler.kind(), HandlerKind::Subpipeline | HandlerKind::Manager)
    }

    /// True for a builder: hold-outs test its work, so it must not learn them.
    pub fn is_builder(&self) -> bool {
        self.role == Some(Role::Builder)
    }

    /// True for a verifier: it tests the work of builders and may have hold-outs in reach.
    pub fn is_verifier(&self) -> bool {
        self.role == Some(Role::Verifier)
    }
}
