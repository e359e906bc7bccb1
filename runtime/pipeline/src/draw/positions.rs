//! A drawing's coordinates, for programs that draw themselves.

use super::drawing::{Drawing, DrawnBox, DrawnEdge, DrawnNode};
use super::geometry::{Step, tenths};
use schemars::JsonSchema;
use serde::Serialize;

/// Where a picture has its parts: pixels from the upper left corner, `y` downwards, to one decimal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Layout {
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
    /// Boxes around subgraphs; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<BoxPlace>,
    /// Nodes in file order.
    pub nodes: Vec<NodePlace>,
    /// Edges in file order, then jumps of a run.
    pub edges: Vec<EdgePlace>,
}

/// The place of the box around a subgraph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BoxPlace {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// The middle, to the right.
    pub x: f64,
    /// The middle, downwards.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// A node's place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NodePlace {
    /// The node.
    pub id: String,
    /// The middle, to the right.
    pub x: f64,
    /// The middle, downwards.
    pub y: f64,
    /// Width of its shape.
    pub width: f64,
    /// Height of its shape.
    pub height: f64,
    /// How it stands in a run; absent without a run, and when the run did not reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Visits in a run; absent like `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<u32>,
}

/// An edge's way.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EdgePlace {
    /// Index of the edge in file order; absent for a jump to a retry target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<usize>,
    /// Source.
    pub from: String,
    /// Target.
    pub to: String,
    /// Where the way begins: `[x, y]`.
    pub start: Vec<f64>,
    /// Its pieces: `[x, y]` for a straight one, `[x1, y1, x2, y2, x, y]` for a cubic curve. The arrow is at the end of the last.
    pub steps: Vec<Vec<f64>>,
    /// The middle of its label: `[x, y]`; absent without a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Vec<f64>>,
    /// How often a run took it; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<u32>,
}

impl Layout {
    /// The coordinates of a drawing.
    pub fn of(drawing: &Drawing) -> Layout {
        Layout {
            width: tenths(drawing.size.width),
            height: tenths(drawing.size.height),
            boxes: drawing.boxes.iter().map(box_place).collect(),
            nodes: drawing.nodes.iter().map(node_place).collect(),
            edges: drawing.edges.iter().map(edge_place).collect(),
        }
    }
}

fn box_place(drawn: &DrawnBox) -> BoxPlace {
    BoxPlace {
        subgraph: drawn.subgraph,
        x: tenths(drawn.centre.x),
        y: tenths(drawn.centre.y),
        width: tenths(drawn.size.width),
        height: tenths(drawn.size.height),
    }
}

fn node_place(node: &DrawnNode) -> NodePlace {
    NodePlace {
        id: node.id.clone(),
        x: tenths(node.centre.x),
        y: tenths(node.centre.y),
        width: tenths(node.size.width),
        height: tenths(node.size.height),
        status: node.standing.map(|(standing, _)| standing.as_str().to_owned()),
        visits: node.standing.map(|(_, visits)| visits),
    }
}

fn edge_place(edge: &DrawnEdge) -> EdgePlace {
    let numbers = |step: &Step| {
        let points = match *step {
            Step::Line(end) => vec![end],
            Step::Curve(first, second, end) => vec![first, second, end],
        };
        points.iter().flat_map(|point| [tenths(point.x), tenths(point.y)]).collect()
    };
    EdgePlace {
        edge: edge.index,
        from: edge.from.clone(),
        to: edge.to.clone(),
        start: vec![tenths(edge.path.start.x), tenths(edge.path.start.y)],
        steps: edge.path.steps.iter().map(numbers).collect(),
        label: edge.label.as_ref().map(|label| vec![tenths(label.centre.x), tenths(label.centre.y)]),
        taken: Some(edge.taken).filter(|taken| *taken > 0),
    }
}
