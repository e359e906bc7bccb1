//! Limits that a pipeline sets to its own work. With a raised or removed limit, a run continues for longer.

use glovebox_pipeline::ir::{NodeId, Pipeline, SIGNATURE_LIMIT_DEFAULT};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A limit of the graph or of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bound {
    /// The node. `None` for the graph.
    node: Option<NodeId>,
    /// The name of the attribute.
    name: &'static str,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "node `{node}`: `{}`", self.name),
            None => write!(f, "the run: `{}`", self.name),
        }
    }
}

/// The limits that are set, and their values: milliseconds, millionths of a US dollar, or a count.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    values: BTreeMap<Bound, u64>,
    nodes: BTreeSet<NodeId>,
}

impl Bounds {
    pub(super) fn from_pipeline(pipeline: &Pipeline) -> Self {
        let of_graph = [
            ("max_restarts", u64::from(pipeline.restarts.most)),
            ("loop_restart_signature_limit", u64::from(pipeline.signature_limit.unwrap_or(SIGNATURE_LIMIT_DEFAULT))),
        ];
        let of_graph = of_graph.map(|(name, most)| (Bound { node: None, name }, most));
        let of_nodes = pipeline.nodes.iter().flat_map(|node| {
            let values = [
                ("max_visits", node.bounds.visits_max.map(u64::from)),
                ("max_steps", node.bounds.steps_max),
                ("max_wall_time", node.bounds.wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))),
                ("max_tokens", node.bounds.spend_max.tokens_max),
                ("max_budget_usd", node.bounds.spend_max.cost_max.map(|most| most.0)),
            ];
            let bound = |name| Bound { node: Some(node.id.clone()), name };
            values.into_iter().filter_map(move |(name, most)| Some((bound(name), most?)))
        });
        let nodes = pipeline.nodes.iter().map(|node| node.id.clone()).collect();
        Self { values: of_graph.into_iter().chain(of_nodes).collect(), nodes }
    }

    /// Returns the values that this pipeline has for the limits of another pipeline. Limits of nodes that no longer exist are
    /// skipped. The value is `None` for a removed limit.
    pub(super) fn instead_of<'a>(&'a self, others: &'a Bounds) -> impl Iterator<Item = (Bound, Option<u64>)> + 'a {
        // The graph of every plan has these limits.
        let is_there = |bound: &Bound| match &bound.node {
            Some(node) => self.nodes.contains(node),
            None => self.values.contains_key(bound),
        };
        let kept = others.values.keys().filter(move |bound| is_there(bound));
        kept.map(|bound| (bound.clone(), self.values.get(bound).copied()))
    }

    /// Returns true if this pipeline has at least this value of the limit, or has no limit.
    pub(super) fn allow(&self, bound: &Bound, most: Option<u64>) -> bool {
        let own = self.values.get(bound).copied().unwrap_or(u64::MAX);
        own >= most.unwrap_or(u64::MAX)
    }
}
