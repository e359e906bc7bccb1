//! Assigns the coordinates *along* (see [`super`]): the extent of each layer, the gaps between layers, and the overhang
//! of boxes over their layers.

use super::borders::ClusterBorder;
use super::clusters::Cluster;
use super::layers::LayerGraph;
use super::{Gaps, Point, Size};
use crate::geometry::at;

/// Maximum shift of a line in a gap that does not widen the gap.
const EASY_SHIFT: f64 = 80.0;
/// Growth of a gap for each unit of further shift, and the maximum growth.
const GROWTH: f64 = 0.12;
const GROWTH_MAX: f64 = 56.0;

/// The extent of a layer along.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Distance to the previous layer.
    pub(super) gap: f64,
}

/// The overhang of each cluster's box: before its first layer, and after its last layer.
pub(super) type Rooms = Vec<(f64, f64)>;

/// Returns the extent of every layer, and the overhangs of clusters.
pub(super) fn bands(layered: &LayerGraph, clusters: &[Cluster], xs: &[f64], gaps: &Gaps) -> (Vec<Band>, Rooms) {
    let mut own: Rooms = clusters.iter().map(|cluster| (cluster.before, cluster.after)).collect();
    let rooms = rooms(layered, &own);
    let bands = spaced(layered, &rooms, xs, gaps);
    if layered.clusters.is_empty() {
        return (bands, rooms);
    }
    // A box that is too short for its title is extended after its last layer.
    for (cluster, layers) in layered.clusters.all() {
        let (before, after) = rooms[cluster];
        let along = bands[*layers.end()].bottom + after - bands[*layers.start()].top + before;
        own[cluster].1 += (clusters[cluster].along_min - along).max(0.0);
    }
    let rooms = self::rooms(layered, &own);
    (spaced(layered, &rooms, xs, gaps), rooms)
}

/// Returns the overhang of each cluster, including that of the clusters inside it.
fn rooms(layered: &LayerGraph, own: &Rooms) -> Rooms {
    let mut rooms = own.clone();
    for (cluster, layers) in layered.clusters.all().rev() {
        let Some(parent) = layered.clusters.parent(cluster) else { continue };
        let around = layered.clusters.layers(parent);
        if around.start() == layers.start() {
            rooms[parent].0 = rooms[parent].0.max(own[parent].0 + rooms[cluster].0);
        }
        if around.end() == layers.end() {
            rooms[parent].1 = rooms[parent].1.max(own[parent].1 + rooms[cluster].1);
        }
    }
    rooms
}

fn spaced(layered: &LayerGraph, rooms: &Rooms, xs: &[f64], gaps: &Gaps) -> Vec<Band> {
    let mut above = vec![0.0_f64; layered.layers.len() + 1];
    let mut below = vec![0.0_f64; layered.layers.len() + 1];
    for (cluster, layers) in layered.clusters.all() {
        above[*layers.start()] = above[*layers.start()].max(rooms[cluster].0);
        below[layers.end() + 1] = below[layers.end() + 1].max(rooms[cluster].1);
    }
    let mut shifts = vec![0.0_f64; layered.layers.len()];
    for segment in &layered.segments {
        let layer = layered.vertices[segment.lower].layer;
        shifts[layer] = shifts[layer].max((xs[segment.lower] - xs[segment.upper]).abs());
    }
    let mut bands: Vec<Band> = Vec::with_capacity(shifts.len());
    for (layer, vertices) in layered.layers.iter().enumerate() {
        let is_label = |layer: usize| layered.is_label_layer.get(layer).is_some_and(|is_label| *is_label);
        let gap = match (layer > 0 && is_label(layer - 1), is_label(layer)) {
            (true, _) => gaps.label_before,
            (_, true) => gaps.label_after,
            _ => gaps.layers,
        };
        let gap = gap + ((shifts[layer] - EASY_SHIFT) * GROWTH).clamp(0.0, GROWTH_MAX);
        let height = vertices.iter().map(|vertex| layered.vertices[*vertex].size.height).fold(0.0, f64::max);
        let gap = gap + above[layer] + below[layer];
        let top = bands.last().map_or(0.0, |before| before.bottom + gap);
        bands.push(Band { top, bottom: top + height, gap });
    }
    bands
}

/// Returns the boxes of clusters.
pub(super) fn boxes(layered: &LayerGraph, bands: &[Band], rooms: &Rooms, xs: &[f64]) -> Vec<Option<(Point, Size)>> {
    let place = |(cluster, border): (usize, &Option<ClusterBorder>)| {
        let border = border.as_ref()?;
        let (left, right) = (xs[border.left[0]], xs[border.right[0]]);
        let (top, bottom) =
            (bands[border.first].top - rooms[cluster].0, bands[border.last()].bottom + rooms[cluster].1);
        let size = Size { width: right - left, height: bottom - top };
        Some((at((left + right) / 2.0, (top + bottom) / 2.0), size))
    };
    layered.borders.iter().enumerate().map(place).collect()
}
