//! The agents of which the operator asks for changes (decision no-change-is-a-failure). Decided with the plan, from what author and
//! operator wrote.

use crate::config::Config;
use crate::plan::Binding;
use glovebox_pipeline::ir::{Handler, HandlerKind, Node, NodeId, Pipeline};
use glovebox_record::no_change::NoChangeRule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the operator asks of agents that change nothing, and of which: those that may change something.
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
