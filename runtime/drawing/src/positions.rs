//! The coordinates of a drawing, for programs that draw it themselves.

use super::drawing::{Drawing, DrawnBox, DrawnEdge, DrawnNode};
use super::geometry::{Step, tenths};
use glovebox_pipeline::graph::{self, GraphFile};
use glovebox_pipeline::ir::Pipeline;
use schemars::JsonSchema;
use serde::Serialize;

/// A pipeline for programs, with the positions of its parts in a drawing. Attribute values are strings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DrawnGraph {
    /// The pipeline.
    #[serde(flatten)]
    pub graph: GraphFile,
    /// The positions in a drawing.
    pub layout: Layout,
}

/// Returns a pipeline with the coordinates of its drawing.
pub fn to_json(pipeline: &Pipeline, drawing: &Drawing) -> DrawnGraph {
    DrawnGraph { graph: graph::to_json(pipeline), layout: Layout::from_drawing(drawing) }
}

/// The positions in a drawing: pixels from the upper left corner with `y` downwards, rounded to one decimal.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Layout {
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
    /// Boxes around subgraphs; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<BoxPosition>,
    /// Nodes in file order.
    pub nodes: Vec<NodePosition>,
    /// Edges in file order, followed by the jumps of a run.
    pub edges: Vec<EdgePosition>,
}

/// The position of the box around a subgraph.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BoxPosition {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// `x` of the box's centre.
    pub x: f64,
    /// `y` of the box's centre.
    pub y: f64,
    /// Width of the box.
    pub width: f64,
    /// Height of the box.
    pub height: f64,
}

/// The position of a node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NodePosition {
    /// The id of the node.
    pub id: String,
    /// `x` of the centre of the node's shape.
    pub x: f64,
    /// `y` of the centre of the node's shape.
    pub y: f64,
    /// Width of the node's shape.
    pub width: f64,
    /// Height of the node's shape.
    pub height: f64,
    /// Progress of the node in a run; absent without a run, or if the run did not reach the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Number of visits of the node in a run; absent if `status` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<u32>,
}

/// The path of an edge.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EdgePosition {
    /// Index of the edge in file order; absent for a jump to a retry target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<usize>,
    /// The source node.
    pub from: String,
    /// The target node.
    pub to: String,
    /// The start of the path: `[x, y]`.
    pub start: Vec<f64>,
    /// The steps of the path: `[x, y]` for a straight line, `[x1, y1, x2, y2, x, y]` for a cubic curve. The arrow is at
    /// the end of the last step.
    pub steps: Vec<Vec<f64>>,
    /// The centre of the edge's label: `[x, y]`; absent if the edge has no label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Vec<f64>>,
    /// Number of times that a run took the edge; absent if the edge was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<u32>,
}

impl Layout {
    /// Returns the coordinates of a drawing.
    pub fn from_drawing(drawing: &Drawing) -> Layout {
        Layout {
            width: tenths(drawing.size.width),
            height: tenths(drawing.size.height),
            boxes: drawing.boxes.iter().map(box_position).collect(),
            nodes: drawing.nodes.iter().map(node_position).collect(),
            edges: drawing.edges.iter().map(edge_position).collect(),
        }
    }
}

fn box_position(drawn: &DrawnBox) -> BoxPosition {
    BoxPosition {
        subgraph: drawn.subgraph,
        x: tenths(drawn.centre.x),
        y: tenths(drawn.centre.y),
        width: tenths(drawn.size.width),
        height: tenths(drawn.size.height),
    }
}

fn node_position(node: &DrawnNode) -> NodePosition {
    NodePosition {
        id: node.id.clone(),
        x: tenths(node.centre.x),
        y: tenths(node.centre.y),
        width: tenths(node.size.width),
        height: tenths(node.size.height),
        status: node.progress.map(|(progress, _)| progress.as_str().to_owned()),
        visits: node.progress.map(|(_, visits)| visits),
    }
}

fn edge_position(edge: &DrawnEdge) -> EdgePosition {
    let numbers = |step: &Step| {
        let points = match *step {
            Step::Line(end) => vec![end],
            Step::Curve(first, second, end) => vec![first, second, end],
        };
        points.iter().flat_map(|point| [tenths(point.x), tenths(point.y)]).collect()
    };
    EdgePosition {
        edge: edge.index,
        from: edge.from.clone(),
        to: edge.to.clone(),
        start: vec![tenths(edge.path.start.x), tenths(edge.path.start.y)],
        steps: edge.path.steps.iter().map(numbers).collect(),
        label: edge.label.as_ref().map(|label| vec![tenths(label.centre.x), tenths(label.centre.y)]),
        taken: Some(edge.taken).filter(|taken| *taken > 0),
    }
}
