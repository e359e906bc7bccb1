//! A pipeline as text, for terminals and text files: boxes and lines from the same layers as the picture, always downwards.
//!
//! `Parts -arrange-> layers -channel-> rows -grid-> text`. A graph that is too wide or too large for text becomes a list.

mod canvas;
mod channel;
mod frames;
mod list;
mod render;

use super::drawing::{DrawnBox, DrawnEdge, DrawnNode, Role};
use super::geometry::Size;
use super::layout::{Gaps, Graph, Item, Kind, Layered, Link, Route, arrange};
use super::overlay::Overlay;
use super::scene::{Parts, TextStyle, title};
use super::text::columns;
use glovebox_pipeline::ir::Pipeline;
use std::collections::HashSet;

/// The characters that lines are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharSet {
    /// `+`, `-`, `|`: what every terminal and file can hold.
    Ascii,
    /// Box drawing characters.
    Unicode,
}

/// Nodes up to which there is a drawing.
const NODES_MAX: usize = 80;
/// Columns up to which there is one.
const COLUMNS_MAX: usize = 150;
/// The widest lines of labels.
const LABEL_COLUMNS_MAX: f64 = 26.0;
const EDGE_COLUMNS_MAX: f64 = 22.0;
/// The longest word of a label that a list does not break.
const LIST_COLUMNS_MAX: f64 = 100.0;

const STYLE: TextStyle = TextStyle {
    label_max: |_| LABEL_COLUMNS_MAX,
    edge_max: EDGE_COLUMNS_MAX,
    box_max: LABEL_COLUMNS_MAX,
    width: |line, _| columns(line) as f64,
};

/// In a list there is room for whole words.
const LIST_STYLE: TextStyle =
    TextStyle { label_max: |_| LIST_COLUMNS_MAX, edge_max: LIST_COLUMNS_MAX, box_max: LIST_COLUMNS_MAX, ..STYLE };

const GAPS: Gaps = Gaps {
    items: 3.0,
    beside: 2.0,
    lines: 1.0,
    layers: 0.0,
    label_after: 0.0,
    label_before: 0.0,
    ports: 2.0,
    line_width: 1.0,
    loop_width: 2.0,
    nearly: 2.0,
    outside: 1.0,
    inside: (2.0, 2.0),
};

/// Writes a pipeline as text, with a run over it if one is given.
pub fn to_text(pipeline: &Pipeline, overlay: Option<&Overlay>, char_set: CharSet) -> String {
    let parts = Parts::of(pipeline, overlay, &STYLE);
    let is_small = parts.nodes.len() <= NODES_MAX;
    let drawn = is_small.then(|| render::render(&scene(&parts), char_set, COLUMNS_MAX)).flatten();
    drawn.unwrap_or_else(|| list::list(&title(pipeline), &Parts::of(pipeline, overlay, &LIST_STYLE), char_set))
}

/// A node as text: its lines, without a border.
struct TextBox {
    lines: Vec<String>,
    /// CharSet at both ends of its lines that tell its kind, where a box would not.
    sides: Option<(char, char)>,
    is_round: bool,
    is_double: bool,
    size: Size,
}

fn text_box(node: &DrawnNode) -> TextBox {
    use super::shape::Shape;
    let mut lines: Vec<String> =
        node.lines.iter().filter(|line| line.role == Role::Label).map(|line| line.text.clone()).collect();
    let is_said = |word: &str| lines.iter().any(|line| line.eq_ignore_ascii_case(word));
    let mut notes: Vec<String> = Vec::new();
    if !matches!(node.handler.as_str(), "start" | "exit" | "codergen" | "conditional") && !is_said(&node.handler) {
        notes.push(node.handler.clone());
    }
    notes.extend(node.is_gate.then(|| "goal gate".to_owned()));
    notes.extend(node.progress.map(|(progress, visits)| {
        let times = if visits > 1 { format!(" x{visits}") } else { String::new() };
        format!("[{}{times}]", progress.as_str())
    }));
    lines.extend(notes);
    let sides = match node.shape {
        Shape::Start | Shape::Exit => Some(('(', ')')),
        Shape::Diamond => Some(('<', '>')),
        Shape::Hexagon => Some(('{', '}')),
        Shape::Parallelogram => Some(('/', '/')),
        _ => None,
    };
    let widest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
    // An odd width has a middle column.
    let width = (widest + 4) | 1;
    let height = lines.len() + 2;
    TextBox {
        lines,
        sides,
        is_round: matches!(node.shape, Shape::Start | Shape::Exit),
        is_double: node.is_gate,
        size: Size { width: width as f64, height: height as f64 },
    }
}

