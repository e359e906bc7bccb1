//! The order within layers that makes few lines cross: sweeps over the means of neighbours, then swaps of neighbours.
//!
//! The number of sweeps is fixed and falls with the size; the best order seen is kept. File order decides what is left open.

use super::layers::Layered;

/// Pieces up to which all sweeps are made.
const SMALL: usize = 2_000;
const SWEEPS_SMALL: usize = 24;
const SWEEPS_LARGE: usize = 6;
/// Layers up to this many places get swaps; the sweeps alone decide about wider ones.
const SWAP_PLACES_MAX: usize = 120;
/// Rounds of swaps after a sweep.
const SWAP_ROUNDS: usize = 4;

/// Orders the vertices of every layer.
pub(super) fn order(layered: &mut Layered) {
    let mut sorter = Sorter::new(layered);
    sorter.begin();
    let sweeps = if sorter.pieces <= SMALL { SWEEPS_SMALL } else { SWEEPS_LARGE };
    let mut best = sorter.layers.clone();
    let mut fewest = sorter.crossings();
    for sweep in 0..sweeps {
        if fewest == 0 {
            break;
        }
        sorter.sweep(sweep % 2 == 0);
        sorter.swap();
        let crossings = sorter.crossings();
        if crossings < fewest {
            fewest = crossings;
            best.clone_from(&sorter.layers);
        }
    }
    layered.layers = best;
}

struct Sorter {
    layers: Vec<Vec<usize>>,
    layer_of: Vec<usize>,
    /// Place of each vertex in its layer.
    places: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    pieces: usize,
}

impl Sorter {
    fn new(layered: &Layered) -> Sorter {
        let count = layered.vertices.len();
        let segments = layered.segments();
        let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for segment in &segments {
            above[segment.lower].push(segment.upper);
            below[segment.upper].push(segment.lower);
        }
        let layer_of = layered.vertices.iter().map(|vertex| vertex.layer).collect();
        Sorter { layers: layered.layers.clone(), layer_of, places: vec![0; count], above, below, pieces: segments.len() }
    }

    /// The first order: that in which a walk down from the top meets the vertices.
    fn begin(&mut self) {
        let roots: Vec<usize> = self.layers.iter().flatten().copied().collect();
        let mut met = vec![false; self.places.len()];
        let mut layers = vec![Vec::new(); self.layers.len()];
        for root in roots {
            let mut stack = vec![root];
            while let Some(vertex) = stack.pop() {
                if std::mem::replace(&mut met[vertex], true) {
                    continue;
                }
                layers[self.layer_of[vertex]].push(vertex);
                stack.extend(self.below[vertex].iter().rev().filter(|below| !met[**below]));
            }
        }
        self.layers = layers;
        (0..self.layers.len()).for_each(|layer| self.number(layer));
    }

    fn number(&mut self, layer: usize) {
        for (place, vertex) in self.layers[layer].iter().enumerate() {
            self.places[*vertex] = place;
        }
    }

    /// Orders every layer by the one before it, from the top or from the bottom.
    fn sweep(&mut self, downwards: bool) {
        let count = self.layers.len();
        for step in 1..count {
            let layer = if downwards { step } else { count - 1 - step };
            let mut sorted: Vec<(f64, usize)> = self.layers[layer].iter().map(|v| (self.mean(*v, downwards), *v)).collect();
            sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
            self.layers[layer] = sorted.into_iter().map(|(_, vertex)| vertex).collect();
            self.number(layer);
        }
    }

    /// The mean place of the neighbours on one side; its own, on the same scale, when it has none.
    fn mean(&self, vertex: usize, downwards: bool) -> f64 {
        let (neighbours, layer) = if downwards {
            (&self.above[vertex], self.layer_of[vertex].checked_sub(1))
        } else {
            (&self.below[vertex], Some(self.layer_of[vertex] + 1))
        };
        if !neighbours.is_empty() {
            return neighbours.iter().map(|other| self.places[*other] as f64).sum::<f64>() / neighbours.len() as f64;
        }
        let scale = |layer: usize| self.layers.get(layer).map_or(0, Vec::len) as f64;
        let own = self.layers[self.layer_of[vertex]].len() as f64;
        self.places[vertex] as f64 * layer.map_or(1.0, scale) / own
    }

    /// Swaps neighbours as long as that makes fewer lines cross, a fixed number of rounds at most.
    fn swap(&mut self) {
        for _ in 0..SWAP_ROUNDS {
            let mut better = false;
            for layer in 0..self.layers.len() {
                better |= self.layers[layer].len() <= SWAP_PLACES_MAX && self.swap_layer(layer);
            }
            if !better {
                return;
            }
        }
    }

    fn swap_layer(&mut self, layer: usize) -> bool {
        let mut better = false;
        for place in 1..self.layers[layer].len() {
            let (left, right) = (self.layers[layer][place - 1], self.layers[layer][place]);
            let (now, then) = (self.crossings_of(left, right), self.crossings_of(right, left));
            if then < now {
                self.layers[layer].swap(place - 1, place);
                self.places[left] = place;
                self.places[right] = place - 1;
                better = true;
            }
        }
        better
    }

    /// Crossings between the pieces of two vertices that stand in this order.
    fn crossings_of(&self, left: usize, right: usize) -> usize {
        let pairs = |ours: &[usize], theirs: &[usize]| -> usize {
            let count = |one: &usize| theirs.iter().filter(|other| self.places[**other] < self.places[*one]).count();
            ours.iter().map(count).sum()
        };
        pairs(&self.above[left], &self.above[right]) + pairs(&self.below[left], &self.below[right])
    }

    /// All crossings, by counting inversions with a tree of sums.
    fn crossings(&self) -> usize {
        let mut all = 0;
        for (index, layer) in self.layers.iter().enumerate().skip(1) {
            let mut sums = vec![0_usize; self.layers[index - 1].len() + 1];
            let mut added = 0;
            for vertex in layer {
                let mut places: Vec<usize> = self.above[*vertex].iter().map(|above| self.places[*above]).collect();
                places.sort_unstable();
                all += places.iter().map(|place| added - sum(&sums, place + 1)).sum::<usize>();
                places.iter().for_each(|place| add(&mut sums, place + 1));
                added += places.len();
            }
        }
        all
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
