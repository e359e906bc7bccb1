//! The state of the crossing reduction: counts crossings, and applies the moves that change the order.
//!
//! Invariant: `places` contains the position of each vertex in its layer, including turns (see
//! [`super::layers`]). Turns are next to their node, nested by the positions of their other ends.

use super::clusters::ClusterOrder;
use super::layers::{LayerGraph, Side, VertexKind};

/// Maximum number of units in a layer that gets swaps. Wider layers get only sweeps.
const SWAP_UNITS_MAX: usize = 120;
/// Maximum number of rounds of swaps.
const SWAP_ROUNDS: usize = 4;

/// A copy of the order of the vertices, from which it can be restored.
#[derive(Clone)]
pub(super) struct VertexOrder {
    /// The leading vertices of each layer.
    layers: Vec<Vec<usize>>,
    /// The side of each turn.
    sides: Vec<Side>,
    /// The ranks of clusters.
    ranks: Vec<usize>,
}

/// The order of the vertices in their layers, and the links between them.
pub(super) struct Sorter {
    /// The leading vertex of each unit, in order: all vertices except turns.
    layers: Vec<Vec<usize>>,
    /// The side of each turn.
    sides: Vec<Side>,
    layer_of: Vec<usize>,
    places: Vec<usize>,
    /// Number of vertices in each layer, including turns.
    widths: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The turns next to each node.
    turns: Vec<Vec<usize>>,
    is_turn: Vec<bool>,
    /// The clusters, whose vertices must stay together.
    cluster_order: ClusterOrder,
    /// Number of segments.
    pub(super) pieces: usize,
}

impl Sorter {
    /// Creates the order of a depth-first search from the top, with all turns on the right.
    pub(super) fn new(layered: &LayerGraph) -> Sorter {
        let count = layered.vertices.len();
        let segments = &layered.segments;
        let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for segment in segments {
            above[segment.lower].push(segment.upper);
            below[segment.upper].push(segment.lower);
        }
        let mut turns = vec![Vec::new(); count];
        for (vertex, place) in layered.vertices.iter().enumerate() {
            if let Some((item, _)) = place.beside {
                turns[item].push(vertex);
            }
        }
        let mut sorter = Sorter {
            layers: Vec::new(),
            sides: vec![Side::Right; count],
            layer_of: layered.vertices.iter().map(|vertex| vertex.layer).collect(),
            places: vec![0; count],
            widths: layered.layers.iter().map(Vec::len).collect(),
            above,
            below,
            turns,
            is_turn: layered.vertices.iter().map(|vertex| vertex.beside.is_some()).collect(),
            cluster_order: ClusterOrder::new(
                &layered.clusters,
                layered.vertices.iter().map(|vertex| vertex.cluster).collect(),
            ),
            pieces: segments.len(),
        };
        sorter.begin(layered);
        sorter
    }

    fn begin(&mut self, layered: &LayerGraph) {
        let mut met = vec![false; self.places.len()];
        self.layers = vec![Vec::new(); layered.layers.len()];
        for root in layered.layers.iter().flatten() {
            let mut stack = vec![*root];
            while let Some(vertex) = stack.pop() {
                if std::mem::replace(&mut met[vertex], true) {
                    continue;
                }
                if layered.vertices[vertex].beside.is_none() {
                    self.layers[self.layer_of[vertex]].push(vertex);
                }
                let next = self.below[vertex].iter().chain(&self.turns[vertex]);
                stack.extend(next.rev().filter(|next| !met[**next]));
            }
        }
        self.number_all();
        self.rank_clusters();
        self.gather_all();
    }

    /// Returns the current order.
    pub(super) fn order(&self) -> VertexOrder {
        VertexOrder { layers: self.layers.clone(), sides: self.sides.clone(), ranks: self.cluster_order.ranks.clone() }
    }

    /// Restores an order.
    pub(super) fn restore(&mut self, order: VertexOrder) {
        (self.layers, self.sides, self.cluster_order.ranks) = (order.layers, order.sides, order.ranks);
        self.number_all();
    }

    /// Ranks clusters by the positions of their vertices.
    fn rank_clusters(&mut self) {
        if self.cluster_order.is_empty() {
            return;
        }
        let share = |vertex: &usize| (self.places[*vertex] as f64 + 0.5) / self.widths[self.layer_of[*vertex]] as f64;
        self.cluster_order.rank(self.layers.iter().flatten().map(|vertex| (*vertex, share(vertex))));
    }

    /// Moves the vertices of each cluster together, as near as possible to their positions.
    fn gather_all(&mut self) {
        if !self.cluster_order.is_empty() {
            (0..self.layers.len()).for_each(|layer| self.gather(layer));
            self.number_all();
        }
    }

    fn gather(&mut self, layer: usize) {
        let placed = self.layers[layer].iter().enumerate().map(|(place, lead)| (place as f64, *lead)).collect();
        self.layers[layer] = self.cluster_order.arranged(placed);
    }

