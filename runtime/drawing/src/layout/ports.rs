//! Assigns the ports: the points at which links touch their nodes.
//!
//! Ports are spread over a side so that as many lines as possible are straight and no two lines meet.

use super::across::shift_apart;
use super::layers::{LayerGraph, Route, Side, VertexKind};
use super::{Gaps, Item, Link};
use std::collections::{BTreeMap, HashMap};

/// The two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    Source,
    Target,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LinkEnd {
    link: usize,
    end: End,
}

/// The ports of all links: coordinates across for ends at the top or bottom of a node, coordinates along for ends at
/// its left or right side.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    across: HashMap<LinkEnd, f64>,
    along: HashMap<LinkEnd, f64>,
    gap: f64,
}

/// The wanted position of a link's end at the top or bottom of a node.
struct PortRequest {
    end: LinkEnd,
    /// The wanted coordinate across.
    x: f64,
    /// Ends with the same key share a port.
    key: (usize, usize),
}

impl Ports {
    /// Assigns a port to every end.
    pub(crate) fn new(layered: &LayerGraph, items: &[Item], links: &[Link], xs: &[f64], gaps: &Gaps) -> Ports {
        let mut ports = Ports { gap: gaps.ports, ..Ports::default() };
        for end in [End::Source, End::Target] {
            let mut requests: BTreeMap<(usize, bool), Vec<PortRequest>> = BTreeMap::new();
            for link in 0..links.len() {
                if let Some((item, is_below, request)) =
                    ports.request(layered, links, xs, LinkEnd { link, end }, gaps.nearly)
                {
                    requests.entry((item, is_below)).or_default().push(request);
                }
            }
            for ((item, _), requests) in requests {
                ports.assign(&items[item], xs[item], requests, gaps);
            }
        }
        ports.turn(layered, items, links);
        ports
    }

    /// Returns the port of an end at the top or bottom, as a coordinate across.
    pub(crate) fn across(&self, link: usize, end: End) -> Option<f64> {
        self.across.get(&LinkEnd { link, end }).copied()
    }

    /// Returns the port of an end at the left or right side, as the distance from the node's middle along.
    pub(crate) fn along(&self, link: usize, end: End) -> f64 {
        self.along.get(&LinkEnd { link, end }).copied().unwrap_or(0.0)
    }

    /// Returns the request of an end: its node, whether it is at the node's bottom, and the position. Returns `None`
    /// for an end at the left or right side.
    fn request(
        &self,
        layered: &LayerGraph,
        links: &[Link],
        xs: &[f64],
        at: LinkEnd,
        nearly: f64,
    ) -> Option<(usize, bool, PortRequest)> {
        let LinkEnd { link, end } = at;
        let item = if end == End::Source { links[link].from } else { links[link].to };
        let chain = match &layered.routes[link] {
            Route::Over(chain) => chain,
            Route::Around(chain) if end == End::Source && chain.len() > 1 => chain,
            Route::Around(_) => {
                let request = PortRequest { end: at, x: f64::INFINITY, key: (usize::MAX, link) };
                return Some((item, end == End::Source, request));
            }
            Route::Loop(_) => return None,
        };
        let next = if end == End::Source { chain[1] } else { chain[chain.len() - 2] };
        let other = &layered.vertices[next];
        if other.layer == layered.vertices[item].layer {
            return None;
        }
        let is_item = matches!(other.kind, VertexKind::Item(_));
        let x = match self.across.get(&LinkEnd { link, end: End::Source }).filter(|_| is_item) {
            Some(x) => *x,
            None if is_item && (xs[next] - xs[item]).abs() < nearly => (xs[next] + xs[item]) / 2.0,
            None => xs[next],
        };
        let key = if is_item { (usize::MAX, link) } else { (next, 0) };
        Some((item, other.layer > layered.vertices[item].layer, PortRequest { end: at, x, key }))
    }

