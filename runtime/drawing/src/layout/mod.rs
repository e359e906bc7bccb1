//! A layered layout after Sugiyama, Tagawa and Toda: nodes in layers, with links down from layer to layer.
//!
//! `links -directions-> ranks -layers-> order -across-> ports -route-> Placement`. The coordinates do not depend on
//! `rankdir`: layers follow each other *along* (`y`), the nodes of a layer are next to each other *across* (`x`), and
//! the caller rotates the result. The layout knows sizes and links, but no pipelines. The number of sweeps is bounded,
//! and links that would need too many dummy vertices are routed around the outside, so the time is approximately
//! proportional to the size of the graph.

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
    /// Size of the node: `width` across, `height` along.
    pub(crate) size: Size,
    /// Outline of the node, relative to its centre.
    pub(crate) outline: Vec<Point>,
    /// Maximum distance of a link's end from the middle of a side: `width` at the top and bottom, `height` at the left
    /// and right.
    pub(crate) reach: Size,
}

/// An edge in the input of the layout.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Index of the source.
    pub(crate) from: usize,
    /// Index of the target.
    pub(crate) to: usize,
    /// Size of the label; `None` if the link has none.
    pub(crate) label: Option<Size>,
    /// Weight of the link. A link with a higher weight is shorter and straighter. Links of the main path have a higher
    /// weight.
    pub(crate) weight: u32,
    /// Long links to the same target with the same `bundle` share their path.
    pub(crate) bundle: u32,
}

/// The input of the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graph<'a> {
    /// The nodes.
    pub(crate) items: &'a [Item],
    /// The links.
    pub(crate) links: &'a [Link],
    /// The clusters, which get a box.
    pub(crate) clusters: &'a [Cluster],
    /// Index of the node at which the search for back edges begins.
    pub(crate) root: usize,
}

/// Distances, in the unit of the sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gaps {
    /// Distance between two nodes of a layer.
    pub(crate) items: f64,
    /// Distance between a node and a line next to it.
    pub(crate) beside: f64,
    /// Distance between two lines.
    pub(crate) lines: f64,
    /// Distance between a layer of nodes and the next layer.
    pub(crate) layers: f64,
    /// Distance between a layer of nodes and the labels below it.
    pub(crate) label_after: f64,
    /// Distance between labels and the layer of nodes below them, where arrows end.
    pub(crate) label_before: f64,
    /// Distance between the ends of two links at one node.
    pub(crate) ports: f64,
    /// Width of a loop next to its label.
    pub(crate) loop_width: f64,
    /// Maximum shift between two nodes for which their link is a straight line between the middles of the nodes.
    pub(crate) nearly: f64,
    /// Distance between a box and its neighbours.
    pub(crate) outside: f64,
    /// Distance between the content of a box and its border, at the left and right.
    pub(crate) inside: (f64, f64),
}

/// The result of the layout. The smallest coordinate is 0.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// Centres of the nodes.
    pub(crate) centres: Vec<Point>,
    /// The path of each link, from border to border.
    pub(crate) paths: Vec<Path>,
    /// Centre of each label; `None` for a link without a label.
    pub(crate) labels: Vec<Option<Point>>,
    /// Centre and size of each cluster's box; `None` for a cluster without a box.
    pub(crate) boxes: Vec<Option<(Point, Size)>>,
    /// Size of the whole layout.
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
