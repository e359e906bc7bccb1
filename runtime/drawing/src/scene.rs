//! Converts a pipeline to the input of the layout, and the result of the layout to a drawing.
//!
//! Labels, notes and conditions become lines of text, and `rankdir` becomes a direction in the picture.

use super::boxes::{self, LABEL_ROOM, PAD};
use super::direction::Direction;
use super::drawing::{Drawing, DrawnBox, DrawnEdge, DrawnLabel, DrawnNode, Line, NodeKind, Role, Tone};
use super::geometry::{Point, Size, at};
use super::layout::{Cluster, Gaps, Graph, Item, Link, Placement};
use super::overlay::Overlay;
use super::shape::Shape;
use super::text::{one_line, width};
use glovebox_pipeline::condition::{Clause, Condition, Operator};
use glovebox_pipeline::ir::{Edge, EdgeIndex, Node, Pipeline};
use std::collections::{HashMap, HashSet};

/// Space around the picture.
pub(crate) const MARGIN: f64 = 20.0;
/// Maximum number of lines of a node's label, then maximum width of a line and maximum number of lines of an edge's
/// label.
const LABEL_LINES_MAX: usize = 4;
const EDGE_LINE_MAX: f64 = 132.0;
const EDGE_LINES_MAX: usize = 3;
/// Space around an edge's label.
const EDGE_PAD: Size = Size { width: 5.0, height: 2.0 };

/// Returns the distances of a layout.
fn gaps(direction: Direction) -> Gaps {
    let shared = Gaps {
        items: 36.0,
        beside: 20.0,
        lines: 14.0,
        layers: 42.0,
        label_after: 16.0,
        label_before: 28.0,
        ports: 16.0,
        loop_width: 8.0,
        nearly: 12.0,
        outside: 16.0,
        inside: (PAD, PAD),
    };
    // With sideways layers, the labels of boxes need space at the sides of the layers.
    let sideways = Gaps { items: 28.0, ports: 12.0, inside: (PAD + LABEL_ROOM, PAD), ..shared };
    if direction.is_sideways() { sideways } else { shared }
}

/// The parts of a drawing without positions.
pub(crate) struct Parts {
    /// Boxes in file order. An outer box precedes its inner boxes.
    pub(crate) boxes: Vec<DrawnBox>,
    /// The cluster of each box.
    pub(crate) clusters: Vec<Cluster>,
    /// Nodes in file order.
    pub(crate) nodes: Vec<DrawnNode>,
    /// Edges in file order, followed by jumps.
    pub(crate) edges: Vec<DrawnEdge>,
    /// The ends and the weight of each edge.
    pub(crate) ends: Vec<EdgeEnds>,
    /// The index of the start node.
    pub(crate) root: usize,
}

/// The nodes that an edge connects, by index, and the weight of the edge. An edge with a higher weight is shorter and
/// straighter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeEnds {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) weight: u32,
}

impl Parts {
    /// Returns the parts of a pipeline. If a run is given, they contain its progress.
    pub(crate) fn new(pipeline: &Pipeline, overlay: Option<&Overlay>) -> Parts {
        let nodes = pipeline.nodes.iter().map(|node| drawn_node(node, overlay)).collect();
        let indexed = pipeline.edges.iter().enumerate();
        let mut edges: Vec<DrawnEdge> =
            indexed.map(|(index, edge)| drawn_edge(EdgeIndex(index), edge, overlay)).collect();
        edges.extend(overlay.into_iter().flat_map(jumps));
        let names: HashMap<&str, usize> =
            pipeline.nodes.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
        edges.retain(|edge| names.contains_key(edge.from.as_str()) && names.contains_key(edge.to.as_str()));
        let mains = mains(&edges);
        let end = |edge: &DrawnEdge| EdgeEnds {
            from: names[edge.from.as_str()],
            to: names[edge.to.as_str()],
            weight: weight(edge, &mains),
        };
        let ends = edges.iter().map(end).collect();
        let (boxes, clusters) = boxes::boxes(pipeline);
        Parts { boxes, clusters, nodes, edges, ends, root: names.get(pipeline.start.as_str()).copied().unwrap_or(0) }
    }
}