    /// Returns pairs of clusters that are next to each other.
    pub(super) fn neighbouring_clusters(&self) -> Vec<(usize, usize)> {
        self.cluster_order.neighbours()
    }

    /// Exchanges two clusters in all layers.
    pub(super) fn exchange_clusters(&mut self, one: usize, other: usize) {
        self.cluster_order.ranks.swap(one, other);
        self.gather_all();
    }

    fn number_all(&mut self) {
        // The order of turns depends on positions in the neighbouring layers, which are all known in the second round.
        for _ in 0..2 {
            (0..self.layers.len()).for_each(|layer| self.number(layer));
        }
    }

    fn number(&mut self, layer: usize) {
        let mut place = 0;
        for index in 0..self.layers[layer].len() {
            for vertex in self.unit(self.layers[layer][index]) {
                self.places[vertex] = place;
                place += 1;
            }
        }
    }

    /// Returns a leading vertex with its turns, from left to right.
    fn unit(&self, lead: usize) -> Vec<usize> {
        if self.turns[lead].is_empty() {
            return vec![lead];
        }
        let mut turns: Vec<(usize, usize)> =
            self.turns[lead].iter().map(|turn| (self.leads_to(*turn), *turn)).collect();
        turns.sort_unstable();
        let on = |side| turns.iter().map(|(_, turn)| *turn).filter(move |turn| self.sides[*turn] == side);
        on(Side::Left).chain([lead]).chain(on(Side::Right)).collect()
    }

    /// Returns the position of a turn's other end.
    fn leads_to(&self, turn: usize) -> usize {
        self.above[turn].iter().chain(&self.below[turn]).map(|other| self.places[*other]).min().unwrap_or(0)
    }

    /// Orders every layer by the previous one, from the top or from the bottom. `flips` reverses ties.
    pub(super) fn sweep(&mut self, downwards: bool, flips: bool) {
        let count = self.layers.len();
        self.rank_clusters();
        if let Some(first) =
            if downwards { Some(0) } else { count.checked_sub(1) }.filter(|_| !self.cluster_order.is_empty())
        {
            self.gather(first);
            self.number(first);
        }
        for step in 1..count {
            let layer = if downwards { step } else { count - 1 - step };
            let mut means: Vec<(f64, usize)> =
                self.layers[layer].iter().map(|v| (self.mean(*v, downwards), *v)).collect();
            if flips {
                means.reverse();
            }
            self.layers[layer] = self.cluster_order.arranged(means);
            self.number(layer);
        }
    }

    /// Returns the mean position of a unit's neighbours on one side. Without neighbours, returns the unit's own
    /// position on the same scale.
    fn mean(&self, lead: usize, downwards: bool) -> f64 {
        let neighbours = |vertex: &usize| if downwards { &self.above[*vertex] } else { &self.below[*vertex] };
        let members = std::iter::once(&lead).chain(&self.turns[lead]);
        let (sum, count) =
            members.flat_map(neighbours).fold((0, 0), |(sum, count), other| (sum + self.places[*other], count + 1));
        if count > 0 {
            return sum as f64 / count as f64;
        }
        let own = self.layer_of[lead];
        let other = if downwards { own.saturating_sub(1) } else { (own + 1).min(self.layers.len() - 1) };
        self.places[lead] as f64 * self.widths[other] as f64 / self.widths[own] as f64
    }

    /// Swaps neighbours while that reduces the number of crossings, for at most [`SWAP_ROUNDS`] rounds.
    pub(super) fn swap(&mut self) {
        for _ in 0..SWAP_ROUNDS {
            let mut is_better = false;
            for layer in 0..self.layers.len() {
                is_better |= self.layers[layer].len() <= SWAP_UNITS_MAX && self.swap_layer(layer);
            }
            if !is_better {
                return;
            }
        }
    }

    fn swap_layer(&mut self, layer: usize) -> bool {
        let mut is_better = false;
        for place in 1..self.layers[layer].len() {
            let Some((start, end)) = self.cluster_order.exchange(&self.layers[layer], place) else { continue };
            let (left, right) = (&self.layers[layer][start..place], &self.layers[layer][place..end]);
            let (now, then) = self.crossings_of(left, right);
            if then < now {
                self.layers[layer][start..end].rotate_left(place - start);
                is_better = true;
            }
        }
        if is_better {
            self.number(layer);
        }
        is_better
    }

