//! Lanes: where a link that leads back turns off to the side of its node, and where a loop turns round.
//!
//! A link that leads back ends at the side of its target, so that it is seen for what it is; it leaves from the side too unless its way
//! lies right above. The places for these turns stand beside their node within its layer, loops innermost, nested so that no two cross.

use super::layers::{Kind, Layered, Route, Side};
use super::{Item, Link};
use crate::draw::geometry::Size;
use std::collections::HashMap;

/// How far within a node's width a way must lie to be right above it.
const INSET: f64 = 10.0;

/// Adds the lanes. `xs` are the places across of what there is, from a layout without lanes; they decide about sides.
pub(super) fn add_lanes(layered: &mut Layered, items: &[Item], links: &[Link], xs: &[f64]) {
    let mut lanes = Lanes { beside: HashMap::new(), hooks: HashMap::new(), layered, items, xs };
    for index in 0..links.len() {
        lanes.turn(index);
    }
    for (index, link) in links.iter().enumerate().filter(|(_, link)| link.from == link.to) {
        lanes.turn_round(index, link);
    }
    lanes.settle();
}

/// A turn beside an item: how far out it belongs, and its vertex.
type Turn = (f64, usize);

struct Lanes<'a> {
    /// Turns by item and side.
    beside: HashMap<(usize, Side), Vec<Turn>>,
    /// The turn in which a way ends, so that links that share the way share it too.
    hooks: HashMap<usize, usize>,
    layered: &'a mut Layered,
    items: &'a [Item],
    xs: &'a [f64],
}

impl Lanes<'_> {
    /// Gives a link that leads back its turns.
    fn turn(&mut self, index: usize) {
        let Route::Over(chain) = &self.layered.routes[index] else { return };
        let (Some(&from), Some(&to)) = (chain.first(), chain.last()) else { return };
        if self.layered.vertices[from].layer < self.layered.vertices[to].layer {
            return;
        }
        let mut chain = chain.clone();
        let (first, last) = (chain[1], chain[chain.len() - 2]);
        let is_direct = first == to;
        let (into, out) = self.sides(from, to, first, last);
        let end = if is_direct {
            self.hook(to, into, self.xs[from])
        } else if let Some(end) = self.hooks.get(&last) {
            *end
        } else {
            let end = self.hook(to, into, self.xs[last]);
            self.hooks.insert(last, end);
            end
        };
        chain.insert(chain.len() - 1, end);
        if let Some(out) = out {
            let start = self.hook(from, out, self.xs[first]);
            chain.insert(1, start);
        }
        self.layered.routes[index] = Route::Over(chain);
    }

    /// At which side the link arrives, and at which it leaves; none when it leaves from above.
    fn sides(&self, from: usize, to: usize, first: usize, last: usize) -> (Side, Option<Side>) {
        let half = |item: usize| self.items[item].size.width / 2.0;
        let (xs, default) = (self.xs, self.emptier(from, to));
        let side = |offset: f64, default: Side| match offset {
            offset if offset > 1.0 => Side::Right,
            offset if offset < -1.0 => Side::Left,
            _ => default,
        };
        let across = xs[from] - xs[to];
        if first == to {
            let is_aside = across.abs() > half(to) + INSET;
            return if is_aside { (side(across, default), None) } else { (default, Some(default)) };
        }
        let into = side(xs[last] - xs[to], side(across, default));
        let offset = xs[first] - xs[from];
        let is_above = offset.abs() <= half(from) - INSET;
        (into, (!is_above).then(|| side(offset, default)))
    }

    /// The side with fewer turns at both ends.
    fn emptier(&self, from: usize, to: usize) -> Side {
        let count = |side| [from, to].iter().map(|item| self.beside.get(&(*item, side)).map_or(0, Vec::len)).sum::<usize>();
        if count(Side::Right) > count(Side::Left) { Side::Left } else { Side::Right }
    }

    fn hook(&mut self, item: usize, side: Side, towards: f64) -> usize {
        let layer = self.layered.vertices[item].layer;
        let vertex = self.layered.add(Kind::Hook(side), layer, Size::default(), None);
        let outwards = if side == Side::Right { towards } else { -towards };
        self.beside.entry((item, side)).or_default().push((outwards, vertex));
        vertex
    }

    /// Gives a loop its turn, on the emptier side and next to the item.
    fn turn_round(&mut self, index: usize, link: &Link) {
        let side = self.emptier(link.from, link.from);
        let layer = self.layered.vertices[link.from].layer;
        let vertex = self.layered.add(Kind::Loop(side), layer, link.label.unwrap_or_default(), None);
        self.beside.entry((link.from, side)).or_default().push((f64::NEG_INFINITY, vertex));
        self.layered.routes[index] = Route::Loop(vertex);
    }

    /// Puts the turns beside their items in every layer.
    fn settle(mut self) {
        for turns in self.beside.values_mut() {
            turns.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        }
        for layer in &mut self.layered.layers {
            let mut settled = Vec::with_capacity(layer.len());
            for &vertex in layer.iter().filter(|vertex| **vertex < self.xs.len()) {
                let turns = |side| self.beside.get(&(vertex, side)).into_iter().flatten().map(|(_, turn)| *turn);
                settled.extend(turns(Side::Left).collect::<Vec<_>>().into_iter().rev());
                settled.push(vertex);
                settled.extend(turns(Side::Right));
            }
            *layer = settled;
        }
    }
}
