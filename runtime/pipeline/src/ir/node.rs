//! One node of a pipeline. Its settings are grouped by the part of Glovebox that enforces them.

use super::{
    Access, AgentSettings, Checks, Child, GateSettings, Handler, HandlerKind, NodeBounds, NodeId, ParallelSettings,
    Role, Routing, Text,
};
use crate::keyed::Attributes;
use crate::span::Span;
use glovebox_record::Need;
use std::sync::Arc;

/// One node of a pipeline.
#[derive(Debug, Clone)]
pub struct Node {
    /// Id of the node.
    pub id: NodeId,
    /// Displayed text; by default the id.
    pub label: Text,
    /// Shape in Graphviz; `box` by default.
    pub shape: Text,
    /// Behaviour of the node.
    pub handler: Handler,
    /// Role of the stage. `None` if no component executes the node.
    pub role: Option<Role>,
    /// Instruction for the model, with `$goal` replaced. For codergen, the default is the label (spec §2.6).
    pub prompt: Option<Text>,
    /// What follows an attempt of the node: retries and retry targets.
    pub routing: Routing,
    /// Resource limits of the node.
    pub bounds: NodeBounds,
    /// Access of the stage to files, commands and the network.
    pub access: Access,
    /// What the node needs for success.
    pub checks: Checks,
    /// Settings of the node's agent.
    pub agent: AgentSettings,
    /// Settings of the question, if the node is a human gate.
    pub gate: GateSettings,
    /// Settings of the branches, if the node is a parallel node or a fan-in.
    pub parallel: ParallelSettings,
    /// The child pipeline, if this is the parallel node whose only branch is that pipeline. `None` for other nodes.
    pub child: Option<Box<Child>>,
    /// The node that runs the child pipeline to which this node belongs. `None` for a node of the file itself.
    pub child_of: Option<NodeId>,
    /// What the machine of the stage must have, including what the graph asks for. `None` for nothing, and for a node that
    /// makes no attempts.
    pub need: Option<Arc<Need>>,
    /// Names of classes of the node and of its subgraphs.
    pub classes: Vec<String>,
    /// All attributes by key, including defaults.
    pub attributes: Attributes,
    /// Span of the first mention of the node in the file.
    pub span: Span,
}

impl Node {
    /// Returns the node, and its verification if it has one.
    pub fn stages(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(self).chain(self.checks.verification.as_deref())
    }

    /// Returns the name of the node in its own file. In the outer pipeline, the id of a child's node begins with the id
    /// of the node that runs the child.
    pub fn own_name(&self) -> &str {
        let owner = self.child_of.as_ref().map_or("", NodeId::as_str);
        let inside = self.id.as_str().strip_prefix(owner).and_then(|rest| rest.strip_prefix("__"));
        inside.filter(|_| self.child_of.is_some()).unwrap_or(self.id.as_str())
    }

    /// Returns true if the node or its verification makes attempts, which run on a machine.
    pub fn makes_attempts(&self) -> bool {
        self.stages().any(|stage| stage.handler.component().is_some())
    }

    /// Returns true if the node runs a child pipeline whose stages are not part of this pipeline yet.
    pub fn wants_child(&self) -> bool {
        matches!(self.handler, Handler::Unavailable(_))
            && matches!(self.handler.kind(), HandlerKind::Subpipeline | HandlerKind::Manager)
    }

    /// Returns true if the node may ask a model: it is an agent stage, or a plugin, for which the grants decide.
    pub fn asks_model(&self) -> bool {
        matches!(self.handler.kind(), HandlerKind::Codergen | HandlerKind::Plugin)
    }

    /// Returns true for a builder. Hold-outs test a builder's work, so the builder must not see them.
    pub fn is_builder(&self) -> bool {
        self.role == Some(Role::Builder)
    }

    /// Returns true for a verifier. It tests the work of builders and may see hold-outs.
    pub fn is_verifier(&self) -> bool {
        self.role == Some(Role::Verifier)
    }
}
