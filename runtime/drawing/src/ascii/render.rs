//! Layers on a sheet: rows for every layer and for what happens between two, then lines, then boxes and labels over them.

use super::canvas::{Canvas, DOWN, UP};
use super::channel::{self, Wire};
use super::frames::{self, FrameRows};
use super::{CharSet, GAPS, TextScene};
use crate::layout::{End, Kind, Layered, Ports, Route, Side};
use crate::text::columns;
use std::collections::HashMap;

/// Draws the scene; none when it would be wider than that many columns, or has lines that go round the outside.
pub(super) fn render(scene: &TextScene<'_>, char_set: CharSet, columns_max: usize) -> Option<String> {
    let right = |(vertex, x): (usize, &usize)| x + (scene.layered.vertices[vertex].size.width / 2.0) as usize + 1;
    let width = scene.xs.iter().enumerate().map(right).max().unwrap_or(0);
    if width > columns_max || scene.layered.routes.iter().any(|route| matches!(route, Route::Around(_))) {
        return None;
    }
    let mut renderer = Renderer::new(scene, char_set, width);
    let rows = std::mem::take(&mut renderer.rows);
    let extent = |layer: usize| (rows[layer].first, rows[layer].last);
    frames::draw(scene, &renderer.frames, &mut renderer.canvas, extent);
    renderer.rows.clone_from(&rows);
    (0..scene.links.len()).for_each(|link| renderer.link(link));
    (0..scene.boxes.len()).for_each(|index| renderer.text_box(index));
    renderer.labels();
    renderer.arrows.sort_unstable();
    for (x, y, character) in std::mem::take(&mut renderer.arrows) {
        renderer.canvas.put(x, y, character);
    }
    frames::labels(scene, &renderer.frames, &mut renderer.canvas, extent);
    Some(renderer.canvas.text())
}

/// First and last row of a layer.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    last: usize,
}

struct Renderer<'a> {
    scene: &'a TextScene<'a>,
    char_set: CharSet,
    canvas: Canvas,
    ports: Ports,
    rows: Vec<Rows>,
    frames: FrameRows,
    /// The row in which a line changes columns, by the layer above the gap, the column above and the column below.
    turns: HashMap<(usize, usize, usize), usize>,
    /// Whose lines each link has: links that share a piece have the same owner.
    owners: Vec<usize>,
    arrows: Vec<(usize, usize, char)>,
}