/// Draws a pipeline. If a run is given, its progress is drawn over the pipeline.
pub(crate) fn draw(pipeline: &Pipeline, overlay: Option<&Overlay>) -> Drawing {
    let direction = Direction::from_pipeline(pipeline);
    let Parts { mut boxes, mut clusters, mut nodes, mut edges, ends, root } = Parts::new(pipeline, overlay);
    let items: Vec<Item> = nodes.iter().map(|node| item(node, direction)).collect();
    let links: Vec<Link> = edges.iter().zip(ends).map(|(edge, ends)| link(edge, ends, direction)).collect();
    boxes::measure(&boxes, &mut clusters, direction);
    let graph = Graph { items: &items, links: &links, clusters: &clusters, root };
    let placed = super::layout::place(&graph, &gaps(direction));
    let size = apply_layout(&mut nodes, &mut edges, &placed, direction);
    let is_left_out =
        |(cluster, place): (&Cluster, &Option<(Point, Size)>)| place.is_none() && !cluster.items.is_empty();
    let boxes_left_out = clusters.iter().zip(&placed.boxes).filter(|pair| is_left_out(*pair)).count();
    boxes = place_boxes(boxes, &edges, &placed, direction);
    Drawing { title: title(pipeline), size, boxes, boxes_left_out, nodes, edges, is_run: overlay.is_some() }
}

/// Returns the displayed name of a pipeline.
pub(crate) fn title(pipeline: &Pipeline) -> String {
    one_line(if pipeline.label.trim().is_empty() { &pipeline.name } else { &pipeline.label })
}

fn drawn_node(node: &Node, overlay: Option<&Overlay>) -> DrawnNode {
    let shape = Shape::from_name(&node.shape);
    let handler = one_line(node.handler.name());
    let kind = NodeKind::from_handler(&handler);
    let most = shape.line_max();
    let mut lines = Line::wrap(&node.label, most, LABEL_LINES_MAX, Role::Label);
    if lines.is_empty() {
        lines = Line::wrap(node.id.as_str(), most, LABEL_LINES_MAX, Role::Label);
    }
    let mut notes: Vec<&str> = Vec::new();
    if kind != NodeKind::from_handler(shape_handler(&node.shape)) || kind == NodeKind::Plugin {
        notes.push(&handler);
    }
    notes.extend(node.checks.goal_gate.then_some("goal gate"));
    lines.extend(Line::wrap(&notes.join(" · "), most, 2, Role::Note));
    let size = shape.around(block_size(&lines));
    let progress = overlay.and_then(|overlay| overlay.nodes.get(&node.id).copied());
    let mut title = format!("{}: {handler}", node.id);
    if node.checks.goal_gate {
        title.push_str(", goal gate");
    }
    if let Some((progress, visits)) = progress {
        title.push_str(&format!(", {}, {visits} {}", progress.as_str(), if visits == 1 { "visit" } else { "visits" }));
    }
    DrawnNode {
        id: node.id.as_str().to_owned(),
        handler,
        centre: Point::default(),
        size,
        lines,
        is_gate: node.checks.goal_gate,
        progress,
        shape,
        kind,
        title: one_line(&title),
    }
}

/// Returns the default handler of a shape. A node with another handler gets a note.
fn shape_handler(shape: &str) -> &'static str {
    glovebox_pipeline::ir::SHAPES.iter().find(|(known, _)| *known == shape).map_or("codergen", |(_, handler)| handler)
}

