//! Sorts the nodes of a pipeline in the order in which a run visits them, whatever their order in the file.

use glovebox_pipeline::ir::{HandlerKind, Node, NodeId, Pipeline};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the nodes in topological order from the start; back edges are ignored. Unreachable nodes follow, and exits
/// are last.
pub fn nodes(pipeline: &Pipeline) -> Vec<&Node> {
    let mut targets: BTreeMap<&NodeId, Vec<&NodeId>> = BTreeMap::new();
    for edge in &pipeline.edges {
        targets.entry(&edge.from).or_default().push(&edge.to);
    }
    let mut seen = BTreeSet::from([&pipeline.start]);
    let (mut ended, mut open) = (Vec::new(), vec![&pipeline.start]);
    while let Some(node) = open.last().copied() {
        // The last edge is followed first, because the order is reversed below.
        match targets.get_mut(node).and_then(Vec::pop) {
            Some(target) if seen.insert(target) => open.push(target),
            Some(_) => {}
            None => ended.extend(open.pop()),
        }
    }
    let rank: BTreeMap<&NodeId, usize> = ended.into_iter().rev().enumerate().map(|(rank, node)| (node, rank)).collect();
    let mut nodes: Vec<&Node> = pipeline.nodes.iter().collect();
    nodes.sort_by_key(|node| {
        (node.handler.kind() == HandlerKind::Exit, rank.get(&node.id).copied().unwrap_or(usize::MAX))
    });
    nodes
}