    /// Spreads ends over one side of a node. An end is opposite to the other end of its link if possible, otherwise
    /// next to an end that is.
    fn assign(&mut self, item: &Item, middle: f64, mut requests: Vec<PortRequest>, gaps: &Gaps) {
        requests.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.key.cmp(&other.key)));
        let mut keys: Vec<(usize, usize)> = requests.iter().map(|request| request.key).collect();
        keys.dedup();
        let place: HashMap<(usize, usize), usize> = keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        let mut wanted: Vec<f64> = vec![0.0; keys.len()];
        requests.iter().for_each(|request| wanted[place[&request.key]] = request.x - middle);
        let reach = item.reach.width;
        let assigned = spread(&wanted, reach, gaps.ports);
        for request in requests {
            let x = assigned[place[&request.key]].clamp(-reach, reach);
            self.across.insert(request.end, middle + x);
        }
    }

    /// Assigns ports at the left and right sides of nodes. From top to bottom: links that leave upwards, loops, links
    /// that arrive from below. The turns are nested, so that no two links cross.
    fn turn(&mut self, layered: &LayerGraph, items: &[Item], links: &[Link]) {
        let mut ends: HashMap<usize, Vec<LinkEnd>> = HashMap::new();
        for (link, route) in layered.routes.iter().enumerate() {
            let mut add = |vertex: usize, end| ends.entry(vertex).or_default().push(LinkEnd { link, end });
            match route {
                Route::Over(chain) => {
                    let (first, last) = (chain[1], chain[chain.len() - 2]);
                    let is_beside = |hook: usize, item: usize| {
                        let (hook, item) = (&layered.vertices[hook], &layered.vertices[item]);
                        hook.kind == VertexKind::Hook && hook.layer == item.layer
                    };
                    if is_beside(first, links[link].from) {
                        add(first, End::Source);
                    }
                    if is_beside(last, links[link].to) {
                        add(last, End::Target);
                    }
                }
                Route::Loop(vertex) => {
                    add(*vertex, End::Source);
                    add(*vertex, End::Target);
                }
                Route::Around(_) => {}
            }
        }
        for layer in &layered.layers {
            for (place, &vertex) in layer.iter().enumerate() {
                let VertexKind::Item(item) = layered.vertices[vertex].kind else { continue };
                let (before, after) = layer.split_at(place);
                self.stack(&items[item], &turns(layered, before.iter().rev(), item, Side::Left), &ends);
                self.stack(&items[item], &turns(layered, after[1..].iter(), item, Side::Right), &ends);
            }
        }
    }

    /// Stacks the ends of turns on one side, innermost first.
    fn stack(&mut self, item: &Item, turns: &[usize], ends: &HashMap<usize, Vec<LinkEnd>>) {
        let of = |vertex: &usize| ends.get(vertex).cloned().unwrap_or_default();
        let leaving = |ends: &Vec<LinkEnd>| ends.iter().all(|end| end.end == End::Source);
        let arriving = |ends: &Vec<LinkEnd>| ends.iter().all(|end| end.end == End::Target);
        let all: Vec<Vec<LinkEnd>> = turns.iter().map(of).filter(|ends| !ends.is_empty()).collect();
        let mut slots: Vec<Vec<LinkEnd>> = all.iter().filter(|ends| leaving(ends)).cloned().collect();
        let loops = || all.iter().filter(|ends| !leaving(ends) && !arriving(ends)).flatten();
        slots.extend(loops().filter(|end| end.end == End::Source).rev().map(|end| vec![*end]));
        slots.extend(loops().filter(|end| end.end == End::Target).map(|end| vec![*end]));
        slots.extend(all.iter().filter(|ends| arriving(ends)).rev().cloned());
        let reach = item.reach.height;
        let gap = self.gap.min(2.0 * reach / (slots.len() as f64 - 1.0).max(1.0));
        for (index, slot) in slots.iter().enumerate() {
            let place = (index as f64 - (slots.len() as f64 - 1.0) / 2.0) * gap;
            self.along.extend(slot.iter().map(|end| (*end, place)));
        }
    }
}

/// Returns ports for ends with these wanted distances from the middle of a side, in order. Ends within reach get their
/// wanted position, so that their lines are straight, and the others are next to them. If no end is within reach, all
/// ports are around the middle.
fn spread(wanted: &[f64], reach: f64, gap: f64) -> Vec<f64> {
    let count = wanted.len();
    let tight = gap.min(2.0 * reach / (count as f64 - 1.0).max(1.0));
    let left = wanted.iter().take_while(|x| **x < -reach).count();
    let right = wanted.iter().rev().take_while(|x| **x > reach).count();
    if left + right == count {
        return (0..count).map(|index| (index as f64 - (count as f64 - 1.0) / 2.0) * tight).collect();
    }
    let straight = shift_apart(&wanted[left..count - right], tight * 0.7);
    let (low, high) = (straight[0].max(-reach), straight[straight.len() - 1].min(reach));
    let out_left = gap.min((reach + low) / left.max(1) as f64);
    let out_right = gap.min((reach - high) / right.max(1) as f64);
    let before = (0..left).map(|index| low - (left - index) as f64 * out_left);
    let after = (0..right).map(|index| high + (index + 1) as f64 * out_right);
    before.chain(straight.iter().copied()).chain(after).collect()
}

/// Returns the turns next to a node on one side, innermost first.
fn turns<'a>(layered: &LayerGraph, from: impl Iterator<Item = &'a usize>, item: usize, side: Side) -> Vec<usize> {
    from.take_while(|vertex| layered.vertices[**vertex].beside == Some((item, side))).copied().collect()
}