fn drawn_edge(index: EdgeIndex, edge: &Edge, overlay: Option<&Overlay>) -> DrawnEdge {
    let condition = edge.condition.as_ref().map(short_form).unwrap_or_default();
    let most = EDGE_LINE_MAX;
    let mut lines = Line::wrap(&edge.label, most, EDGE_LINES_MAX, Role::EdgeLabel);
    if !condition.eq_ignore_ascii_case(edge.label.trim()) {
        let role = if lines.is_empty() { Role::EdgeLabel } else { Role::Condition };
        lines.extend(Line::wrap(&condition, most, EDGE_LINES_MAX, role));
    }
    if edge.loop_restart {
        lines.extend(Line::wrap("fresh run", most, 1, Role::Condition));
    }
    let taken = overlay.and_then(|overlay| overlay.edges.get(&index)).copied().unwrap_or(0);
    let mut title = format!("{} -> {}", edge.from, edge.to);
    if !edge.label.trim().is_empty() {
        title.push_str(&format!(" \"{}\"", edge.label.trim()));
    }
    if let Some(condition) = &edge.condition {
        title.push_str(&format!(" if {}", condition.text.trim()));
    }
    title.push_str(&times(taken));
    DrawnEdge {
        index: Some(index.0),
        from: edge.from.as_str().to_owned(),
        to: edge.to.as_str().to_owned(),
        path: Default::default(),
        label: label(lines),
        taken,
        tone: if edge.loop_restart { Tone::Restart } else { edge.condition.as_ref().map_or(Tone::Plain, tone) },
        title: one_line(&title),
        own_steps: 0,
    }
}

fn jumps(overlay: &Overlay) -> impl Iterator<Item = DrawnEdge> {
    overlay.jumps.iter().map(|((from, to), taken)| DrawnEdge {
        index: None,
        from: from.as_str().to_owned(),
        to: to.as_str().to_owned(),
        path: Default::default(),
        label: label(Line::wrap("retry target", EDGE_LINE_MAX, 1, Role::Condition)),
        taken: *taken,
        tone: Tone::Jump,
        title: one_line(&format!("{from} -> {to}, jump to a retry target{}", times(*taken))),
        own_steps: 0,
    })
}

fn times(taken: u32) -> String {
    match taken {
        0 => String::new(),
        1 => ", taken once".to_owned(),
        _ => format!(", taken {taken} times"),
    }
}

/// Returns a short form of a condition: only the value of the outcome, and keys without `context.`.
fn short_form(condition: &Condition) -> String {
    let clause = |clause: &Clause| {
        let key = clause.key.as_str();
        let key = key.strip_prefix("context.").unwrap_or(key);
        match (key, clause.operator) {
            ("outcome", Operator::Equal) => clause.literal.to_string(),
            ("outcome", Operator::NotEqual) => format!("not {}", clause.literal),
            (_, Operator::Equal) => format!("{key}={}", clause.literal),
            (_, Operator::NotEqual) => format!("{key}!={}", clause.literal),
            (_, Operator::Truthy) => key.to_owned(),
        }
    };
    condition.clauses.iter().map(clause).collect::<Vec<_>>().join(" && ")
}

fn tone(condition: &Condition) -> Tone {
    let outcome = condition.clauses.iter().find(|clause| clause.key.is_outcome());
    let Some(outcome) = outcome else { return Tone::Plain };
    match (outcome.operator, outcome.literal.as_str()) {
        (Operator::Equal, "success" | "partial_success") | (Operator::NotEqual, "fail") => Tone::Success,
        (Operator::Equal, "fail" | "retry") | (Operator::NotEqual, "success") => Tone::Fail,
        _ => Tone::Plain,
    }
}

fn block_size(lines: &[Line]) -> Size {
    Size {
        width: lines.iter().map(|line| width(&line.text, line.role.size())).fold(0.0, f64::max),
        height: lines.iter().map(|line| line.role.height()).sum(),
    }
}

fn label(lines: Vec<Line>) -> Option<DrawnLabel> {
    let text = block_size(&lines);
    let size = Size { width: (text.width + 2.0 * EDGE_PAD.width).ceil(), height: text.height + 2.0 * EDGE_PAD.height };
    (!lines.is_empty()).then_some(DrawnLabel { centre: Point::default(), size, lines })
}

fn item(node: &DrawnNode, direction: Direction) -> Item {
    let outline = node.shape.outline(node.size).into_iter().map(|corner| direction.to_layout(corner)).collect();
    Item { size: direction.turn(node.size), outline, reach: direction.turn(node.shape.reach(node.size)) }
}

