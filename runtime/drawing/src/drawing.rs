//! A drawing: all parts of a picture with their positions, independent of the output format.
//!
//! All text in it is harmless and broken into lines. Renderers read it and decide only about colours and strokes.

use super::geometry::{Path, Point, Size};
use super::overlay::NodeProgress;
use super::shape::Shape;
use super::text::{width, wrap};

/// A picture's parts. Coordinates are pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// The label or the name of the pipeline.
    pub title: String,
    /// Width and height with margins.
    pub size: Size,
    /// Boxes around subgraphs in file order, each before those in it.
    pub boxes: Vec<DrawnBox>,
    /// The number of boxes left out because the borders would be too long in sum.
    pub boxes_left_out: usize,
    /// Nodes in file order.
    pub nodes: Vec<DrawnNode>,
    /// Edges in file order, then jumps of a run.
    pub edges: Vec<DrawnEdge>,
    /// True for a drawing of a run, which shows unreached elements faint.
    pub is_run: bool,
}

/// A box around a subgraph. It covers the nodes of the subgraph and no others. Two boxes overlap only if one is inside the other.
#[derive(Debug, Clone)]
pub struct DrawnBox {
    /// The index of the subgraph.
    pub subgraph: usize,
    /// The number of boxes around it.
    pub depth: usize,
    /// Its centre.
    pub centre: Point,
    /// Its size.
    pub size: Size,
    /// The start of its label; empty without one.
    pub lines: Vec<Line>,
    /// Its label or name in full.
    pub(crate) title: String,
}

/// A node with its position.
#[derive(Debug, Clone)]
pub struct DrawnNode {
    /// The node's name.
    pub id: String,
    /// The type of its handler.
    pub handler: String,
    /// The centre of its shape.
    pub centre: Point,
    /// The size of its shape.
    pub size: Size,
    /// Its text.
    pub lines: Vec<Line>,
    /// True for a goal gate.
    pub is_gate: bool,
    /// Its progress in a run, and its visits so far; none if the run did not reach it.
    pub progress: Option<(NodeProgress, u32)>,
    pub(crate) shape: Shape,
    pub(crate) kind: NodeKind,
    /// The text of its tooltip.
    pub(crate) title: String,
}

/// An edge with its path.
#[derive(Debug, Clone)]
pub struct DrawnEdge {
    /// Its index in file order; none for a jump.
    pub index: Option<usize>,
    /// Source.
    pub from: String,
    /// Target.
    pub to: String,
    /// Its path from border to border, with the arrow at the end.
    pub path: Path,
    /// Its label.
    pub label: Option<DrawnLabel>,
    /// How often a run took it.
    pub taken: u32,
    pub(crate) tone: Tone,
    pub(crate) title: String,
    /// The number of steps that are drawn for this edge; another edge draws the rest and the arrow.
    pub(crate) own_steps: usize,
}

impl DrawnEdge {
    /// The part of its path that is drawn for it, and whether that includes the arrow.
    pub(crate) fn own(&self) -> (Path, bool) {
        let steps = self.path.steps[..self.own_steps.min(self.path.steps.len())].to_vec();
        (Path { start: self.path.start, steps }, self.own_steps >= self.path.steps.len())
    }
}

/// An edge's label, on the edge's path.
#[derive(Debug, Clone)]
pub struct DrawnLabel {
    /// Its centre.
    pub centre: Point,
    /// Its size.
    pub size: Size,
    /// Its text.
    pub lines: Vec<Line>,
}

/// A line of text, centred.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The text, cleaned.
    pub text: String,
    /// The centre of its baseline.
    pub at: Point,
    /// Its role.
    pub role: Role,
}

impl Line {
    /// Breaks text into lines no wider than `width_max`, `lines_max` at most. They have no position yet.
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
    /// The font size.
    pub(crate) fn size(self) -> f64 {
        match self {
            Role::Label => 13.0,
            Role::EdgeLabel | Role::BoxLabel => 11.5,
            Role::Note | Role::Condition => 10.5,
        }
    }

    /// The height of a line.
    pub(crate) fn height(self) -> f64 {
        match self {
            Role::Label => 16.0,
            Role::EdgeLabel | Role::BoxLabel => 14.0,
            Role::Note | Role::Condition => 13.0,
        }
    }

    /// The CSS class.
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

    /// The kind of a handler.
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

    /// The CSS class.
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
    /// Taken on anything but success.
    Fail,
    /// Begins a fresh run at its target.
    Restart,
    /// A jump of a run, which is not an edge of the file.
    Jump,
}

impl Tone {
    /// The CSS class.
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