impl<'a> Renderer<'a> {
    fn new(scene: &'a TextScene<'a>, char_set: CharSet, width: usize) -> Renderer<'a> {
        let xs: Vec<f64> = scene.xs.iter().map(|x| *x as f64).collect();
        let ports = Ports::new(&scene.layered, &scene.items, &scene.links, &xs, &GAPS);
        let mut renderer = Renderer {
            scene,
            char_set,
            canvas: Canvas::new(0, 0, char_set),
            ports,
            rows: Vec::new(),
            frames: FrameRows::of(scene),
            turns: HashMap::new(),
            owners: owners(&scene.layered),
            arrows: Vec::new(),
        };
        let height = renderer.lay_rows();
        renderer.canvas = Canvas::new(width, height, char_set);
        renderer
    }

    /// Decides the rows of layers and turns; returns how many rows there are.
    fn lay_rows(&mut self) -> usize {
        let layers = &self.scene.layered.layers;
        let mut wires: Vec<Vec<Wire>> = vec![Vec::new(); layers.len()];
        for link in 0..self.scene.links.len() {
            for (layer, above, below) in self.columns(link) {
                let wire = Wire { above, below, group: self.owners[link] };
                if !wires[layer].contains(&wire) {
                    wires[layer].push(wire);
                }
            }
        }
        let (above, below) = (self.frames.above.clone(), self.frames.below.clone());
        let mut row = above.first().map_or(0, |rows| rows + usize::from(*rows > 0));
        for (layer, wires) in wires.iter().enumerate() {
            let last = row + self.height(layer).max(1) - 1;
            self.rows.push(Rows { first: row, last });
            let (turns, count) = channel::rows(wires);
            let is_label = |layer: usize| self.scene.layered.is_label_layer.get(layer).copied().unwrap_or(true);
            let before = usize::from(!is_label(layer) && (count > 0 || !is_label(layer + 1)));
            let after = usize::from(!is_label(layer + 1));
            for (wire, turn) in wires.iter().zip(turns) {
                self.turns.insert((layer, wire.above, wire.below), last + 1 + below[layer] + before + turn);
            }
            let frames = below[layer] + above.get(layer + 1).unwrap_or(&0);
            row = last + 1 + frames + (before + count + after).max(1);
        }
        let end = self.rows.last().map_or(0, |rows| rows.last + 1);
        end + below.last().unwrap_or(&0)
    }

    /// The rows that the highest of a layer's boxes and labels takes.
    fn height(&self, layer: usize) -> usize {
        let of = |vertex: &usize| match self.scene.layered.vertices[*vertex].kind {
            Kind::Item(item) => self.scene.boxes[item].size.height as usize,
            _ => self.scene.layered.vertices[*vertex].size.height as usize,
        };
        self.scene.layered.layers[layer].iter().map(of).max().unwrap_or(0)
    }

    /// The wires of a link: the layer above each, and its columns above and below.
    fn columns(&self, link: usize) -> Vec<(usize, usize, usize)> {
        let Route::Over(chain) = &self.scene.layered.routes[link] else { return Vec::new() };
        let layer = |vertex: usize| self.scene.layered.vertices[vertex].layer;
        let column = |position: usize| {
            let port = match position {
                0 => self.ports.across(link, End::Source),
                _ if position + 1 == chain.len() => self.ports.across(link, End::Target),
                _ => None,
            };
            port.map_or(self.scene.xs[chain[position]], |x| x.round() as usize)
        };
        let steps = (1..chain.len()).filter(|position| layer(chain[*position]) != layer(chain[position - 1]));
        let wire = |position: usize| {
            let (before, after) = (layer(chain[position - 1]), layer(chain[position]));
            let (one, other) = (column(position - 1), column(position));
            if before < after { (before, one, other) } else { (after, other, one) }
        };
        steps.map(wire).collect()
    }

    fn link(&mut self, link: usize) {
        match &self.scene.layered.routes[link] {
            Route::Over(chain) => {
                let wires = self.columns(link);
                let (first, last) = (chain[0], chain[chain.len() - 1]);
                let is_up = self.scene.layered.vertices[first].layer > self.scene.layered.vertices[last].layer;
                self.wires(link, chain, &wires);
                if is_up {
                    self.hook(link, first, chain[1], false);
                    self.hook(link, last, chain[chain.len() - 2], true);
                } else if let Some((_, _, below)) = wires.last() {
                    let row = self.rows[self.scene.layered.vertices[last].layer].first;
                    let character = if self.char_set == CharSet::Ascii { 'v' } else { '▼' };
                    self.arrows.push((*below, (row + self.inset(last)).saturating_sub(1), character));
                }
            }
            Route::Loop(turn) => {
                let item = self.scene.links[link].from;
                self.hook(link, item, *turn, false);
                self.hook(link, item, *turn, true);
            }
            Route::Around(_) => {}
        }
    }

    /// Rows between the edge of a layer and a box in it that is lower than the layer.
    fn inset(&self, item: usize) -> usize {
        let rows = self.rows[self.scene.layered.vertices[item].layer];
        (rows.last + 1 - rows.first - self.scene.boxes[item].size.height as usize) / 2
    }

    /// Draws what lies between layers, and the straight lines through them.
    fn wires(&mut self, link: usize, chain: &[usize], wires: &[(usize, usize, usize)]) {
        let owner = self.owners[link];
        for &(layer, above, below) in wires {
            let row = self.turns[&(layer, above, below)];
            let (top, bottom) = (self.rows[layer].last, self.rows[layer + 1].first);
            self.canvas.line(owner, (above, top), (above, row));
            self.canvas.line(owner, (above, row), (below, row));
            self.canvas.line(owner, (below, row), (below, bottom));
        }
        for &vertex in &chain[1..chain.len() - 1] {
            let place = &self.scene.layered.vertices[vertex];
            if place.kind != Kind::Hook {
                let (rows, x) = (self.rows[place.layer], self.scene.xs[vertex]);
                self.canvas.line(owner, (x, rows.first), (x, rows.last));
            }
        }
        // A box may be lower than its layer; it covers what is under it.
        for (vertex, end) in [(chain[0], End::Source), (chain[chain.len() - 1], End::Target)] {
            if let Some(x) = self.ports.across(link, end) {
                let rows = self.rows[self.scene.layered.vertices[vertex].layer];
                let (from, to) = if end == End::Source {
                    (self.middle(vertex), rows.last)
                } else {
                    (rows.first, self.middle(vertex))
                };
                self.canvas.line(owner, (x.round() as usize, from), (x.round() as usize, to));
            }
        }
    }

    /// The middle row of a vertex's layer.
    fn middle(&self, vertex: usize) -> usize {
        let rows = self.rows[self.scene.layered.vertices[vertex].layer];
        usize::midpoint(rows.first, rows.last)
    }

    /// The rows inside a box at which lines leave and arrive at its sides.
    fn side_rows(&self, item: usize) -> (usize, usize) {
        let rows = self.rows[self.scene.layered.vertices[item].layer];
        let first = rows.first + self.inset(item);
        let height = self.scene.boxes[item].size.height as usize;
        (first + 1, first + height - 2)
    }

    /// Draws the line from a box to the turn beside it.
    fn hook(&mut self, link: usize, item: usize, turn: usize, is_arrival: bool) {
        let vertex = &self.scene.layered.vertices[turn];
        let is_right = matches!(vertex.beside, Some((_, Side::Right)));
        let half = (self.scene.boxes[item].size.width / 2.0) as usize;
        let (leaves, arrives) = self.side_rows(item);
        let row = if is_arrival { arrives } else { leaves };
        let middle = self.scene.xs[item];
        let border = if is_right { middle + half } else { middle - half };
        let room = (vertex.size.width / 2.0) as usize;
        let is_loop = vertex.kind == Kind::Loop;
        let x = match (is_loop, is_right) {
            (false, _) => self.scene.xs[turn],
            (true, true) => self.scene.xs[turn] - room,
            (true, false) => self.scene.xs[turn] + room,
        };
        let owner = self.owners[link];
        self.canvas.line(owner, (border, row), (x, row));
        let layer = self.rows[vertex.layer];
        if is_loop {
            self.canvas.line(owner, (x, leaves), (x, arrives));
        } else if is_arrival {
            self.canvas.line(owner, (x, row), (x, layer.last));
            self.canvas.join(owner, x, layer.last, DOWN);
        } else {
            self.canvas.line(owner, (x, row), (x, layer.first));
            self.canvas.join(owner, x, layer.first, UP);
        }
        if is_arrival {
            let character = match (self.char_set, is_right) {
                (CharSet::Ascii, true) => '<',
                (CharSet::Ascii, false) => '>',
                (CharSet::Unicode, true) => '◀',
                (CharSet::Unicode, false) => '▶',
            };
            self.arrows.push((if is_right { border + 1 } else { border - 1 }, row, character));
        }
    }

    fn text_box(&mut self, index: usize) {
        let text_box = &self.scene.boxes[index];
        let (width, height) = (text_box.size.width as usize, text_box.size.height as usize);
        let left = self.scene.xs[index] - width / 2;
        let top = self.rows[self.scene.layered.vertices[index].layer].first + self.inset(index);
        let border = Border::of(text_box.is_round, text_box.is_double, self.char_set);
        for y in 0..height {
            let (start, fill, end) = match y {
                0 => (border.corners[0], border.across, border.corners[1]),
                _ if y + 1 == height => (border.corners[2], border.across, border.corners[3]),
                _ => {
                    let (start, end) = text_box.sides.unwrap_or((border.along, border.along));
                    (start, ' ', end)
                }
            };
            self.canvas.put(left, top + y, start);
            (1..width - 1).for_each(|x| self.canvas.put(left + x, top + y, fill));
            self.canvas.put(left + width - 1, top + y, end);
        }
        let first = top + 1 + (height - 2 - text_box.lines.len()) / 2;
        for (row, line) in text_box.lines.iter().enumerate() {
            self.canvas.write(left + (width - columns(line)) / 2, first + row, line);
        }
    }

    fn labels(&mut self) {
        for (vertex, place) in self.scene.layered.vertices.iter().enumerate() {
            if let Kind::Label(link) = place.kind {
                let rows = self.rows[place.layer];
                let spare = (rows.last + 1 - rows.first).saturating_sub(place.size.height as usize);
                self.label(link, self.scene.xs[vertex], rows.first + spare / 2);
            }
        }
        for (link, route) in self.scene.layered.routes.iter().enumerate() {
            let Route::Loop(turn) = route else { continue };
            let (leaves, arrives) = self.side_rows(self.scene.links[link].from);
            let aside = (GAPS.loop_width / 2.0) as usize;
            let is_right = matches!(self.scene.layered.vertices[*turn].beside, Some((_, Side::Right)));
            let x = if is_right { self.scene.xs[*turn] + aside } else { self.scene.xs[*turn].saturating_sub(aside) };
            let height = self.scene.layered.vertices[*turn].size.height as usize;
            self.label(link, x, usize::midpoint(leaves, arrives + 1).saturating_sub(height / 2));
        }
    }

    /// Writes a link's label around a column, from a row on.
    fn label(&mut self, link: usize, x: usize, top: usize) {
        let Some(label) = &self.scene.edges[link].label else { return };
        for (row, line) in label.lines.iter().enumerate() {
            let width = columns(&line.text);
            let left = x.saturating_sub(width / 2);
            self.canvas.write(left, top + row, &line.text);
        }
    }
}

