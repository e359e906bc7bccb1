//! Assigns the coordinates *across* (see [`super`]): straight lines have priority over balance.
//!
//! After Brandes and Köpf ("Fast and Simple Horizontal Coordinate Assignment", 2001): vertices are aligned with the
//! medians of their neighbours in four assignments (from above and below, from the left and right). Each assignment is
//! packed as tightly as the gaps allow, and every vertex gets the mean of its two middle coordinates. Of the links of a
//! vertex, only those with the highest weight are aligned, so that the main path is a straight line.

use super::Gaps;
use super::layers::{LayerGraph, Side, Vertex, VertexKind};
use super::relax::relax;
use std::collections::HashSet;

/// Returns the coordinate of every vertex across its layer. Neighbours keep the [`distance`].
pub(super) fn positions(layered: &LayerGraph, gaps: &Gaps) -> Vec<f64> {
    let count = layered.vertices.len();
    let aligned = Alignment::new(layered);
    let mut ways: Vec<Vec<f64>> = Vec::with_capacity(4);
    for from_above in [true, false] {
        for from_left in [true, false] {
            ways.push(aligned.place(layered, gaps, from_above, from_left));
        }
    }
    level(&mut ways, layered, count);
    let mut xs: Vec<f64> = (0..count).map(|vertex| middle(&ways, vertex)).collect();
    layered.tighten(gaps, &mut xs);
    relax(layered, gaps, &aligned.firm(), &mut xs);
    layered.tighten(gaps, &mut xs);
    xs
}

/// Returns the minimum distance between the middles of two neighbours.
pub(super) fn distance(one: &Vertex, other: &Vertex, gaps: &Gaps) -> f64 {
    let is_item = |vertex: &Vertex| matches!(vertex.kind, VertexKind::Item(_));
    let gap = match (one.kind, other.kind) {
        (VertexKind::Border(Side::Left), _) => gaps.inside.0,
        (_, VertexKind::Border(Side::Right)) => gaps.inside.1,
        (VertexKind::Border(_), _) | (_, VertexKind::Border(_)) => gaps.outside,
        _ if is_item(one) && is_item(other) => gaps.items,
        _ if is_item(one) || is_item(other) => gaps.beside,
        _ => gaps.lines,
    };
    (one.size.width + other.size.width) / 2.0 + gap
}

/// Aligns the four assignments with the narrowest one: assignments from the left with its left end, those from the
/// right with its right end.
fn level(ways: &mut [Vec<f64>], layered: &LayerGraph, count: usize) {
    let span = |way: &[f64]| {
        let halves = (0..count).map(|vertex| (way[vertex], layered.vertices[vertex].size.width / 2.0));
        halves
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, half)| (low.min(x - half), high.max(x + half)))
    };
    let spans: Vec<(f64, f64)> = ways.iter().map(|way| span(way)).collect();
    let narrowest = spans.iter().copied().min_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    let Some(narrowest) = narrowest else { return };
    for (index, (way, span)) in ways.iter_mut().zip(spans).enumerate() {
        let shift = if index % 2 == 0 { narrowest.0 - span.0 } else { narrowest.1 - span.1 };
        way.iter_mut().for_each(|x| *x += shift);
    }
}

fn middle(ways: &[Vec<f64>], vertex: usize) -> f64 {
    let mut places = [ways[0][vertex], ways[1][vertex], ways[2][vertex], ways[3][vertex]];
    places.sort_by(f64::total_cmp);
    (places[1] + places[2]) / 2.0
}

/// The neighbours of each vertex that are used for alignment.
struct Alignment {
    /// The position of each vertex in its layer.
    places: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// Segments that cross a segment of higher weight, as upper and lower vertex.
    crossed: HashSet<(usize, usize)>,
}

impl Alignment {
    fn new(layered: &LayerGraph) -> Alignment {
        let count = layered.vertices.len();
        let segments = &layered.segments;
        let (mut strongest_below, mut strongest_above) = (vec![0; count], vec![0; count]);
        for segment in segments {
            strongest_below[segment.upper] = segment.weight.max(strongest_below[segment.upper]);
            strongest_above[segment.lower] = segment.weight.max(strongest_above[segment.lower]);
        }
        let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for segment in segments {
            let is_strong =
                segment.weight == strongest_below[segment.upper] && segment.weight == strongest_above[segment.lower];
            if is_strong {
                above[segment.lower].push(segment.upper);
                below[segment.upper].push(segment.lower);
            }
        }
        let mut places = vec![0; count];
        for layer in &layered.layers {
            layer.iter().enumerate().for_each(|(place, vertex)| places[*vertex] = place);
        }
        for neighbours in above.iter_mut().chain(&mut below) {
            neighbours.sort_by_key(|vertex| places[*vertex]);
        }
        let crossed = layered.breaches().into_iter().collect();
        let mut aligned = Alignment { places, above, below, crossed };
        aligned.mark(layered);
        aligned
    }

    /// Returns the segments that may be straight, and for each whether it is the only such segment at both of its ends.
    fn firm(&self) -> Vec<(usize, usize, bool)> {
        let mut firm = Vec::new();
        for (lower, uppers) in self.above.iter().enumerate() {
            for &upper in uppers {
                firm.push((upper, lower, uppers.len() == 1 && self.below[upper].len() == 1));
            }
        }
        firm
    }

