//! A layered layout after Sugiyama, Tagawa and Toda: nodes in layers, with links down from layer to layer.
//!
//! `links -directions-> ranks -layers-> order -across-> ports -route-> Placement`. Its coordinates do not depend on `rankdir`:
//! layers follow each other *along* (`y`), nodes of a layer are side by side *across* (`x`), and the caller turns the result. It knows
//! sizes and links, and nothing of pipelines. The number of sweeps is bounded, and links that would need too many bends go round the outside, so that the time is about
//! proportional to the size.

mod across;
mod bands;
mod borders;
mod clusters;
mod cycles;
mod layers;
mod order;
mod ports;
mod ranks;
mod relax;
mod route;
mod sorter;

use super::geometry::{Path, Point, Size};
pub(crate) use clusters::Cluster;
pub(crate) use cycles::{EdgeDirection, edge_directions};
use layers::LayerGraph;

/// A node in the input of the layout.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its size: `width` across, `height` along.
    pub(crate) size: Size,
    /// Its outline around its centre.
    pub(crate) outline: Vec<Point>,
    /// The largest distance of a link's end from the middle of a side: `width` at the top and bottom, `height` at the sides.
    pub(crate) reach: Size,
}

/// An edge in the input of the layout.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Source.
    pub(crate) from: usize,
    /// Target.
    pub(crate) to: usize,
    /// The size of its label; none without a label.
    pub(crate) label: Option<Size>,
    /// The weight with which it wants to be short and straight; links of the main path have more.
    pub(crate) weight: u32,
    /// Long links to the same target with the same number share their path.
    pub(crate) bundle: u32,
}

/// The input of the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graph<'a> {
    /// Nodes.
    pub(crate) items: &'a [Item],
    /// Edges.
    pub(crate) links: &'a [Link],
    /// The clusters, which get a box.
    pub(crate) clusters: &'a [Cluster],
    /// The item at which the walk begins.
    pub(crate) root: usize,
}

/// Distances, in the unit of the sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gaps {
    /// Between two nodes of a layer.
    pub(crate) items: f64,
    /// Between a node and a line beside it.
    pub(crate) beside: f64,
    /// Between two lines.
    pub(crate) lines: f64,
    /// Between a layer of nodes and the next.
    pub(crate) layers: f64,
    /// Between a layer of nodes and the labels below it.
    pub(crate) label_after: f64,
    /// Between labels and the layer of nodes below them: an arrow ends there.
    pub(crate) label_before: f64,
    /// Between the ends of two links at one node.
    pub(crate) ports: f64,
    /// Width of a loop beside its label.
    pub(crate) loop_width: f64,
    /// The largest shift between two nodes that a link bridges with a straight line between their middles.
    pub(crate) nearly: f64,
    /// Between a box and its neighbours.
    pub(crate) outside: f64,
    /// Between the content of a box and its border, on either side.
    pub(crate) inside: (f64, f64),
}

/// The result of the layout. The smallest coordinate is 0.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// Centres of the items.
    pub(crate) centres: Vec<Point>,
    /// The path of each link, from border to border.
    pub(crate) paths: Vec<Path>,
    /// Centre of each label.
    pub(crate) labels: Vec<Option<Point>>,
    /// Centre and size of the box of each cluster; none for one without.
    pub(crate) boxes: Vec<Option<(Point, Size)>>,
    /// The size of the whole.
    pub(crate) size: Size,
}

/// Computes the layout of a graph.
pub(crate) fn place(graph: &Graph<'_>, gaps: &Gaps) -> Placement {
    let Graph { items, links, root, .. } = *graph;
    let directions = edge_directions(items.len(), links, root);
    let ranks = ranks::ranks(items.len(), links, &directions);
    let mut layered = LayerGraph::new(graph, &directions, &ranks, gaps);
    order::order(&mut layered);
    layered.add_borders();
    let xs = across::positions(&layered, gaps);
    route::route(&layered, graph, &xs, gaps)
}