/// Whose lines each link has: links that share a vertex, or a row at the side of a node, have the same owner.
fn owners(layered: &Layered) -> Vec<usize> {
    let mut owners: Vec<usize> = (0..layered.routes.len()).collect();
    let mut first: HashMap<(usize, Option<(Side, bool)>), usize> = HashMap::new();
    for (link, route) in layered.routes.iter().enumerate() {
        let Route::Over(chain) = route else { continue };
        let inner = &chain[1..chain.len() - 1];
        let shared = inner.iter().map(|vertex| match layered.vertices[*vertex].beside {
            Some((item, side)) => (item, Some((side, Some(vertex) == inner.last()))),
            None => (*vertex, None),
        });
        for place in shared {
            let (owner, other) = (owners[link], *first.entry(place).or_insert(link));
            let other = owners[other];
            owners.iter_mut().filter(|of| **of == owner).for_each(|of| *of = other);
        }
    }
    owners
}

/// The char_set of a border: upper left, upper right, lower left and lower right corner; sides.
struct Border {
    corners: [char; 4],
    across: char,
    along: char,
}

impl Border {
    fn of(is_round: bool, is_double: bool, char_set: CharSet) -> Border {
        match (char_set, is_double, is_round) {
            (CharSet::Ascii, true, _) => Border { corners: ['#'; 4], across: '=', along: '|' },
            (CharSet::Ascii, false, true) => Border { corners: ['.', '.', '\'', '\''], across: '-', along: '|' },
            (CharSet::Ascii, false, false) => Border { corners: ['+'; 4], across: '-', along: '|' },
            (CharSet::Unicode, true, _) => {
                Border { corners: ['╔', '╗', '╚', '╝'], across: '═', along: '║' }
            }
            (CharSet::Unicode, false, true) => {
                Border { corners: ['╭', '╮', '╰', '╯'], across: '─', along: '│' }
            }
            (CharSet::Unicode, false, false) => {
                Border { corners: ['┌', '┐', '└', '┘'], across: '─', along: '│' }
            }
        }
    }
}
