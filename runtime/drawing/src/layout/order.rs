//! Crossing reduction: orders the vertices of layers by barycentre sweeps, then by swaps of neighbours.
//!
//! A *unit* moves as a whole: a node with its turns (see [`super::layers`]), a dummy vertex, or a label. A *lane* is a
//! group of dummy vertices of links that share an end. Lanes of back edges are tried on both sides of the picture. The
//! number of sweeps is fixed and decreases with the size of the graph, and the best order is kept. File order breaks
//! ties.

use super::layers::{LayerGraph, Route, Side, VertexKind};
use super::sorter::{Sorter, VertexOrder};

/// Maximum number of segments of a small graph, which gets all sweeps and whose lanes are tried on both sides.
const SMALL: usize = 2_000;
const SWEEPS_SMALL: usize = 24;
const SWEEPS_LARGE: usize = 6;
/// Maximum number of segments of a large graph. An even larger graph gets few sweeps.
const LARGE: usize = 60_000;
const SWEEPS_HUGE: usize = 3;
/// Maximum number of lanes that are tried on both sides.
const LANES_MAX: usize = 60;
/// Maximum number of pairs of clusters that are exchanged on trial.
const CLUSTERS_MAX: usize = 60;
/// Number of rounds in which all lanes are tried on both sides.
const LANE_ROUNDS: usize = 2;

/// Orders the vertices of every layer, and chooses the side of each turn.
pub(super) fn order(layered: &mut LayerGraph) {
    let mut sorter = Sorter::new(layered);
    let is_small = sorter.pieces <= SMALL;
    if is_small {
        let (start, lanes) = (sorter.order(), lanes(layered));
        let mut best: Option<(usize, VertexOrder)> = None;
        for flips in [false, true] {
            sorter.restore(start.clone());
            sweep(&mut sorter, SWEEPS_SMALL, flips);
            try_clusters(&mut sorter);
            try_sides(&mut sorter, &lanes);
            let crossings = sorter.crossings();
            if best.as_ref().is_none_or(|(fewest, _)| crossings < *fewest) {
                best = Some((crossings, sorter.order()));
            }
            if crossings == 0 {
                break;
            }
        }
        best.into_iter().for_each(|(_, order)| sorter.restore(order));
    } else {
        let sweeps = if sorter.pieces <= LARGE { SWEEPS_LARGE } else { SWEEPS_HUGE };
        sweep(&mut sorter, sweeps, false);
    }
    sorter.balance_loops(layered);
    sorter.finish(layered);
}

/// Performs at most `sweeps` sweeps down and up, and keeps the best order. With `flips`, every other pair of sweeps
/// reverses ties.
fn sweep(sorter: &mut Sorter, sweeps: usize, flips: bool) {
    let mut best = (sorter.crossings(), sorter.order());
    for sweep in 0..sweeps {
        if best.0 == 0 {
            break;
        }
        sorter.sweep(sweep % 2 == 0, flips && sweep % 4 > 1);
        sorter.swap();
        let crossings = sorter.crossings();
        if crossings < best.0 {
            best = (crossings, sorter.order());
        }
    }
    sorter.restore(best.1);
}

/// Returns the lanes: groups of dummy vertices of links that share an end. A lane changes its side as a whole. Lanes of
/// back edges come first, then those of other long links.
fn lanes(layered: &LayerGraph) -> Vec<Vec<usize>> {
    let mut lanes: Vec<(usize, Vec<usize>)> = Vec::new();
    for is_back in [true, false] {
        for route in &layered.routes {
            let Route::Over(chain) = route else { continue };
            let [_, passed @ .., _] = chain.as_slice() else { continue };
            let Some(last) = passed.last().filter(|_| passed.len() > 1) else { continue };
            if (layered.vertices[*last].kind == VertexKind::Hook) != is_back {
                continue;
            }
            match lanes.iter_mut().find(|(end, _)| end == last) {
                Some((_, lane)) => lane.extend(passed),
                None => lanes.push((*last, passed.to_vec())),
            }
        }
    }
    let lanes = lanes.into_iter().map(|(_, mut lane)| {
        lane.sort_unstable();
        lane.dedup();
        lane
    });
    lanes.take(LANES_MAX).collect()
}

/// Exchanges neighbouring clusters on trial, and keeps each exchange that reduces the number of crossings.
fn try_clusters(sorter: &mut Sorter) {
    let mut fewest = sorter.crossings();
    for (one, other) in sorter.neighbouring_clusters().into_iter().take(CLUSTERS_MAX) {
        if fewest == 0 {
            return;
        }
        fewest = try_one(sorter, fewest, |sorter| sorter.exchange_clusters(one, other));
    }
}

/// Applies one change, and reverts it unless there are fewer crossings than `fewest`. Returns the number of crossings.
fn try_one(sorter: &mut Sorter, fewest: usize, change: impl FnOnce(&mut Sorter)) -> usize {
    let unmoved = sorter.order();
    change(sorter);
    sorter.swap();
    let crossings = sorter.crossings();
    if crossings < fewest {
        return crossings;
    }
    sorter.restore(unmoved);
    fewest
}

/// Moves every lane on trial to the outermost position on either side, and to the position just inside the back edges
/// on that side. Keeps each move that reduces the number of crossings.
fn try_sides(sorter: &mut Sorter, lanes: &[Vec<usize>]) {
    let mut fewest = sorter.crossings();
    for _ in 0..LANE_ROUNDS {
        let before = fewest;
        for lane in lanes {
            for (side, is_within) in
                [Side::Right, Side::Left].into_iter().flat_map(|side| [(side, false), (side, true)])
            {
                if fewest == 0 {
                    return;
                }
                let outer = if is_within { sorter.turned(lanes, side) } else { Vec::new() };
                if is_within && (outer.is_empty() || sorter.is_turned(lane)) {
                    continue;
                }
                fewest = try_one(sorter, fewest, |sorter| {
                    sorter.move_out(lane, side);
                    outer.into_iter().for_each(|outer| sorter.move_out(&lanes[outer], side));
                });
            }
        }
        if fewest == before {
            return;
        }
    }
}