    /// Marks segments that cross the path of a long link. The path stays straight, and the other segment bends.
    fn mark(&mut self, layered: &LayerGraph) {
        for pair in layered.layers.windows(2) {
            let (mut from, mut next) = (0, 0);
            for (place, &vertex) in pair[1].iter().enumerate() {
                let way = self.way_above(layered, vertex);
                if way.is_none() && place + 1 < pair[1].len() {
                    continue;
                }
                let until = way.map_or(pair[0].len(), |above| self.places[above]);
                for &lower in &pair[1][next..=place] {
                    for &upper in &self.above[lower] {
                        let is_path_part =
                            layered.vertices[upper].is_path_part() && layered.vertices[lower].is_path_part();
                        if !is_path_part && (self.places[upper] < from || self.places[upper] > until) {
                            self.crossed.insert((upper, lower));
                        }
                    }
                }
                (from, next) = (until, place + 1);
            }
        }
    }

    /// Returns the vertex above `vertex` on the same path, if both are parts of a path.
    fn way_above(&self, layered: &LayerGraph, vertex: usize) -> Option<usize> {
        let above = self.above[vertex].first().copied();
        above.filter(|above| layered.vertices[vertex].is_path_part() && layered.vertices[*above].is_path_part())
    }

    /// Computes one of the four assignments: aligns vertices, then packs the blocks.
    fn place(&self, layered: &LayerGraph, gaps: &Gaps, from_above: bool, from_left: bool) -> Vec<f64> {
        let mut layers = layered.layers.clone();
        if !from_above {
            layers.reverse();
        }
        if !from_left {
            layers.iter_mut().for_each(|layer| layer.reverse());
        }
        let roots = self.align(&layers, from_above, from_left);
        let widths = layered.borders.iter().zip(&layered.across_min);
        let widths = widths.filter_map(|(border, least)| {
            let (left, right) = border.as_ref().map(|border| (border.left[0], border.right[0]))?;
            Some(if from_left { (left, right, *least) } else { (right, left, *least) })
        });
        let xs = pack(&layers, &roots, widths, layered, gaps);
        if from_left { xs } else { xs.iter().map(|x| -x).collect() }
    }

    /// Returns the first vertex of each vertex's block. The vertices of a block have the same coordinate.
    fn align(&self, layers: &[Vec<usize>], from_above: bool, from_left: bool) -> Vec<usize> {
        let mut roots: Vec<usize> = (0..self.places.len()).collect();
        let mut is_taken = vec![false; roots.len()];
        for layer in layers {
            let mut last: Option<usize> = None;
            for &vertex in layer {
                let neighbours = if from_above { &self.above[vertex] } else { &self.below[vertex] };
                for index in medians(neighbours.len(), from_left) {
                    let other = neighbours[index];
                    let piece = if from_above { (other, vertex) } else { (vertex, other) };
                    let place = if from_left { self.places[other] } else { usize::MAX - self.places[other] };
                    if roots[vertex] == vertex
                        && !is_taken[other]
                        && last.is_none_or(|last| last < place)
                        && !self.crossed.contains(&piece)
                    {
                        is_taken[other] = true;
                        roots[vertex] = roots[other];
                        last = Some(place);
                    }
                }
            }
        }
        roots
    }
}

/// Returns the index of the median of `count` neighbours, or of both medians in the order in which they are tried.
fn medians(count: usize, from_left: bool) -> impl Iterator<Item = usize> {
    let (low, high) = (count.saturating_sub(1) / 2, count / 2);
    let (first, second) = if from_left { (low, high) } else { (high, low) };
    [Some(first), Some(second).filter(|second| *second != first)]
        .into_iter()
        .flatten()
        .filter(move |index| *index < count)
}

/// Packs blocks to the left as far as their neighbours allow, then moves them back to the right if there is space.
/// `widths` contains the minimum distances between the two borders of each box.
fn pack(
    layers: &[Vec<usize>],
    roots: &[usize],
    widths: impl Iterator<Item = (usize, usize, f64)>,
    layered: &LayerGraph,
    gaps: &Gaps,
) -> Vec<f64> {
    let count = roots.len();
    let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for pair in layers.iter().flat_map(|layer| layer.windows(2)) {
        let apart = distance(&layered.vertices[pair[0]], &layered.vertices[pair[1]], gaps);
        after[roots[pair[0]]].push((roots[pair[1]], apart));
        before[roots[pair[1]]].push((roots[pair[0]], apart));
    }
    for (one, other, apart) in widths {
        after[roots[one]].push((roots[other], apart));
        before[roots[other]].push((roots[one], apart));
    }
    let order = topological(&after, &before);
    let mut xs = vec![0.0_f64; count];
    for &block in &order {
        xs[block] = before[block].iter().fold(0.0, |x: f64, (other, apart)| x.max(xs[*other] + apart));
    }
    for &block in order.iter().rev() {
        let room = after[block].iter().map(|(other, apart)| xs[*other] - apart).fold(f64::INFINITY, f64::min);
        if room.is_finite() {
            xs[block] = xs[block].max(room);
        }
    }
    (0..count).map(|vertex| xs[roots[vertex]]).collect()
}

fn topological(after: &[Vec<(usize, f64)>], before: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..waiting.len()).filter(|block| waiting[*block] == 0).collect();
    let mut next = 0;
    while let Some(&block) = order.get(next) {
        next += 1;
        for (other, _) in &after[block] {
            waiting[*other] -= 1;
            if waiting[*other] == 0 {
                order.push(*other);
            }
        }
    }
    order
}

/// Returns the positions that are nearest to the wanted ones (by least squares), keep their order, and keep a distance
/// of at least `gap`.
pub(super) fn shift_apart(wanted: &[f64], gap: f64) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (index, x) in wanted.iter().enumerate() {
        let mut block = (x - index as f64 * gap, 1);
        while let Some(before) = blocks.pop_if(|before| before.0 > block.0) {
            let count = before.1 + block.1;
            block = ((before.0 * before.1 as f64 + block.0 * block.1 as f64) / count as f64, count);
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|(x, count)| std::iter::repeat_n(*x, *count));
    places.enumerate().map(|(index, x)| x + index as f64 * gap).collect()
}