/// Everything the renderer needs.
struct TextScene<'a> {
    boxes: Vec<TextBox>,
    edges: &'a [DrawnEdge],
    frames: &'a [DrawnBox],
    items: Vec<Item>,
    links: Vec<Link>,
    layered: Layered,
    /// The column of the middle of each vertex.
    xs: Vec<usize>,
}

fn scene(parts: &Parts) -> TextScene<'_> {
    let mut boxes: Vec<TextBox> = parts.nodes.iter().map(text_box).collect();
    let item = |text_box: &TextBox| Item {
        size: text_box.size,
        outline: Vec::new(),
        reach: Size { width: (text_box.size.width - 3.0) / 2.0, height: 0.0 },
    };
    let link = |(edge, (from, to, weight)): (&DrawnEdge, &(usize, usize, u32))| {
        let lines = edge.label.iter().flat_map(|label| &label.lines);
        let widest = lines.clone().map(|line| columns(&line.text)).max();
        let size = widest.map(|widest| Size { width: ((widest + 2) | 1) as f64, height: lines.count() as f64 });
        Link { from: *from, to: *to, label: size, weight: *weight, bundle: edge.tone as u32 }
    };
    let items: Vec<Item> = boxes.iter().map(item).collect();
    let links: Vec<Link> = parts.edges.iter().zip(&parts.ends).map(link).collect();
    let mut clusters = parts.clusters.clone();
    for (cluster, drawn) in clusters.iter_mut().zip(&parts.boxes) {
        cluster.across_min = drawn.lines.iter().map(|line| columns(&line.text) + 4).max().unwrap_or(0) as f64;
    }
    let graph = Graph { items: &items, links: &links, clusters: &clusters, root: parts.root };
    let (layered, xs) = arrange(&graph, &GAPS);
    let left =
        layered.vertices.iter().zip(&xs).map(|(vertex, x)| x - vertex.size.width / 2.0).fold(f64::INFINITY, f64::min);
    // Whole columns: rounding down keeps distances, since all of them are whole.
    let xs = xs.iter().map(|x| (x - left).floor().max(0.0) as usize).collect();
    for item in two_rows(&layered) {
        // Two rows inside, so that what leaves and what arrives at a side have one each.
        boxes[item].size.height = boxes[item].size.height.max(4.0);
    }
    TextScene { boxes, edges: &parts.edges, frames: &parts.boxes, items, links, layered, xs }
}

/// The items at whose sides lines both leave and arrive.
fn two_rows(layered: &Layered) -> Vec<usize> {
    let (mut leaving, mut arriving) = (HashSet::new(), HashSet::new());
    for route in &layered.routes {
        match route {
            Route::Over(chain) if layered.vertices[chain[1]].kind == Kind::Hook => {
                leaving.insert(chain[0]);
                arriving.insert(chain[chain.len() - 1]);
            }
            Route::Loop(turn) => {
                let item = layered.vertices[*turn].beside.map(|(item, _)| item);
                leaving.extend(item);
                arriving.extend(item);
            }
            Route::Over(_) | Route::Around(_) => {}
        }
    }
    leaving.intersection(&arriving).copied().collect()
}
