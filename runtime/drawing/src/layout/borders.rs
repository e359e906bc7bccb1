//! Adds the borders of boxes as vertices: one at each side of a cluster in each layer that the cluster covers, in a
//! straight line.
//!
//! Other vertices keep a distance from the borders, which reserves the space of a box in every layer.

use super::Gaps;
use super::across::distance;
use super::layers::{BORDER_WEIGHT, LayerGraph, Segment, Side, VertexKind};
use crate::geometry::Size;

/// The vertices at the two sides of a cluster, for each of its layers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterBorder {
    /// The first layer.
    pub(crate) first: usize,
    pub(crate) left: Vec<usize>,
    pub(crate) right: Vec<usize>,
}

impl ClusterBorder {
    /// Returns the last layer.
    pub(crate) fn last(&self) -> usize {
        self.first + self.left.len().max(1) - 1
    }
}

impl LayerGraph {
    /// Adds a placeholder to every layer in which a covering cluster has no vertex. The placeholder reserves the space
    /// of the cluster in that layer.
    pub(super) fn fill(&mut self) {
        if self.clusters.is_empty() {
            return;
        }
        let clusters = std::mem::take(&mut self.clusters);
        let mut held: Vec<Vec<Option<usize>>> = vec![Vec::new(); clusters.count()];
        clusters.all().for_each(|(cluster, layers)| held[cluster] = vec![None; layers.count()]);
        let hold = |held: &mut Vec<Vec<Option<usize>>>, cluster: Option<usize>, layer: usize, vertex: usize| {
            for cluster in clusters.around(cluster) {
                held[cluster][layer - clusters.layers(cluster).start()].get_or_insert(vertex);
            }
        };
        for (vertex, place) in self.vertices.iter().enumerate() {
            hold(&mut held, place.cluster, place.layer, vertex);
        }
        // Inner clusters come first, because their vertices also belong to the outer clusters.
        for (cluster, layers) in clusters.all().rev() {
            for layer in
                layers.clone().filter(|layer| held[cluster][layer - layers.start()].is_none()).collect::<Vec<_>>()
            {
                let blank = self.add(VertexKind::Blank, layer, Size::default(), None, Some(cluster));
                hold(&mut held, Some(cluster), layer, blank);
            }
            for pair in held[cluster].windows(2) {
                let &[Some(upper), Some(lower)] = pair else { continue };
                if [upper, lower].iter().any(|vertex| self.vertices[*vertex].kind == VertexKind::Blank) {
                    self.segments.push(Segment { upper, lower, weight: 0 });
                }
            }
        }
        self.clusters = clusters;
    }

    /// Adds the borders of all clusters to the ordered layers.
    pub(super) fn add_borders(&mut self) {
        if self.clusters.is_empty() {
            return;
        }
        let mut borders: Vec<Option<ClusterBorder>> = vec![None; self.clusters.count()];
        self.clusters.all().for_each(|(cluster, layers)| {
            borders[cluster] = Some(ClusterBorder { first: *layers.start(), ..ClusterBorder::default() });
        });
        for layer in 0..self.layers.len() {
            let before = std::mem::take(&mut self.layers[layer]);
            let mut open: Vec<usize> = Vec::new();
            let mut after: Vec<usize> = Vec::with_capacity(before.len());
            for vertex in before.into_iter().map(Some).chain([None]) {
                let around = self.clusters.around(vertex.and_then(|vertex| self.vertices[vertex].cluster));
                let same = open.iter().zip(&around).take_while(|(one, other)| one == other).count();
                for cluster in open.drain(same..).rev() {
                    let post = self.post(cluster, Side::Right, layer);
                    borders[cluster].iter_mut().for_each(|border| border.right.push(post));
                    after.push(post);
                }
                for &cluster in &around[same..] {
                    let post = self.post(cluster, Side::Left, layer);
                    borders[cluster].iter_mut().for_each(|border| border.left.push(post));
                    after.push(post);
                    open.push(cluster);
                }
                after.extend(vertex);
            }
            self.layers[layer] = after;
        }
        for border in borders.iter().flatten() {
            for pair in border.left.windows(2).chain(border.right.windows(2)) {
                self.segments.push(Segment { upper: pair[0], lower: pair[1], weight: BORDER_WEIGHT });
            }
        }
        self.borders = borders;
    }

    fn post(&mut self, cluster: usize, side: Side, layer: usize) -> usize {
        let parent = self.clusters.parent(cluster);
        let post = self.add(VertexKind::Border(side), layer, Size::default(), None, parent);
        self.layers[layer].pop();
        post
    }

    /// Returns the segments of links that cross a border, as upper and lower vertex. Links bend there.
    pub(super) fn breaches(&self) -> Vec<(usize, usize)> {
        if self.borders.iter().all(Option::is_none) {
            return Vec::new();
        }
        let mut goes_on = vec![(false, false); self.vertices.len()];
        for segment in self.segments.iter().filter(|segment| segment.weight == BORDER_WEIGHT) {
            goes_on[segment.upper].0 = true;
            goes_on[segment.lower].1 = true;
        }
        let mut passed = vec![(0, 0); self.vertices.len()];
        for layer in &self.layers {
            let mut counts = (0, 0);
            for &vertex in layer {
                passed[vertex] = counts;
                counts = (counts.0 + usize::from(goes_on[vertex].0), counts.1 + usize::from(goes_on[vertex].1));
            }
        }
        let pieces = self.segments.iter().filter(|segment| passed[segment.upper].0 != passed[segment.lower].1);
        pieces.map(|segment| (segment.upper, segment.lower)).collect()
    }

    /// Moves the borders inwards to their content, beginning with the innermost.
    pub(super) fn tighten(&self, gaps: &Gaps, xs: &mut [f64]) {
        if self.borders.iter().all(Option::is_none) {
            return;
        }
        let mut beside: Vec<[Option<usize>; 2]> = vec![[None; 2]; xs.len()];
        for pair in self.layers.iter().flat_map(|layer| layer.windows(2)) {
            beside[pair[0]][1] = Some(pair[1]);
            beside[pair[1]][0] = Some(pair[0]);
        }
        let apart = |one: usize, other: usize| distance(&self.vertices[one], &self.vertices[other], gaps);
        for (cluster, border) in self.borders.iter().enumerate().rev() {
            let Some(border) = border else { continue };
            let (old_left, old_right) = (xs[border.left[0]], xs[border.right[0]]);
            let next = border.left.iter().filter_map(|post| beside[*post][1].map(|next| xs[next] - apart(*post, next)));
            let before =
                border.right.iter().filter_map(|post| beside[*post][0].map(|next| xs[next] + apart(next, *post)));
            let mut left = next.fold(old_right, f64::min).max(old_left);
            let mut right = before.fold(old_left, f64::max).min(old_right);
            let lacking = (self.across_min[cluster] - (right - left)).max(0.0);
            left = (left - lacking / 2.0).max(old_left);
            right = (left + self.across_min[cluster]).max(right).min(old_right);
            left = left.min(right - self.across_min[cluster]).max(old_left);
            border.left.iter().for_each(|post| xs[*post] = left);
            border.right.iter().for_each(|post| xs[*post] = right);
        }
    }
}
