//! The borders of boxes as vertices of their own: one at each side of a nest in each layer it covers, straight one below the other.
//!
//! What stands beside keeps its distance from them like from anything else, so that a box has its place kept in every layer.

use super::Gaps;
use super::across::distance;
use super::layers::{FENCE_PULL, Kind, Layered, Segment, Side};
use crate::draw::geometry::Size;

/// The vertices at the two sides of a nest, for each of its layers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fence {
    /// The first layer.
    pub(crate) first: usize,
    pub(crate) left: Vec<usize>,
    pub(crate) right: Vec<usize>,
}

impl Fence {
    /// The last layer.
    pub(crate) fn last(&self) -> usize {
        self.first + self.left.len().max(1) - 1
    }
}

impl Layered {
    /// Puts something into every layer that a nest covers and has nothing in, so that its place is kept there too.
    pub(super) fn fill(&mut self) {
        if self.nests.is_empty() {
            return;
        }
        let nests = std::mem::take(&mut self.nests);
        let mut held: Vec<Vec<Option<usize>>> = vec![Vec::new(); nests.count()];
        nests.all().for_each(|(nest, layers)| held[nest] = vec![None; layers.count()]);
        let hold = |held: &mut Vec<Vec<Option<usize>>>, nest: Option<usize>, layer: usize, vertex: usize| {
            for nest in nests.around(nest) {
                held[nest][layer - nests.layers(nest).start()].get_or_insert(vertex);
            }
        };
        for (vertex, place) in self.vertices.iter().enumerate() {
            hold(&mut held, place.nest, place.layer, vertex);
        }
        // What is within comes first, and counts for what is around it.
        for (nest, layers) in nests.all().rev() {
            for layer in layers.clone().filter(|layer| held[nest][layer - layers.start()].is_none()).collect::<Vec<_>>()
            {
                let blank = self.add(Kind::Blank, layer, Size::default(), None, Some(nest));
                hold(&mut held, Some(nest), layer, blank);
            }
            for pair in held[nest].windows(2) {
                let &[Some(upper), Some(lower)] = pair else { continue };
                if [upper, lower].iter().any(|vertex| self.vertices[*vertex].kind == Kind::Blank) {
                    self.segments.push(Segment { upper, lower, pull: 0 });
                }
            }
        }
        self.nests = nests;
    }

    /// Puts the borders of all nests into the layers, which are in order.
    pub(super) fn fence(&mut self, gaps: &Gaps) {
        if self.nests.is_empty() {
            return;
        }
        let mut fences: Vec<Option<Fence>> = vec![None; self.nests.count()];
        self.nests.all().for_each(|(nest, layers)| {
            fences[nest] = Some(Fence { first: *layers.start(), ..Fence::default() });
        });
        for layer in 0..self.layers.len() {
            let before = std::mem::take(&mut self.layers[layer]);
            let mut open: Vec<usize> = Vec::new();
            let mut after: Vec<usize> = Vec::with_capacity(before.len());
            for vertex in before.into_iter().map(Some).chain([None]) {
                let around = self.nests.around(vertex.and_then(|vertex| self.vertices[vertex].nest));
                let same = open.iter().zip(&around).take_while(|(one, other)| one == other).count();
                for nest in open.drain(same..).rev() {
                    let post = self.post(nest, Side::Right, layer, gaps.way);
                    fences[nest].iter_mut().for_each(|fence| fence.right.push(post));
                    after.push(post);
                }
                for &nest in &around[same..] {
                    let post = self.post(nest, Side::Left, layer, gaps.way);
                    fences[nest].iter_mut().for_each(|fence| fence.left.push(post));
                    after.push(post);
                    open.push(nest);
                }
                after.extend(vertex);
            }
            self.layers[layer] = after;
        }
        for fence in fences.iter().flatten() {
            for pair in fence.left.windows(2).chain(fence.right.windows(2)) {
                self.segments.push(Segment { upper: pair[0], lower: pair[1], pull: FENCE_PULL });
            }
        }
        self.fences = fences;
    }

    fn post(&mut self, nest: usize, side: Side, layer: usize, width: f64) -> usize {
        let parent = self.nests.parent(nest);
        let post = self.add(Kind::Fence(side), layer, Size { width, height: 0.0 }, None, parent);
        self.layers[layer].pop();
        post
    }

    /// The pieces of links that cross a border, as upper and lower vertex: they give way to it.
    pub(super) fn breaches(&self) -> Vec<(usize, usize)> {
        if self.fences.iter().all(Option::is_none) {
            return Vec::new();
        }
        let mut goes_on = vec![(false, false); self.vertices.len()];
        for segment in self.segments.iter().filter(|segment| segment.pull == FENCE_PULL) {
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

    /// Draws the borders in to what they enclose, the innermost first.
    pub(super) fn tighten(&self, gaps: &Gaps, xs: &mut [f64]) {
        if self.fences.iter().all(Option::is_none) {
            return;
        }
        let mut beside: Vec<[Option<usize>; 2]> = vec![[None; 2]; xs.len()];
        for pair in self.layers.iter().flat_map(|layer| layer.windows(2)) {
            beside[pair[0]][1] = Some(pair[1]);
            beside[pair[1]][0] = Some(pair[0]);
        }
        let apart = |one: usize, other: usize| distance(&self.vertices[one], &self.vertices[other], gaps);
        for (nest, fence) in self.fences.iter().enumerate().rev() {
            let Some(fence) = fence else { continue };
            let (old_left, old_right) = (xs[fence.left[0]], xs[fence.right[0]]);
            let next = fence.left.iter().filter_map(|post| beside[*post][1].map(|next| xs[next] - apart(*post, next)));
            let before =
                fence.right.iter().filter_map(|post| beside[*post][0].map(|next| xs[next] + apart(next, *post)));
            let mut left = next.fold(old_right, f64::min).max(old_left);
            let mut right = before.fold(old_left, f64::max).min(old_right);
            let lacking = (self.across_min[nest] - (right - left)).max(0.0);
            left = (left - lacking / 2.0).max(old_left);
            right = (left + self.across_min[nest]).max(right).min(old_right);
            left = left.min(right - self.across_min[nest]).max(old_left);
            fence.left.iter().for_each(|post| xs[*post] = left);
            fence.right.iter().for_each(|post| xs[*post] = right);
        }
    }
}
