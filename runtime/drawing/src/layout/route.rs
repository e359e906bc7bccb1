//! Routes links: straight through layers, with curves in the gaps between layers.
//!
//! A line crosses a layer only at its dummy vertex and bends only between layers, so no line runs through a node.

use super::bands::{self, Band};
use super::layers::{LayerGraph, Route, Side, VertexKind};
use super::ports::{End, Ports};
use super::{Gaps, Graph, Item, Link, Placement};
use crate::geometry::{Path, Point, Size, Step, at, cut_horizontally, cut_vertically};

/// Straight length of a line before a node, so that its arrow is straight.
const STRAIGHT: f64 = 10.0;
/// Number of separate tracks for lines around the outside.
const OUTSIDE_LINES: usize = 24;

/// Computes the positions of nodes, labels and boxes, and the paths of links.
pub(super) fn route(layered: &LayerGraph, graph: &Graph<'_>, xs: &[f64], gaps: &Gaps) -> Placement {
    let Graph { items, links, clusters, .. } = *graph;
    let (bands, rooms) = bands::bands(layered, clusters, xs, gaps);
    let right = layered.vertices.iter().zip(xs).map(|(vertex, x)| x + vertex.size.width / 2.0).fold(0.0, f64::max);
    let boxes = bands::boxes(layered, &bands, &rooms, xs);
    let ports = Ports::new(layered, items, links, xs, gaps);
    let mut router = Router { layered, items, links, xs, gaps, bands, ports, outside: right + gaps.items, around: 0 };
    let paths: Vec<Path> = (0..links.len()).map(|link| router.path(link)).collect();
    let mut placed = Placement {
        centres: (0..items.len()).map(|item| router.centre(item)).collect(),
        paths,
        labels: vec![None; links.len()],
        boxes,
        size: Size::default(),
    };
    for (vertex, place) in layered.vertices.iter().enumerate() {
        if let VertexKind::Label(link) = place.kind {
            placed.labels[link] = Some(router.centre(vertex));
        }
    }
    for (link, route) in layered.routes.iter().enumerate() {
        if let (Route::Loop(vertex), Some(_)) = (route, links[link].label) {
            placed.labels[link] = Some(router.loop_label(link, *vertex));
        }
    }
    fit(&mut placed, items, links);
    placed
}

struct Router<'a> {
    layered: &'a LayerGraph,
    items: &'a [Item],
    links: &'a [Link],
    xs: &'a [f64],
    gaps: &'a Gaps,
    bands: Vec<Band>,
    ports: Ports,
    /// The coordinate of the first track around the outside.
    outside: f64,
    around: usize,
}