fn link(edge: &DrawnEdge, ends: EdgeEnds, direction: Direction) -> Link {
    let EdgeEnds { from, to, weight } = ends;
    let label = edge.label.as_ref().map(|label| direction.turn(label.size));
    Link { from, to, label, weight, bundle: edge.tone as u32 }
}

/// Returns the weight of an edge. An edge with a higher weight is shorter and straighter.
fn weight(edge: &DrawnEdge, mains: &HashSet<usize>) -> u32 {
    match edge.tone {
        Tone::Fail | Tone::Restart | Tone::Jump => 1,
        Tone::Plain | Tone::Success if edge.index.is_some_and(|index| mains.contains(&index)) => 3,
        Tone::Plain | Tone::Success => 2,
    }
}

/// Returns the indices of the edges on the main path. If edges of a node have a label or a condition, the main edge is
/// the one for success, or otherwise the first with a label or condition. If none has, all edges of the node count as
/// main edges.
fn mains(edges: &[DrawnEdge]) -> HashSet<usize> {
    let mut leaving: HashMap<&str, Vec<(&DrawnEdge, usize)>> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.from != edge.to) {
        leaving.entry(&edge.from).or_default().extend(edge.index.map(|index| (edge, index)));
    }
    let mut mains = HashSet::new();
    for edges in leaving.into_values() {
        let is_plain = |edge: &DrawnEdge| edge.tone == Tone::Plain;
        if edges.iter().all(|(edge, _)| edge.label.is_none()) {
            mains.extend(edges.iter().map(|(_, index)| *index));
            continue;
        }
        let success = edges.iter().find(|(edge, _)| edge.tone == Tone::Success);
        let labelled = edges.iter().find(|(edge, _)| is_plain(edge) && edge.label.is_some());
        let plain = edges.iter().find(|(edge, _)| is_plain(edge));
        mains.extend(success.or(labelled).or(plain).map(|(_, index)| *index));
    }
    mains
}

/// Applies the positions of the layout, and returns the size of the picture.
fn apply_layout(nodes: &mut [DrawnNode], edges: &mut [DrawnEdge], placed: &Placement, direction: Direction) -> Size {
    let whole = direction.turn(placed.size);
    let place = |point: Point| direction.to_paper(point, whole).moved(MARGIN, MARGIN);
    for (node, centre) in nodes.iter_mut().zip(&placed.centres) {
        node.centre = place(*centre);
        set(&mut node.lines, node.centre.moved(0.0, node.shape.text_drop()));
    }
    for ((edge, path), centre) in edges.iter_mut().zip(&placed.paths).zip(&placed.labels) {
        edge.path = path.map(place);
        if let (Some(label), Some(centre)) = (&mut edge.label, centre) {
            label.centre = place(*centre);
            set(&mut label.lines, label.centre);
        }
    }
    super::shared::divide(edges);
    Size { width: (whole.width + 2.0 * MARGIN).ceil(), height: (whole.height + 2.0 * MARGIN).ceil() }
}

/// Applies the positions of the layout to boxes. Boxes that the layout left out are removed.
fn place_boxes(boxes: Vec<DrawnBox>, edges: &[DrawnEdge], placed: &Placement, direction: Direction) -> Vec<DrawnBox> {
    let whole = direction.turn(placed.size);
    let placed = boxes.into_iter().zip(&placed.boxes).filter_map(|(drawn, place)| {
        let (centre, size) = (*place)?;
        let centre = direction.to_paper(centre, whole).moved(MARGIN, MARGIN);
        Some(DrawnBox { centre, size: direction.turn(size), ..drawn })
    });
    let mut boxes: Vec<DrawnBox> = placed.collect();
    boxes::set_labels(&mut boxes, edges);
    boxes
}

/// Stacks lines vertically around a centre.
fn set(lines: &mut [Line], centre: Point) {
    let mut top = centre.y - lines.iter().map(|line| line.role.height()).sum::<f64>() / 2.0;
    for line in lines {
        let middle = top + line.role.height() / 2.0;
        line.at = at(centre.x, middle + line.role.size() * 0.36);
        top += line.role.height();
    }
}
