//! Maps the coordinates of the layout, in which layers follow each other downwards, to the direction that `rankdir`
//! selects.

use super::geometry::{Point, Size, at};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::key;

/// The direction in which layers follow each other in the picture (`rankdir`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    Up,
    Right,
    Left,
}

impl Direction {
    /// Returns the direction for the pipeline's `rankdir`: `TB`, `BT`, `LR` or `RL`. The default is down.
    pub(crate) fn from_pipeline(pipeline: &Pipeline) -> Direction {
        match pipeline.attributes.get(key::RANKDIR).map(|attribute| attribute.value.trim()) {
            Some("LR") => Direction::Right,
            Some("RL") => Direction::Left,
            Some("BT") => Direction::Up,
            _ => Direction::Down,
        }
    }

    /// Returns true if layers follow each other to the right or left.
    pub(crate) fn is_sideways(self) -> bool {
        matches!(self, Direction::Right | Direction::Left)
    }

    /// Converts a size from the layout to the picture, or from the picture to the layout.
    pub(crate) fn turn(self, size: Size) -> Size {
        if self.is_sideways() { size.turned() } else { size }
    }

    /// Converts a point from the layout to the picture. `whole` is the size of the picture.
    pub(crate) fn to_paper(self, point: Point, whole: Size) -> Point {
        match self {
            Direction::Down => point,
            Direction::Up => at(point.x, whole.height - point.y),
            Direction::Right => point.turned(),
            Direction::Left => at(whole.width - point.y, point.x),
        }
    }

    /// Converts a point relative to a centre from the picture to the layout.
    pub(crate) fn to_layout(self, point: Point) -> Point {
        match self {
            Direction::Down => point,
            Direction::Up => at(point.x, -point.y),
            Direction::Right => point.turned(),
            Direction::Left => at(point.y, -point.x),
        }
    }
}
