//! The input of all rules: the pipeline, and its graph with indices instead of names.
//!
//! The input is built once for all rules, in time linear in the length of the file.

use super::unknown_keys::{UnknownKey, unknown_keys};
use crate::diagnostic::Diagnostic;
use crate::hash::HashMap;
use crate::ir::{Edge, Handler, Node, NodeId, Pipeline};
use crate::nearest::{certain, nearest};
use crate::reach::HoldoutReach;
use crate::span::Span;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed};
use std::cell::OnceCell;

/// Maximum number of names that get a suggestion. Each suggestion costs a search over all nodes.
const SUGGESTIONS_MAX: usize = 20;

/// A lowered pipeline, with the graph that the rules traverse.
pub struct LintContext<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// A graph node for each node in `pipeline.nodes`, with the same index, then one for each undeclared name that is
    /// not similar to a declared one. Graph edges are the edges of the file and jumps to retry targets. Undeclared
    /// names have graph nodes so that the nodes after a missing declaration are still reachable.
    pub(super) graph: DiGraph<(), Link>,
    /// Index of each declared node. The key is a `&str`, because a `&NodeId` would need one more memory access for each
    /// lookup.
    index: HashMap<&'a str, usize>,
    /// Indices of the outgoing edges of each declared node.
    outgoing: Vec<Vec<usize>>,
    /// Undeclared names in edges, each with the declared name that the author probably meant.
    pub(super) meant: HashMap<&'a NodeId, &'a NodeId>,
    undeclared: HashMap<&'a NodeId, NodeIndex>,
    /// True if the file or the caller says that the run has hold-outs.
    pub(super) has_holdouts: bool,
    /// Which hold-outs verifiers have in reach, if the run has any.
    pub(super) reach: HoldoutReach,
    unknown_keys: OnceCell<Vec<UnknownKey<'a>>>,
}

/// The origin of an edge of `graph`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// The edge of the file with this index.
    Edge(usize),
    /// A jump to a `retry_target`.
    Jump,
    /// An edge of the file that names an undeclared node, connected to the node that it probably means.
    Meant,
}

impl<'a> LintContext<'a> {
    /// Builds the graph and the indices of a pipeline.
    pub fn new(pipeline: &'a Pipeline) -> Self {
        let index = pipeline.nodes.iter().enumerate().map(|(number, node)| (node.id.as_str(), number)).collect();
        let mut graph = DiGraph::with_capacity(pipeline.nodes.len(), pipeline.edges.len());
        pipeline.nodes.iter().for_each(|_| {
            graph.add_node(());
        });
        let outgoing = vec![Vec::new(); pipeline.nodes.len()];
        let (meant, undeclared) = (HashMap::default(), HashMap::default());
        let (has_holdouts, reach) = (pipeline.has_scenarios(), HoldoutReach::new(pipeline));
        let unknown_keys = OnceCell::new();
        let mut context =
            Self { pipeline, graph, index, outgoing, meant, undeclared, has_holdouts, reach, unknown_keys };
        context.add_edges();
        context.add_jumps();
        context
    }

    fn add_edges(&mut self) {
        let pipeline = self.pipeline;
        for (number, edge) in pipeline.edges.iter().enumerate() {
            let (from, from_is_declared) = self.resolve(&edge.from);
            let (to, to_is_declared) = self.resolve(&edge.to);
            if from_is_declared {
                self.outgoing[from.index()].push(number);
            }
            let link = if from_is_declared && to_is_declared { Link::Edge(number) } else { Link::Meant };
            self.graph.add_edge(from, to, link);
        }
    }

    fn add_jumps(&mut self) {
        let pipeline = self.pipeline;
        for (from, node) in pipeline.nodes.iter().enumerate() {
            for target in [&node.routing.retry_target, &node.routing.fallback_retry_target].into_iter().flatten() {
                self.add_jump(from, target);
            }
        }
        // From an exit, an unsatisfied goal gate leads to the retry targets of the graph.
        let exits: Vec<usize> =
            (0..pipeline.nodes.len()).filter(|node| pipeline.nodes[*node].handler == Handler::Exit).collect();
        for target in [&pipeline.retry_target, &pipeline.fallback_retry_target].into_iter().flatten() {
            for exit in &exits {
                self.add_jump(*exit, target);
            }
        }
    }