    /// Returns the numbers of crossings between the segments of neighbouring units, in this order and swapped.
    fn crossings_of(&self, left: &[usize], right: &[usize]) -> (usize, usize) {
        let members = |lead: &usize| std::iter::once(*lead).chain(self.turns[*lead].iter().copied());
        let places = |leads: &[usize], links: &[Vec<usize>]| -> Vec<usize> {
            let vertices = leads.iter().flat_map(members);
            let mut places: Vec<usize> =
                vertices.flat_map(|vertex| links[vertex].iter().map(|other| self.places[*other])).collect();
            places.sort_unstable();
            places
        };
        let mut counts = (0, 0);
        for links in [&self.above, &self.below] {
            let (ours, theirs) = (places(left, links), places(right, links));
            for place in &ours {
                counts.0 += theirs.partition_point(|other| other < place);
                counts.1 += theirs.len() - theirs.partition_point(|other| other <= place);
            }
        }
        counts
    }

    /// Returns the number of all crossings, by counting inversions with a Fenwick tree.
    pub(super) fn crossings(&self) -> usize {
        let mut all = 0;
        for layer in 1..self.layers.len() {
            let mut sums = vec![0_usize; self.widths[layer - 1] + 1];
            let mut added = 0;
            for vertex in self.layers[layer].iter().flat_map(|lead| self.unit(*lead)) {
                let mut places: Vec<usize> = self.above[vertex].iter().map(|above| self.places[*above]).collect();
                places.sort_unstable();
                all += places.iter().map(|place| added - sum(&sums, place + 1)).sum::<usize>();
                places.iter().for_each(|place| add(&mut sums, place + 1));
                added += places.len();
            }
        }
        all
    }

    /// Moves a lane to the outermost positions on one side. Its turns move to the same side of their nodes.
    pub(super) fn move_out(&mut self, lane: &[usize], side: Side) {
        for &vertex in lane {
            self.sides[vertex] = side;
            let layer = &mut self.layers[self.layer_of[vertex]];
            if let Some(place) = layer.iter().position(|lead| *lead == vertex) {
                layer.remove(place);
                let end = if side == Side::Left { 0 } else { layer.len() };
                layer.insert(end, vertex);
            }
        }
        self.number_all();
        self.gather_all();
    }

    /// Returns true for the lane of a back edge.
    pub(super) fn is_turned(&self, lane: &[usize]) -> bool {
        lane.iter().any(|vertex| self.is_turn[*vertex])
    }

    /// Returns the lanes of back edges on a side, innermost first.
    pub(super) fn turned(&self, lanes: &[Vec<usize>], side: Side) -> Vec<usize> {
        let turns = |lane: &[usize]| lane.iter().any(|vertex| self.is_turn[*vertex] && self.sides[*vertex] == side);
        let mut turned: Vec<usize> = (0..lanes.len()).filter(|lane| turns(&lanes[*lane])).collect();
        turned.sort_by_key(|lane| lanes[*lane].iter().map(|vertex| self.places[*vertex]).max());
        if side == Side::Left {
            turned.reverse();
        }
        turned
    }

    /// Moves each loop to the side of its node with fewer turns.
    pub(super) fn balance_loops(&mut self, layered: &LayerGraph) {
        for turns in &self.turns {
            let (loops, hooks): (Vec<usize>, Vec<usize>) =
                turns.iter().partition(|turn| layered.vertices[**turn].kind == VertexKind::Loop);
            let mut balance = 0_isize;
            hooks.iter().for_each(|hook| balance += if self.sides[*hook] == Side::Right { 1 } else { -1 });
            for turn in loops {
                self.sides[turn] = if balance > 0 { Side::Left } else { Side::Right };
                balance += if balance > 0 { -1 } else { 1 };
            }
        }
    }

    /// Writes the order into the layers: loops are next to their node, then hooks.
    pub(super) fn finish(&self, layered: &mut LayerGraph) {
        for (layer, leads) in self.layers.iter().enumerate() {
            let mut ordered = Vec::with_capacity(self.widths[layer]);
            for &lead in leads {
                let unit = self.unit(lead);
                let is_loop = |turn: &&usize| layered.vertices[**turn].kind == VertexKind::Loop;
                let on = |side: Side| unit.iter().filter(move |turn| **turn != lead && self.sides[**turn] == side);
                ordered.extend(on(Side::Left).filter(|turn| !is_loop(turn)));
                ordered.extend(on(Side::Left).filter(is_loop));
                ordered.push(lead);
                ordered.extend(on(Side::Right).filter(is_loop));
                ordered.extend(on(Side::Right).filter(|turn| !is_loop(turn)));
            }
            layered.layers[layer] = ordered;
        }
        for (vertex, side) in layered.vertices.iter_mut().zip(&self.sides) {
            vertex.beside = vertex.beside.map(|(item, _)| (item, *side));
        }
    }
}

fn add(sums: &mut [usize], mut place: usize) {
    while place < sums.len() {
        sums[place] += 1;
        place += place & place.wrapping_neg();
    }
}

fn sum(sums: &[usize], mut place: usize) -> usize {
    let mut total = 0;
    while place > 0 {
        total += sums[place];
        place -= place & place.wrapping_neg();
    }
    total
}
