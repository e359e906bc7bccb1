//! Decides which agents must change something (decision no-change-is-a-failure). This is decided together with the plan, from
//! what author and operator wrote.

use crate::config::Config;
use crate::plan::Binding;
use glovebox_pipeline::ir::{Handler, HandlerKind, Node, NodeId, Pipeline};
use glovebox_record::no_change::NoChangeRule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the operator's rule for agents that change nothing. It applies to the agents that may write. `None` if the
/// operator sets no rule, or no agent may write.
pub(super) fn rule(
    config: &Config,
    pipeline: &Pipeline,
    bindings: &BTreeMap<NodeId, Arc<Binding>>,
) -> Option<NoChangeRule> {
    let setting = config.verify.as_ref()?.no_change?;
    let is_agent =
        |node: &&Node| node.handler.kind() == HandlerKind::Codergen && matches!(node.handler, Handler::Component(_));
    let may_write = |node: &&Node| bindings.get(&node.id).is_some_and(|binding| binding.scope.may_write());
    let nodes = pipeline.nodes.iter().filter(is_agent).filter(may_write).map(|node| node.id.clone()).collect();
    Some(NoChangeRule { setting, nodes }).filter(|rule| !rule.nodes.is_empty())
}