    fn add_jump(&mut self, from: usize, target: &NodeId) {
        if let Some(to) = self.index(target) {
            self.graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), Link::Jump);
        }
    }

    /// Returns each key that is not known on its kind of element, once for each kind.
    pub(super) fn unknown_keys(&self) -> &[UnknownKey<'a>] {
        self.unknown_keys.get_or_init(|| unknown_keys(self.pipeline))
    }

    /// Returns the index of a declared node.
    pub(super) fn index(&self, id: &NodeId) -> Option<usize> {
        self.index.get(id.as_str()).copied()
    }

    /// Returns the graph node for a name, and whether the name is declared. For an undeclared name, that is the node that the
    /// name probably means, or a new node.
    fn resolve(&mut self, id: &'a NodeId) -> (NodeIndex, bool) {
        if let Some(index) = self.index(id) {
            return (NodeIndex::new(index), true);
        }
        if let Some(node) = self.undeclared.get(id) {
            return (*node, false);
        }
        let nodes = &self.pipeline.nodes;
        let names = || nodes.iter().map(|node| node.id.as_str());
        let found = if self.undeclared.len() < SUGGESTIONS_MAX { nearest(id.as_str(), names()) } else { None };
        let node = match found.and_then(|found| names().position(|name| name == found)) {
            Some(number) => {
                self.meant.insert(id, &nodes[number].id);
                NodeIndex::new(number)
            }
            None => self.graph.add_node(()),
        };
        self.undeclared.insert(id, node);
        (node, false)
    }

    /// Adds a fix that replaces the name by the declared one, if that is certain. A guess must not change the route of a run.
    pub(super) fn with_certain_name(&self, finding: Diagnostic, span: Span, name: &NodeId) -> Diagnostic {
        match certain(name.as_str(), self.pipeline.nodes.iter().map(|node| node.id.as_str())) {
            Some(meant) => finding.with_fix(span, meant),
            None => finding,
        }
    }

    /// Returns true if every edge connects declared nodes.
    pub(super) fn has_declared_ends(&self) -> bool {
        self.undeclared.is_empty()
    }

    /// Returns the edges of the file that lead to the node with this index.
    pub(super) fn incoming(&self, node: usize) -> impl Iterator<Item = &'a Edge> {
        let edges = &self.pipeline.edges;
        let links = self.graph.edges_directed(NodeIndex::new(node), Direction::Incoming);
        links.filter_map(move |link| match link.weight() {
            Link::Edge(number) => Some(&edges[*number]),
            Link::Jump | Link::Meant => None,
        })
    }

    /// Returns true for a graph node that the file declares.
    pub(super) fn is_declared(&self, node: NodeIndex) -> bool {
        node.index() < self.pipeline.nodes.len()
    }

    /// Returns the declared node with this name.
    pub(super) fn node(&self, id: &NodeId) -> Option<&'a Node> {
        self.index(id).map(|index| &self.pipeline.nodes[index])
    }

    /// Returns the outgoing edges of the node with this index, in file order.
    pub(super) fn outgoing(&self, node: usize) -> impl Iterator<Item = &'a Edge> + Clone {
        let edges = &self.pipeline.edges;
        self.outgoing[node].iter().map(move |number| &edges[*number])
    }

    /// Returns the indices of the nodes with this handler.
    pub(super) fn numbers_with(&self, handler: &'static Handler) -> impl Iterator<Item = usize> {
        let numbered = self.pipeline.nodes.iter().enumerate().filter(move |(_, node)| node.handler == *handler);
        numbered.map(|(number, _)| number)
    }

    /// Returns the nodes with this handler, in file order.
    pub(super) fn with_handler(&self, handler: &'static Handler) -> impl Iterator<Item = &'a Node> {
        self.pipeline.nodes.iter().filter(move |node| node.handler == *handler)
    }

    /// Returns the nodes whose handler does work, whether or not this version can execute it.
    pub(super) fn working(&self) -> impl Iterator<Item = (usize, &'a Node)> {
        let is_native = |node: &Node| matches!(node.handler, Handler::Human | Handler::Unavailable(_));
        let works = move |node: &Node| node.handler.component().is_some() || is_native(node);
        self.pipeline.nodes.iter().enumerate().filter(move |(_, node)| works(node))
    }

    /// Returns, for each node, whether a path of edges and jumps leads to it from the start.
    pub(super) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.graph.node_count()];
        for start in self.with_handler(&Handler::Start) {
            let Some(start) = self.index(&start.id) else { continue };
            let mut walk = Dfs::new(&self.graph, NodeIndex::new(start));
            while let Some(node) = walk.next(&self.graph) {
                reached[node.index()] = true;
            }
        }
        reached
    }

    /// Returns, for each node, whether a path of edges and jumps leads from it to an exit.
    pub(super) fn leading_out(&self) -> Vec<bool> {
        let mut leading = vec![false; self.graph.node_count()];
        let backwards = Reversed(&self.graph);
        let mut walk = Dfs::empty(backwards);
        for (index, node) in self.pipeline.nodes.iter().enumerate() {
            if node.handler != Handler::Exit {
                continue;
            }
            walk.move_to(NodeIndex::new(index));
            while let Some(node) = walk.next(backwards) {
                leading[node.index()] = true;
            }
        }
        leading
    }
}
