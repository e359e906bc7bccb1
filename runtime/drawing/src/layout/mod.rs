//! A layered layout after Sugiyama, Tagawa and Toda: nodes in layers, links down from layer to layer.
//!
//! `links -directions-> ranks -layers-> order -across-> ports -route-> Placement`. Works in a turned world of its own: layers follow each other *along*
//! (`y`), nodes of a layer stand side by side *across* (`x`); which way that is on paper is decided by the caller. Knows sizes and
//! links, and nothing of pipelines. Every loop over sweeps is bounded, and links that would need too many bends go round the outside, so
//! that ten thousand nodes cost time in proportion.

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

/// A node as the layout sees it.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Room it takes: `width` across, `height` along.
    pub(crate) size: Size,
    /// Its outline around its centre.
    pub(crate) outline: Vec<Point>,
    /// How far from the middle of a side links may end: `width` at the top and bottom, `height` at the sides.
    pub(crate) reach: Size,
}

/// An edge as the layout sees it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Source.
    pub(crate) from: usize,
    /// Target.
    pub(crate) to: usize,
    /// Room its label takes; none without a label.
    pub(crate) label: Option<Size>,
    /// How much it wants to be short and straight; the main way has more than side ways.
    pub(crate) weight: u32,
    /// Long links to the same target with the same number share their way.
    pub(crate) bundle: u32,
}

/// What is to be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graph<'a> {
    /// Nodes.
    pub(crate) items: &'a [Item],
    /// Edges.
    pub(crate) links: &'a [Link],
    /// What gets a box around it.
    pub(crate) clusters: &'a [Cluster],
    /// The item to begin at.
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
    /// A shift between two nodes that is taken away by meeting in the middle.
    pub(crate) nearly: f64,
    /// Between a box and what stands beside it.
    pub(crate) outside: f64,
    /// Between what is in a box and its border, on either side.
    pub(crate) inside: (f64, f64),
}

/// Where everything is. The smallest coordinate of any of it is 0.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// Centres of the items.
    pub(crate) centres: Vec<Point>,
    /// The way of each link, from border to border.
    pub(crate) paths: Vec<Path>,
    /// Centre of each label.
    pub(crate) labels: Vec<Option<Point>>,
    /// Centre and size of the box of each cluster; none for one without.
    pub(crate) boxes: Vec<Option<(Point, Size)>>,
    /// Room that all of it takes.
    pub(crate) size: Size,
}

/// Places items, links and boxes.
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
