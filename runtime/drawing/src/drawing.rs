//! A drawing: all parts of a picture with their positions, independent of the output format.
//!
//! All text in a drawing is cleaned and broken into lines. Renderers decide only about colours and strokes.

use super::geometry::{Path, Point, Size};
use super::overlay::NodeProgress;
use super::shape::Shape;
use super::text::{width, wrap};

/// The parts of a picture. Coordinates are pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// The label of the pipeline, or its name if it has no label.
    pub title: String,
    /// Width and height of the picture, including the margins.
    pub size: Size,
    /// Boxes around subgraphs in file order. An outer box precedes its inner boxes.
    pub boxes: Vec<DrawnBox>,
    /// Number of boxes that are left out because the borders would be too long in total.
    pub boxes_left_out: usize,
    /// Nodes in file order.
    pub nodes: Vec<DrawnNode>,
    /// Edges in file order, followed by the jumps of a run.
    pub edges: Vec<DrawnEdge>,
    /// True for a drawing of a run, in which unreached elements are faint.
    pub is_run: bool,
}

/// A box around a subgraph. It contains the nodes of the subgraph and no others. Two boxes overlap only if one is
/// inside the other.
#[derive(Debug, Clone)]
pub struct DrawnBox {
    /// The index of the subgraph.
    pub subgraph: usize,
    /// Number of boxes around this box.
    pub depth: usize,
    /// Centre of the box.
    pub centre: Point,
    /// Size of the box.
    pub size: Size,
    /// The beginning of the box's label, in lines; empty if the box has no label.
    pub lines: Vec<Line>,
    /// The full label of the box, or the name of its subgraph.
    pub(crate) title: String,
}

/// A node with its position.
#[derive(Debug, Clone)]
pub struct DrawnNode {
    /// The id of the node.
    pub id: String,
    /// The type of the node's handler.
    pub handler: String,
    /// Centre of the node's shape.
    pub centre: Point,
    /// Size of the node's shape.
    pub size: Size,
    /// The text in the node.
    pub lines: Vec<Line>,
    /// True for a goal gate.
    pub is_gate: bool,
    /// The progress of the node in a run, and its number of visits so far; `None` if the run did not reach the node.
    pub progress: Option<(NodeProgress, u32)>,
    pub(crate) shape: Shape,
    pub(crate) kind: NodeKind,
    /// The text of the node's tooltip.
    pub(crate) title: String,
}

/// An edge with its path.
#[derive(Debug, Clone)]
pub struct DrawnEdge {
    /// The index of the edge in file order; `None` for a jump.
    pub index: Option<usize>,
    /// The source node.
    pub from: String,
    /// The target node.
    pub to: String,
    /// The path of the edge from border to border. The arrow is at its end.
    pub path: Path,
    /// The label of the edge; `None` if it has none.
    pub label: Option<DrawnLabel>,
    /// Number of times that a run took the edge.
    pub taken: u32,
    pub(crate) tone: Tone,
    pub(crate) title: String,
    /// Number of steps that are drawn for this edge. Another edge draws the remaining steps and the arrow.
    pub(crate) own_steps: usize,
}

impl DrawnEdge {
    /// Returns the part of the path that is drawn for this edge, and whether the part includes the arrow.
    pub(crate) fn own(&self) -> (Path, bool) {
        let steps = self.path.steps[..self.own_steps.min(self.path.steps.len())].to_vec();
        (Path { start: self.path.start, steps }, self.own_steps >= self.path.steps.len())
    }
}

/// The label of an edge, positioned on the edge's path.
#[derive(Debug, Clone)]
pub struct DrawnLabel {
    /// Centre of the label.
    pub centre: Point,
    /// Size of the label.
    pub size: Size,
    /// The text of the label.
    pub lines: Vec<Line>,
}

