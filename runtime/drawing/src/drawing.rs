//! A drawing: all parts of a picture with their positions, independent of the output format.
//!
//! All text in it has been cleaned and broken into lines. Renderers read it and decide nothing but looks.

use super::geometry::{Path, Point, Size};
use super::overlay::NodeProgress;
use super::shape::Shape;
use super::text::{width, wrap};

/// A picture's parts. Coordinates are pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// What it is a picture of.
    pub title: String,
    /// Width and height with margins.
    pub size: Size,
    /// Boxes around subgraphs in file order, each before those in it.
    pub boxes: Vec<DrawnBox>,
    /// Subgraphs with nodes that would have a box, but whose borders would be too long in sum.
    pub boxes_left_out: usize,
    /// Nodes in file order.
    pub nodes: Vec<DrawnNode>,
    /// Edges in file order, then jumps of a run.
    pub edges: Vec<DrawnEdge>,
    /// Whether it shows a run: what was not reached is faint then.
    pub is_run: bool,
}

/// A box around a subgraph. It covers the nodes of the subgraph and no other, and what overlaps it is around it or in it.
#[derive(Debug, Clone)]
pub struct DrawnBox {
    /// The index of the subgraph.
    pub subgraph: usize,
    /// How many boxes are around it.
    pub depth: usize,
    /// The middle.
    pub centre: Point,
    /// Room it takes.
    pub size: Size,
    /// The start of its label; empty without one.
    pub lines: Vec<Line>,
    /// Its label or name in full.
    pub(crate) title: String,
}

/// A node with its place.
#[derive(Debug, Clone)]
pub struct DrawnNode {
    /// The node's name.
    pub id: String,
    /// What executes it.
    pub handler: String,
    /// The middle of its shape.
    pub centre: Point,
    /// The size of its shape.
    pub size: Size,
    /// Its text.
    pub lines: Vec<Line>,
    /// Whether the pipeline may not exit without its success.
    pub is_gate: bool,
    /// How it stands in a run, and visits so far; none when it was not reached.
    pub progress: Option<(NodeProgress, u32)>,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    /// The text of its tooltip.
    pub(crate) title: String,
}

/// An edge with its way.
#[derive(Debug, Clone)]
pub struct DrawnEdge {
    /// Its index in file order; none for a jump.
    pub index: Option<usize>,
    /// Source.
    pub from: String,
    /// Target.
    pub to: String,
    /// Its way from border to border; the arrow is at its end.
    pub path: Path,
    /// Its label.
    pub label: Option<DrawnLabel>,
    /// How often a run took it; 0 when it did not.
    pub taken: u32,
    pub(crate) tone: Tone,
    pub(crate) title: String,
    /// How many steps of its way no other edge draws; all of them, and the arrow, unless it joins another edge.
    pub(crate) own_steps: usize,
}

impl DrawnEdge {
    /// The part of its way that is drawn for it, and whether the arrow is part of that.
    pub(crate) fn own(&self) -> (Path, bool) {
        let steps = self.path.steps[..self.own_steps.min(self.path.steps.len())].to_vec();
        (Path { start: self.path.start, steps }, self.own_steps >= self.path.steps.len())
    }
}

/// An edge's label. It stands on the edge's way, and nothing else does.
#[derive(Debug, Clone)]
pub struct DrawnLabel {
    /// The middle.
    pub centre: Point,
    /// Room it takes.
    pub size: Size,
    /// Its text.
    pub lines: Vec<Line>,
}

/// A line of text around a middle.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The text, cleaned.
    pub text: String,
    /// The middle of its baseline.
    pub at: Point,
    /// What it is.
    pub role: Role,
}

impl Line {
    /// Breaks text into lines no wider than `width_max`, `lines_max` at most. They have no position yet.
    pub(crate) fn wrap(text: &str, width_max: f64, lines_max: usize, role: Role) -> Vec<Line> {
        let lines = wrap(text, width_max, lines_max, |line| width(line, role.size()));
        lines.into_iter().map(|text| Line { text, at: Point::default(), role }).collect()
    }
}

/// What a line of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A node's label.
    Label,
    /// A remark below it.
    Note,
    /// An edge's label.
    EdgeLabel,
    /// An edge's condition.
    Condition,
    /// The label of a subgraph.
    BoxLabel,
}

impl Role {
    /// The font's size.
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

    /// The name in classes.
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

/// What a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

impl Kind {
    /// Every kind with its name in classes.
    pub(crate) const ALL: [(Kind, &'static str); 11] = [
        (Kind::Start, "start"),
        (Kind::Exit, "exit"),
        (Kind::Agent, "agent"),
        (Kind::Tool, "tool"),
        (Kind::Verify, "verify"),
        (Kind::Conditional, "conditional"),
        (Kind::Human, "human"),
        (Kind::Parallel, "parallel"),
        (Kind::FanIn, "fan-in"),
        (Kind::Supervisor, "supervisor"),
        (Kind::Plugin, "plugin"),
    ];

    /// The kind of a handler.
    pub(crate) fn of(handler: &str) -> Kind {
        match handler {
            "start" => Kind::Start,
            "exit" => Kind::Exit,
            "codergen" => Kind::Agent,
            "tool" => Kind::Tool,
            "verify" | "verification" | "diff-limits" | "json-schema" | "junit" | "tree-assert" => Kind::Verify,
            "conditional" => Kind::Conditional,
            "wait.human" => Kind::Human,
            "parallel" => Kind::Parallel,
            "parallel.fan_in" => Kind::FanIn,
            "stack.manager_loop" => Kind::Supervisor,
            _ => Kind::Plugin,
        }
    }

    /// The name in classes.
    pub(crate) fn class(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("plugin", |(_, class)| class)
    }
}

/// What an edge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Unconditional, or on something else than the outcome.
    Plain,
    /// Taken on success.
    Success,
    /// Taken on anything but success.
    Fail,
    /// Begins a fresh run at its target.
    Restart,
    /// No edge of the file: a run jumped.
    Jump,
}

impl Tone {
    /// The name in classes.
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
