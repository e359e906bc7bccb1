//! The shapes of nodes: the nine shapes of the specification, and the octagon of `verify`. Any other name gives a box.
//!
//! A shape computes its size around a text, its outline, the range where links may end, and the lines that are drawn
//! inside the outline.

use super::geometry::{Path, Point, Size, at, rounded};

/// The shape of a node (spec §2.8, appendix B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `box`: an agent (`codergen`), and every plugin.
    Box,
    /// `Mdiamond`: the start node.
    Start,
    /// `Msquare`: an exit.
    Exit,
    /// `diamond`: a conditional node.
    Diamond,
    /// `hexagon`: a human gate.
    Hexagon,
    /// `parallelogram`: a tool.
    Parallelogram,
    /// `component`: begins parallel branches.
    Component,
    /// `tripleoctagon`: joins parallel branches.
    TripleOctagon,
    /// `house`: a supervisor.
    House,
    /// `octagon`: a verify node.
    Octagon,
}

/// Space between text and border.
const PAD: Size = Size { width: 16.0, height: 11.0 };
/// Minimum size of any shape.
const LEAST: Size = Size { width: 60.0, height: 40.0 };
/// Distance between the lines of a multiple border.
const RING: f64 = 4.0;
/// Horizontal offset of a parallelogram's slanted sides.
const LEAN: f64 = 14.0;
/// Height of the roof of a house.
const ROOF: f64 = 16.0;
/// Size of a component's tabs: `width` is the overhang on each side of the border.
const TAB: Size = Size { width: 6.0, height: 7.0 };

impl Shape {
    /// Returns the shape for a Graphviz name.
    pub(crate) fn from_name(name: &str) -> Shape {
        match name {
            "Mdiamond" => Shape::Start,
            "Msquare" => Shape::Exit,
            "diamond" => Shape::Diamond,
            "hexagon" => Shape::Hexagon,
            "parallelogram" => Shape::Parallelogram,
            "component" => Shape::Component,
            "tripleoctagon" => Shape::TripleOctagon,
            "house" => Shape::House,
            "octagon" => Shape::Octagon,
            _ => Shape::Box,
        }
    }

    /// Returns the width at which a label breaks into lines.
    pub(crate) fn line_max(self) -> f64 {
        match self {
            Shape::Diamond | Shape::Start => 120.0,
            Shape::Exit => 140.0,
            _ => 168.0,
        }
    }

    /// Returns the size of the shape around a text of this size.
    pub(crate) fn around(self, text: Size) -> Size {
        let (width, height) = (text.width + 2.0 * PAD.width, text.height + 2.0 * PAD.height);
        let size = match self {
            Shape::Box => Size { width, height },
            Shape::Start | Shape::Diamond => slanted(text),
            Shape::Exit => Size { width: width.max(52.0), height: height.max(44.0) },
            Shape::Hexagon => Size { width: width + height / 2.0, height },
            Shape::Parallelogram => Size { width: width + LEAN, height },
            Shape::Component => Size { width: width + TAB.width, height },
            Shape::TripleOctagon => Size { width: width + 4.0 * RING, height: height + 4.0 * RING },
            Shape::House => Size { width, height: height + ROOF },
            Shape::Octagon => Size { width: width + 4.0, height: height + 2.0 },
        };
        Size { width: even(size.width.max(LEAST.width)), height: even(size.height.max(LEAST.height)) }
    }

    /// Returns the distance from the centre of the shape down to the centre of the text.
    pub(crate) fn text_drop(self) -> f64 {
        if self == Shape::House { ROOF / 2.0 - 1.0 } else { 0.0 }
    }

    /// Returns the corners of the outline, relative to the centre.
    pub(crate) fn outline(self, size: Size) -> Vec<Point> {
        let (x, y) = (size.width / 2.0, size.height / 2.0);
        match self {
            Shape::Box | Shape::Exit | Shape::Component => vec![at(-x, -y), at(x, -y), at(x, y), at(-x, y)],
            Shape::Start | Shape::Diamond => vec![at(0.0, -y), at(x, 0.0), at(0.0, y), at(-x, 0.0)],
            Shape::Hexagon => {
                let cut = y / 2.0;
                vec![at(cut - x, -y), at(x - cut, -y), at(x, 0.0), at(x - cut, y), at(cut - x, y), at(-x, 0.0)]
            }
            Shape::Parallelogram => vec![at(LEAN - x, -y), at(x, -y), at(x - LEAN, y), at(-x, y)],
            Shape::House => vec![at(0.0, -y), at(x, ROOF - y), at(x, y), at(-x, y), at(-x, ROOF - y)],
            Shape::Octagon | Shape::TripleOctagon => octagon(size),
        }
    }

