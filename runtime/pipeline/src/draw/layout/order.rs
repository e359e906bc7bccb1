//! The order within layers that makes few lines cross: sweeps over the means of neighbours, then swaps of neighbours.
//!
//! What moves is a *unit*: a node with the turns beside it, or one way or label alone. Links that lead back try both sides of the picture.
//! The number of sweeps is fixed and falls with the size; the best order seen is kept. File order decides what is left open.

use super::layers::{Kind, Layered, Route, Side};
use super::sorter::Sorter;

/// Pieces up to which all sweeps are made, and lanes try both sides.
const SMALL: usize = 2_000;
const SWEEPS_SMALL: usize = 24;
const SWEEPS_LARGE: usize = 6;
/// Lanes that try both sides.
const LANES_MAX: usize = 60;
/// Pairs of nests that do.
const NESTS_MAX: usize = 60;
/// How often all lanes do.
const LANE_ROUNDS: usize = 2;

/// Orders the vertices of every layer, and decides on which side of their nodes turns stand.
pub(super) fn order(layered: &mut Layered) {
    let mut sorter = Sorter::new(layered);
    let is_small = sorter.pieces <= SMALL;
    let mut best = (sorter.crossings(), sorter.state());
    for sweep in 0..if is_small { SWEEPS_SMALL } else { SWEEPS_LARGE } {
        if best.0 == 0 {
            break;
        }
        sorter.sweep(sweep % 2 == 0);
        sorter.swap();
        let crossings = sorter.crossings();
        if crossings < best.0 {
            best = (crossings, sorter.state());
        }
    }
    sorter.restore(best.1);
    if is_small {
        try_nests(&mut sorter);
        try_sides(&mut sorter, &lanes(layered));
    }
    sorter.balance_loops(layered);
    sorter.finish(layered);
}

/// The links that lead back, as the vertices of all that share an end: they change sides together.
fn lanes(layered: &Layered) -> Vec<Vec<usize>> {
    let mut lanes: Vec<(usize, Vec<usize>)> = Vec::new();
    for route in &layered.routes {
        let Route::Over(chain) = route else { continue };
        let [_, passed @ .., _] = chain.as_slice() else { continue };
        let Some(last) = passed.last().filter(|last| layered.vertices[**last].kind == Kind::Hook) else { continue };
        match lanes.iter_mut().find(|(end, _)| end == last) {
            Some((_, lane)) => lane.extend(passed),
            None => lanes.push((*last, passed.to_vec())),
        }
    }
    let lanes = lanes.into_iter().map(|(_, mut lane)| {
        lane.sort_unstable();
        lane.dedup();
        lane
    });
    lanes.take(LANES_MAX).collect()
}

/// Lets neighbouring nests try each other's place, and stay where fewer lines cross.
fn try_nests(sorter: &mut Sorter) {
    let mut fewest = sorter.crossings();
    for pair in sorter.nests_beside().into_iter().take(NESTS_MAX) {
        if fewest == 0 {
            return;
        }
        let state = sorter.state();
        sorter.exchange_nests(pair);
        sorter.swap();
        let crossings = sorter.crossings();
        if crossings < fewest {
            fewest = crossings;
        } else {
            sorter.restore(state);
        }
    }
}

/// Lets every lane try the outermost place on either side, and stay where fewer lines cross.
fn try_sides(sorter: &mut Sorter, lanes: &[Vec<usize>]) {
    let mut fewest = sorter.crossings();
    for _ in 0..LANE_ROUNDS {
        let before = fewest;
        for lane in lanes {
            for side in [Side::Right, Side::Left] {
                if fewest == 0 {
                    return;
                }
                let state = sorter.state();
                sorter.move_out(lane, side);
                sorter.swap();
                let crossings = sorter.crossings();
                if crossings < fewest {
                    fewest = crossings;
                } else {
                    sorter.restore(state);
                }
            }
        }
        if fewest == before {
            return;
        }
    }
}
