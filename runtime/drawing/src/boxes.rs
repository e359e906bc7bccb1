//! Selects the subgraphs that get a box, assigns nodes to the boxes, and positions the labels of the boxes.
//!
//! A subgraph gets a box if it has a label, or a name that begins with `cluster`, as in Graphviz. A node is in the
//! innermost box of the first subgraph that declares the node. Later declarations have no effect.

use super::direction::Direction;
use super::drawing::{DrawnBox, DrawnEdge, Line, Role};
use super::geometry::{Path, Point, Size, at};
use super::layout::Cluster;
use super::text::{one_line, width};
use glovebox_pipeline::ir::{Pipeline, Subgraph};

/// Distance between a border and the content of the box.
pub(super) const PAD: f64 = 14.0;
/// Height that is reserved for a label.
pub(super) const LABEL_ROOM: f64 = 14.0;
/// Distance between a border and the label.
const LABEL_PAD: f64 = 9.0;
/// Maximum width of a box's label.
const LABEL_LINE_MAX: f64 = 240.0;
/// Radius of a box's corners.
pub(super) const RADIUS: f64 = 8.0;
/// Maximum product of edges and boxes for which labels avoid edges.
const WORK_MAX: usize = 200_000;

/// Returns the boxes of a pipeline without positions, and the cluster of each box.
pub(crate) fn boxes(pipeline: &Pipeline) -> (Vec<DrawnBox>, Vec<Cluster>) {
    let (mut boxes, mut clusters): (Vec<DrawnBox>, Vec<Cluster>) = (Vec::new(), Vec::new());
    if pipeline.subgraphs.is_empty() {
        return (boxes, clusters);
    }
    // The box of each subgraph, or the innermost box around it if it has none.
    let mut box_of: Vec<Option<usize>> = Vec::with_capacity(pipeline.subgraphs.len());
    for (index, subgraph) in pipeline.subgraphs.iter().enumerate() {
        let parent = subgraph.parent.and_then(|parent| box_of[parent]);
        if !has_box(subgraph) {
            box_of.push(parent);
            continue;
        }
        box_of.push(Some(boxes.len()));
        clusters.push(Cluster { parent, ..Cluster::default() });
        boxes.push(unplaced(index, subgraph, parent.map_or(0, |parent| boxes[parent].depth + 1)));
    }
    let mut home: Vec<Option<usize>> = vec![None; pipeline.nodes.len()];
    for (subgraph, inner) in pipeline.subgraphs.iter().zip(box_of) {
        for &node in &subgraph.members {
            let is_within = |home: usize| {
                std::iter::successors(inner, |cluster| clusters[*cluster].parent).any(|cluster| cluster == home)
            };
            if home[node].is_none_or(is_within) {
                home[node] = inner;
            }
        }
    }
    for (node, home) in home.into_iter().enumerate() {
        home.into_iter().for_each(|home| clusters[home].items.push(node));
    }
    (boxes, clusters)
}

fn has_box(subgraph: &Subgraph) -> bool {
    subgraph.label.is_some() || subgraph.name.as_ref().is_some_and(|name| name.starts_with("cluster"))
}

fn unplaced(index: usize, subgraph: &Subgraph, depth: usize) -> DrawnBox {
    let label = one_line(subgraph.label.as_deref().unwrap_or_default());
    DrawnBox {
        subgraph: index,
        depth,
        centre: Point::default(),
        size: Size::default(),
        lines: Line::wrap(&label, LABEL_LINE_MAX, 1, Role::BoxLabel),
        title: if label.is_empty() { one_line(subgraph.name.as_deref().unwrap_or_default()) } else { label },
    }
}

/// Sets the space that each box needs around its content.
pub(super) fn measure(boxes: &[DrawnBox], clusters: &mut [Cluster], direction: Direction) {
    for (drawn, cluster) in boxes.iter().zip(clusters) {
        let label = label_size(drawn);
        let (above, least) = if drawn.lines.is_empty() { (PAD, 0.0) } else { (PAD + LABEL_ROOM, label.width) };
        (cluster.before, cluster.after, cluster.across_min, cluster.along_min) = match direction {
            Direction::Down => (above, PAD, least, 0.0),
            Direction::Up => (PAD, above, least, 0.0),
            Direction::Right | Direction::Left => (PAD, PAD, 0.0, least),
        };
    }
}

/// Returns the size of a box's label with its margins.
fn label_size(drawn: &DrawnBox) -> Size {
    let widest = drawn.lines.iter().map(|line| width(&line.text, line.role.size())).fold(0.0, f64::max);
    Size { width: (widest + 2.0 * LABEL_PAD).ceil(), height: LABEL_ROOM + 4.0 }
}

/// Positions the label of each box at its upper border, where the fewest edges pass. Among equal positions, the left
/// one is used.
pub(super) fn set_labels(boxes: &mut [DrawnBox], edges: &[DrawnEdge]) {
    let is_little = boxes.len() * edges.len() <= WORK_MAX;
    for drawn in boxes.iter_mut().filter(|drawn| !drawn.lines.is_empty()) {
        let label = label_size(drawn);
        let y = drawn.centre.y - drawn.size.height / 2.0 + 2.0 + label.height / 2.0;
        let room = ((drawn.size.width - label.width) / 2.0).max(0.0);
        let places = [-room, room, 0.0].map(|aside| at(drawn.centre.x + aside, y));
        let met = |place: &Point| edges.iter().filter(|edge| is_met(&edge.path, *place, label)).count();
        let place = if is_little { places.into_iter().min_by_key(met) } else { None }.unwrap_or(places[0]);
        for Line { at: middle, role, .. } in &mut drawn.lines {
            *middle = at(place.x, place.y + role.size() * 0.36);
        }
    }
}

/// Returns true if a path passes through a rectangle.
fn is_met(path: &Path, centre: Point, size: Size) -> bool {
    path.flat().windows(2).any(|pair| is_cut(pair[0], pair[1], centre, size))
}

/// Returns true if a straight line passes through a rectangle: the part of the line within the rectangle's width and
/// the part within its height overlap.
fn is_cut(from: Point, to: Point, centre: Point, size: Size) -> bool {
    let share = |from: f64, to: f64, middle: f64, half: f64| {
        let (low, high) = (middle - half - from, middle + half - from);
        match to - from {
            0.0 if low > 0.0 || high < 0.0 => (1.0, 0.0),
            0.0 => (0.0, 1.0),
            length => ((low / length).min(high / length).max(0.0), (low / length).max(high / length).min(1.0)),
        }
    };
    let across = share(from.x, to.x, centre.x, size.width / 2.0);
    let along = share(from.y, to.y, centre.y, size.height / 2.0);
    across.0.max(along.0) <= across.1.min(along.1)
}