    /// Returns the maximum distance of a link's end from the middle of a side: `width` at the top and bottom, `height`
    /// at the left and right.
    pub(crate) fn reach(self, size: Size) -> Size {
        let (x, y) = (size.width / 2.0, size.height / 2.0);
        match self {
            // At the top and bottom of a diamond, all links end at the corner.
            Shape::Start | Shape::Diamond => Size { width: 0.0, height: y * 0.4 },
            Shape::House => Size { width: x * 0.6, height: y - ROOF - 2.0 },
            Shape::Hexagon => Size { width: x - y / 2.0 - 6.0, height: y * 0.5 },
            Shape::Parallelogram => Size { width: x - LEAN - 6.0, height: y - 8.0 },
            Shape::Octagon | Shape::TripleOctagon => Size { width: x - cut(size) - 4.0, height: y - cut(size) },
            Shape::Box | Shape::Exit | Shape::Component => Size { width: x - 10.0, height: y - 8.0 },
        }
    }

    /// Returns the border with rounded corners.
    pub(crate) fn border(self, size: Size) -> Path {
        rounded(&self.outline(size), self.radius())
    }

    fn radius(self) -> f64 {
        match self {
            Shape::Box => 7.0,
            Shape::Component | Shape::Exit => 3.0,
            _ => 2.0,
        }
    }

    /// Returns closed figures that are drawn over the border: inner rings and tabs.
    pub(crate) fn figures(self, size: Size) -> Vec<Path> {
        let inner = |by: f64| Size { width: size.width - 2.0 * by, height: size.height - 2.0 * by };
        match self {
            Shape::TripleOctagon => [RING, 2.0 * RING].map(|by| rounded(&octagon(inner(by)), 2.0)).to_vec(),
            Shape::Component => [-1.0, 1.0].map(|side| tab(size, side * size.height / 5.0)).to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns lines that are drawn over the border: the marks of start and exit.
    pub(crate) fn lines(self, size: Size) -> Vec<Path> {
        let (x, y) = (size.width / 2.0, size.height / 2.0);
        let stroke = |from: Point, to: Point| {
            let mut path = Path::from(from);
            path.line(to);
            path
        };
        match self {
            Shape::Start => {
                let (dx, dy) = (x * 0.24, y * 0.24);
                vec![
                    stroke(at(-dx, dy - y), at(dx, dy - y)),
                    stroke(at(-dx, y - dy), at(dx, y - dy)),
                    stroke(at(dx - x, -dy), at(dx - x, dy)),
                    stroke(at(x - dx, -dy), at(x - dx, dy)),
                ]
            }
            Shape::Exit => {
                let cut = 10.0;
                let corner = |sx: f64, sy: f64| stroke(at(sx * (x - cut), sy * y), at(sx * x, sy * (y - cut)));
                vec![corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the inner border of a goal gate.
    pub(crate) fn gate(self, size: Size) -> Path {
        let by = if self == Shape::TripleOctagon { 3.0 * RING } else { 3.5 };
        // For the same distance between the borders, a slanted side must be moved further than a straight side.
        let share = if matches!(self, Shape::Diamond | Shape::Start) { 2.0 } else { 1.0 };
        let across = by * share * if share > 1.0 { size.width / size.height } else { 1.0 };
        let inner = Size { width: size.width - 2.0 * across, height: size.height - 2.0 * by * share };
        let outline = match self {
            Shape::Parallelogram => {
                let (x, y, lean) = (inner.width / 2.0, inner.height / 2.0, LEAN * inner.height / size.height);
                let slack = (size.width - inner.width) / 2.0 * 0.25;
                vec![at(lean - x + slack, -y), at(x - slack, -y), at(x - lean - slack, y), at(slack - x, y)]
            }
            _ => self.outline(inner),
        };
        rounded(&outline, (self.radius() - 2.0).max(1.0))
    }
}

/// Returns the size of a diamond around a text. It is wide enough that the corners of the text are on the sloping
/// sides.
fn slanted(text: Size) -> Size {
    let height = (text.height * 2.0 + 20.0).max(48.0);
    let free = 1.0 - (text.height + 2.0) / height;
    Size { width: (text.width + 14.0) / free, height }
}

/// Returns the length that an octagon loses at each corner.
fn cut(size: Size) -> f64 {
    (size.height * 0.29).min(size.width * 0.29)
}

fn octagon(size: Size) -> Vec<Point> {
    let (x, y, cut) = (size.width / 2.0, size.height / 2.0, cut(size));
    vec![
        at(cut - x, -y),
        at(x - cut, -y),
        at(x, cut - y),
        at(x, y - cut),
        at(x - cut, y),
        at(cut - x, y),
        at(-x, y - cut),
        at(-x, cut - y),
    ]
}

/// Returns one tab of a component, on the left border.
fn tab(size: Size, y: f64) -> Path {
    let (x, half) = (-size.width / 2.0, TAB.height / 2.0);
    let corners = [
        at(x - TAB.width, y - half),
        at(x + TAB.width, y - half),
        at(x + TAB.width, y + half),
        at(x - TAB.width, y + half),
    ];
    rounded(&corners, 1.0)
}

/// Returns the next even number, so that half of it is a whole number.
fn even(value: f64) -> f64 {
    (value / 2.0).ceil() * 2.0
}