impl Router<'_> {
    fn band(&self, vertex: usize) -> Band {
        self.bands[self.layered.vertices[vertex].layer]
    }

    fn centre(&self, vertex: usize) -> Point {
        let band = self.band(vertex);
        at(self.xs[vertex], (band.top + band.bottom) / 2.0)
    }

    fn path(&mut self, link: usize) -> Path {
        match &self.layered.routes[link] {
            Route::Over(chain) => self.over(link, chain),
            Route::Loop(vertex) => self.round(link, *vertex),
            Route::Around(chain) => {
                self.around += 1;
                self.outside(link, chain)
            }
        }
    }

    /// Returns the path of a link through the layers, down or up.
    fn over(&self, link: usize, chain: &[usize]) -> Path {
        let (from, to) = (self.links[link].from, self.links[link].to);
        let is_down = self.layered.vertices[from].layer < self.layered.vertices[to].layer;
        let mut path = self.leave(link, chain, is_down);
        for &vertex in &chain[1..chain.len() - 1] {
            if self.layered.vertices[vertex].kind == VertexKind::Hook {
                continue;
            }
            let (band, x) = (self.band(vertex), self.xs[vertex]);
            let (enter, exit) = if is_down { (band.top, band.bottom) } else { (band.bottom, band.top) };
            path.swing(at(x, enter));
            path.line(at(x, exit));
        }
        self.arrive(link, chain, is_down, &mut path);
        path
    }

    /// Returns the path from the border of the source to the edge of its layer.
    fn leave(&self, link: usize, chain: &[usize], is_down: bool) -> Path {
        let from = self.links[link].from;
        let band = self.band(from);
        let edge = if is_down { band.bottom } else { band.top };
        match self.ports.across(link, End::Source) {
            Some(x) => {
                let mut path = Path::from(self.end(from, x, is_down));
                path.line(at(x, edge));
                path
            }
            None => {
                let border = self.side(from, chain[1], self.ports.along(link, End::Source));
                let mut path = Path::from(border);
                path.corner(at(self.xs[chain[1]], border.y), at(self.xs[chain[1]], edge));
                path
            }
        }
    }

    /// Adds the path from the edge of the target's layer to the border of the target.
    fn arrive(&self, link: usize, chain: &[usize], is_down: bool, path: &mut Path) {
        let to = self.links[link].to;
        let band = self.band(to);
        let edge = if is_down { band.top } else { band.bottom };
        match self.ports.across(link, End::Target) {
            Some(x) => {
                path.swing(at(x, if is_down { edge - STRAIGHT } else { edge + STRAIGHT }));
                path.line(self.end(to, x, !is_down));
            }
            None => {
                let hook = chain[chain.len() - 2];
                let border = self.side(to, hook, self.ports.along(link, End::Target));
                path.swing(at(self.xs[hook], edge));
                path.corner(at(self.xs[hook], border.y), border);
            }
        }
    }

    /// Returns the point on a node's border at the top or bottom.
    fn end(&self, item: usize, x: f64, is_bottom: bool) -> Point {
        let centre = self.centre(item);
        let half = self.items[item].size.height / 2.0;
        let (top, bottom) = cut_vertically(&self.items[item].outline, x - centre.x).unwrap_or((-half, half));
        at(x, centre.y + if is_bottom { bottom } else { top })
    }

    /// Returns the point on a node's border at the side of a turn.
    fn side(&self, item: usize, turn: usize, along: f64) -> Point {
        let centre = self.centre(item);
        let half = self.items[item].size.width / 2.0;
        let (left, right) = cut_horizontally(&self.items[item].outline, along).unwrap_or((-half, half));
        let is_right = self.is_right(turn);
        centre.moved(if is_right { right } else { left }, along)
    }

    fn is_right(&self, turn: usize) -> bool {
        matches!(self.layered.vertices[turn].beside, Some((_, Side::Right)))
    }

    /// Returns the path of a self-loop.
    fn round(&self, link: usize, turn: usize) -> Path {
        let item = self.links[link].from;
        let start = self.side(item, turn, self.ports.along(link, End::Source));
        let end = self.side(item, turn, self.ports.along(link, End::Target));
        let x = self.loop_line(turn);
        let mut path = Path::from(start);
        path.corner(at(x, start.y), at(x, (start.y + end.y) / 2.0));
        path.corner(at(x, end.y), end);
        path
    }

    /// Returns the coordinate across at which a loop turns: the near edge of its vertex, before its label.
    fn loop_line(&self, turn: usize) -> f64 {
        let half = self.layered.vertices[turn].size.width / 2.0;
        if self.is_right(turn) { self.xs[turn] - half } else { self.xs[turn] + half }
    }

    /// Returns the middle of a loop's label.
    fn loop_label(&self, link: usize, turn: usize) -> Point {
        let aside = if self.is_right(turn) { self.gaps.loop_width / 2.0 } else { -self.gaps.loop_width / 2.0 };
        self.centre(turn).moved(aside, self.loop_middle(link))
    }

    /// Returns the middle of a loop, as the distance from the middle of its node.
    fn loop_middle(&self, link: usize) -> f64 {
        (self.ports.along(link, End::Source) + self.ports.along(link, End::Target)) / 2.0
    }

    /// Returns the path of a link around the outside: down into the gap, out, along, and back in above the target.
    fn outside(&self, link: usize, chain: &[usize]) -> Path {
        let (from, to) = (self.links[link].from, self.links[link].to);
        let x = self.ports.across(link, End::Source).unwrap_or(self.xs[from]);
        let end = self.ports.across(link, End::Target).unwrap_or(self.xs[to]);
        let mut path = Path::from(self.end(from, x, true));
        path.line(at(x, self.band(from).bottom));
        let last = chain[chain.len() - 1];
        if last != from {
            path.swing(at(self.xs[last], self.band(last).top));
            path.line(at(self.xs[last], self.band(last).bottom));
        }
        let below = self.bands.get(self.layered.vertices[last].layer + 1).map_or(self.gaps.layers, |band| band.gap);
        let out = at(path.end().x, self.band(last).bottom + below / 2.0);
        let lane = self.outside + ((self.around - 1) % OUTSIDE_LINES) as f64 * self.gaps.lines / 2.0;
        let down = at(lane, out.y);
        let up = at(lane, self.band(to).top - self.band(to).gap.max(self.gaps.label_before) / 2.0);
        let into = at(end, up.y);
        path.corner(out, out.towards(down, 0.5));
        path.corner(down, down.towards(up, 0.5));
        path.corner(up, up.towards(into, 0.5));
        path.corner(into, at(end, self.band(to).top));
        path.line(self.end(to, end, false));
        path
    }
}

/// Shifts everything so that the smallest coordinate is 0, and computes the size.
fn fit(placed: &mut Placement, items: &[Item], links: &[Link]) {
    let mut low = at(f64::INFINITY, f64::INFINITY);
    let mut high = at(0.0, 0.0);
    let mut cover = |point: Point, size: Size| {
        low = at(low.x.min(point.x - size.width / 2.0), low.y.min(point.y - size.height / 2.0));
        high = at(high.x.max(point.x + size.width / 2.0), high.y.max(point.y + size.height / 2.0));
    };
    placed.centres.iter().zip(items).for_each(|(centre, item)| cover(*centre, item.size));
    for (label, link) in placed.labels.iter().zip(links) {
        if let (Some(centre), Some(size)) = (label, link.label) {
            cover(*centre, size);
        }
    }
    placed.boxes.iter().flatten().for_each(|(centre, size)| cover(*centre, *size));
    for path in &placed.paths {
        cover(path.start, Size::default());
        for step in &path.steps {
            match *step {
                Step::Line(end) => cover(end, Size::default()),
                Step::Curve(first, second, end) => {
                    [first, second, end].iter().for_each(|point| cover(*point, Size::default()))
                }
            }
        }
    }
    if !low.x.is_finite() {
        return;
    }
    let shift = |point: Point| point.moved(-low.x, -low.y);
    placed.centres.iter_mut().for_each(|centre| *centre = shift(*centre));
    placed.labels.iter_mut().flatten().for_each(|label| *label = shift(*label));
    placed.boxes.iter_mut().flatten().for_each(|(centre, _)| *centre = shift(*centre));
    placed.paths.iter_mut().for_each(|path| *path = path.map(shift));
    placed.size = Size { width: high.x - low.x, height: high.y - low.y };
}
