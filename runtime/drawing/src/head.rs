//! Arrow heads: a triangle at the end of a path, and the path without the part under the triangle.

use super::geometry::{Path, Point, Step, at};

/// Length of a head, and half of its width.
const LENGTH: f64 = 9.0;
const HALF: f64 = 3.8;

/// A path with its arrow head.
pub(crate) struct Arrow {
    /// The path, which ends inside the head.
    pub(crate) shaft: Path,
    /// The corners of the head, the tip first.
    pub(crate) head: [Point; 3],
}

impl Arrow {
    /// Creates the arrow along a path.
    pub(crate) fn new(path: &Path) -> Arrow {
        let tip = path.end();
        let before = match path.steps[..] {
            [.., Step::Curve(_, second, _)] => second,
            [.., step, Step::Line(_)] => step.end(),
            _ => path.start,
        };
        let length = before.distance(tip).max(1e-9);
        let ahead = at((tip.x - before.x) / length, (tip.y - before.y) / length);
        let back = |by: f64, aside: f64| tip.moved(-ahead.x * by - ahead.y * aside, -ahead.y * by + ahead.x * aside);
        let mut shaft = path.clone();
        let end = back((LENGTH - 1.0).min(length), 0.0);
        match shaft.steps.last_mut() {
            Some(Step::Line(last)) => *last = end,
            Some(Step::Curve(_, _, last)) => *last = end,
            None => {}
        }
        Arrow { shaft, head: [tip, back(LENGTH, HALF), back(LENGTH, -HALF)] }
    }
}