/// A line of text, centred.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The cleaned text.
    pub text: String,
    /// The centre of the text's baseline.
    pub at: Point,
    /// The role of the text.
    pub role: Role,
}

impl Line {
    /// Breaks text into at most `lines_max` lines that are not wider than `width_max`. The lines have no position yet.
    pub(crate) fn wrap(text: &str, width_max: f64, lines_max: usize, role: Role) -> Vec<Line> {
        let lines = wrap(text, width_max, lines_max, |line| width(line, role.size()));
        lines.into_iter().map(|text| Line { text, at: Point::default(), role }).collect()
    }
}

/// The role of a line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A node's label.
    Label,
    /// A note below a node's label.
    Note,
    /// An edge's label.
    EdgeLabel,
    /// An edge's condition.
    Condition,
    /// The label of a subgraph.
    BoxLabel,
}

impl Role {
    /// Returns the font size.
    pub(crate) fn size(self) -> f64 {
        match self {
            Role::Label => 13.0,
            Role::EdgeLabel | Role::BoxLabel => 11.5,
            Role::Note | Role::Condition => 10.5,
        }
    }

    /// Returns the height of a line.
    pub(crate) fn height(self) -> f64 {
        match self {
            Role::Label => 16.0,
            Role::EdgeLabel | Role::BoxLabel => 14.0,
            Role::Note | Role::Condition => 13.0,
        }
    }

    /// Returns the CSS class.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Role::Label => "label",
            Role::Note => "note",
            Role::EdgeLabel => "edge-label",
            Role::Condition => "condition",
            Role::BoxLabel => "box-label",
        }
    }
}

/// The purpose of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Start,
    Exit,
    Agent,
    Tool,
    Verify,
    Conditional,
    Human,
    Parallel,
    FanIn,
    Supervisor,
    Plugin,
}

impl NodeKind {
    /// Every kind with its CSS class.
    pub(crate) const ALL: [(NodeKind, &'static str); 11] = [
        (NodeKind::Start, "start"),
        (NodeKind::Exit, "exit"),
        (NodeKind::Agent, "agent"),
        (NodeKind::Tool, "tool"),
        (NodeKind::Verify, "verify"),
        (NodeKind::Conditional, "conditional"),
        (NodeKind::Human, "human"),
        (NodeKind::Parallel, "parallel"),
        (NodeKind::FanIn, "fan-in"),
        (NodeKind::Supervisor, "supervisor"),
        (NodeKind::Plugin, "plugin"),
    ];

    /// Returns the kind of node for a handler.
    pub(crate) fn from_handler(handler: &str) -> NodeKind {
        match handler {
            "start" => NodeKind::Start,
            "exit" => NodeKind::Exit,
            "codergen" => NodeKind::Agent,
            "tool" => NodeKind::Tool,
            "verify" | "verification" | "diff-limits" | "json-schema" | "junit" | "tree-assert" => NodeKind::Verify,
            "conditional" => NodeKind::Conditional,
            "wait.human" => NodeKind::Human,
            "parallel" => NodeKind::Parallel,
            "parallel.fan_in" => NodeKind::FanIn,
            "stack.manager_loop" => NodeKind::Supervisor,
            _ => NodeKind::Plugin,
        }
    }

    /// Returns the CSS class.
    pub(crate) fn class(self) -> &'static str {
        NodeKind::ALL.iter().find(|(kind, _)| *kind == self).map_or("plugin", |(_, class)| class)
    }
}

/// The purpose of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Unconditional, or with a condition that does not read the outcome.
    Plain,
    /// Taken on success.
    Success,
    /// Taken on any other outcome than success.
    Fail,
    /// Begins a new generation of the run at the target.
    Restart,
    /// A jump of a run, which is not an edge of the file.
    Jump,
}

impl Tone {
    /// Returns the CSS class.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Success => "success",
            Tone::Fail => "fail",
            Tone::Restart => "restart",
            Tone::Jump => "jump",
        }
    }
}
