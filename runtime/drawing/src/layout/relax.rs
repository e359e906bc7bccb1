//! Shortens lines after coordinate assignment: moves vertices across their layers without bending straight lines.
//!
//! Vertices that are connected by straight lines move as one group. A group moves towards the median of its linked
//! vertices, as far as its neighbours allow. Balanced groups, such as parallel branches, do not move.

use super::Gaps;
use super::across::distance;
use super::layers::{LayerGraph, Side};

const SWEEPS: usize = 8;
/// A shift that is too small to be visible.
const NOTHING: f64 = 0.5;
/// Weight with which a turn is pulled to its node, relative to the weights of segments.
const NEARNESS: u32 = 1;
/// Maximum weight of a segment here, so that one long path does not outweigh everything else.
const WEIGHT_MAX: u32 = 8;

/// Moves groups. `firm` contains the segments that may be straight, and for each whether it is the only such segment at
/// both of its ends.
pub(super) fn relax(layered: &LayerGraph, gaps: &Gaps, firm: &[(usize, usize, bool)], xs: &mut [f64]) {
    let mut links: Vec<Vec<(usize, u32)>> = vec![Vec::new(); xs.len()];
    for segment in &layered.segments {
        let weight = segment.weight.min(WEIGHT_MAX);
        links[segment.upper].push((segment.lower, weight));
        links[segment.lower].push((segment.upper, weight));
    }
    let mut beside: Vec<[Option<(usize, f64)>; 2]> = vec![[None; 2]; xs.len()];
    for pair in layered.layers.iter().flat_map(|layer| layer.windows(2)) {
        let apart = distance(&layered.vertices[pair[0]], &layered.vertices[pair[1]], gaps);
        beside[pair[0]][1] = Some((pair[1], apart));
        beside[pair[1]][0] = Some((pair[0], apart));
    }
    let freedom = Freedom { layered, gaps, links, beside };
    for sweep in 0..SWEEPS {
        let groups = Groups::new(firm, xs);
        let mut order: Vec<usize> = (0..groups.members.len()).filter(|group| !groups.is_held[*group]).collect();
        order.sort_by(|one, other| xs[groups.members[*one][0]].total_cmp(&xs[groups.members[*other][0]]));
        if sweep % 2 == 1 {
            order.reverse();
        }
        let mut has_moved = false;
        for group in order {
            let shift = freedom.shift(&groups, group, xs);
            if shift.abs() > NOTHING {
                groups.members[group].iter().for_each(|vertex| xs[*vertex] += shift);
                has_moved = true;
            }
        }
        if !has_moved {
            return;
        }
    }
}

/// Groups of vertices that are connected by straight lines.
struct Groups {
    group_of: Vec<usize>,
    members: Vec<Vec<usize>>,
    /// True for a group that is one of several parallel branches.
    is_held: Vec<bool>,
}

impl Groups {
    fn new(firm: &[(usize, usize, bool)], xs: &[f64]) -> Groups {
        let mut parents: Vec<usize> = (0..xs.len()).collect();
        let is_straight = |upper: usize, lower: usize| (xs[upper] - xs[lower]).abs() < 0.01;
        for &(upper, lower, _) in firm.iter().filter(|(upper, lower, _)| is_straight(*upper, *lower)) {
            let (upper, lower) = (find(&mut parents, upper), find(&mut parents, lower));
            parents[upper.max(lower)] = upper.min(lower);
        }
        let mut groups = Groups { group_of: vec![0; xs.len()], members: Vec::new(), is_held: Vec::new() };
        for vertex in 0..xs.len() {
            let root = find(&mut parents, vertex);
            if root == vertex {
                groups.group_of[vertex] = groups.members.len();
                groups.members.push(Vec::new());
            }
            // A root is the first vertex of its group, so it has a group already.
            let group = groups.group_of[root];
            groups.group_of[vertex] = group;
            groups.members[group].push(vertex);
        }
        groups.is_held = vec![false; groups.members.len()];
        for &(upper, lower, is_only) in firm {
            if !is_only && !is_straight(upper, lower) {
                groups.is_held[groups.group_of[upper]] = true;
                groups.is_held[groups.group_of[lower]] = true;
            }
        }
        groups
    }
}

fn find(parents: &mut [usize], mut vertex: usize) -> usize {
    while parents[vertex] != vertex {
        parents[vertex] = parents[parents[vertex]];
        vertex = parents[vertex];
    }
    vertex
}

/// The limits of a group's moves: its neighbours, and the links that pull it.
struct Freedom<'a> {
    layered: &'a LayerGraph,
    gaps: &'a Gaps,
    /// The other ends of each vertex's segments, with their weights.
    links: Vec<Vec<(usize, u32)>>,
    /// The neighbours to the left and right, with the distance to keep.
    beside: Vec<[Option<(usize, f64)>; 2]>,
}

impl Freedom<'_> {
    /// Returns the shift of a group: towards the median of its links, as far as its neighbours allow.
    fn shift(&self, groups: &Groups, group: usize, xs: &[f64]) -> f64 {
        let is_own = |vertex: usize| groups.group_of[vertex] == group;
        let mut weights: Vec<(f64, u32)> = Vec::new();
        let (mut left, mut right) = (f64::INFINITY, f64::INFINITY);
        for &vertex in &groups.members[group] {
            let others = self.links[vertex].iter().filter(|(other, _)| !is_own(*other));
            weights.extend(others.map(|(other, weight)| (xs[*other] - xs[vertex], *weight)));
            weights.extend(self.homeward(vertex, xs));
            let [before, after] = self.beside[vertex];
            if let Some((other, apart)) = before.filter(|(other, _)| !is_own(*other)) {
                left = left.min(xs[vertex] - xs[other] - apart);
            }
            if let Some((other, apart)) = after.filter(|(other, _)| !is_own(*other)) {
                right = right.min(xs[other] - xs[vertex] - apart);
            }
        }
        middle(&mut weights).clamp(-left.max(0.0), right.max(0.0))
    }

    /// Returns the distance of a turn from its position next to its node, and the weight of the pull.
    fn homeward(&self, vertex: usize, xs: &[f64]) -> Option<(f64, u32)> {
        let (item, side) = self.layered.vertices[vertex].beside?;
        let apart = distance(&self.layered.vertices[vertex], &self.layered.vertices[item], self.gaps);
        let home = if side == Side::Right { xs[item] + apart } else { xs[item] - apart };
        Some((home - xs[vertex], NEARNESS))
    }
}

/// Returns the weighted median. If all values of a range are medians, returns the one nearest to 0.
fn middle(weights: &mut [(f64, u32)]) -> f64 {
    weights.sort_by(|one, other| one.0.total_cmp(&other.0));
    let whole: u32 = weights.iter().map(|(_, weight)| weight).sum();
    let (mut low, mut high, mut before) = (None, None, 0);
    for (shift, weight) in weights.iter() {
        before += weight;
        if 2 * before >= whole && low.is_none() {
            low = Some(*shift);
        }
        if 2 * before > whole && high.is_none() {
            high = Some(*shift);
        }
    }
    match (low, high) {
        (Some(low), Some(high)) => 0.0_f64.clamp(low, high),
        _ => 0.0,
    }
}
