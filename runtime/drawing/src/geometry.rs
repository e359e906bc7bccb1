//! Points, sizes and paths of a picture, in CSS pixels with `y` downwards.
//!
//! All code of this crate computes coordinates only with `+ - * /`, comparison and square root. IEEE 754 defines their
//! results exactly, so the same pipeline gives the same bytes on every machine.

/// A point.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// Distance from the left edge of the picture.
    pub x: f64,
    /// Distance from the top edge of the picture.
    pub y: f64,
}

/// Creates a point.
pub(crate) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Point {
    /// Returns the point moved by these distances.
    pub(crate) fn moved(self, x: f64, y: f64) -> Point {
        at(self.x + x, self.y + y)
    }

    /// Returns the point with `x` and `y` exchanged.
    pub(crate) fn turned(self) -> Point {
        at(self.y, self.x)
    }

    /// Returns the point at a fraction of the line to another point: 0 is this point, 1 is the other point.
    pub(crate) fn towards(self, other: Point, share: f64) -> Point {
        at(self.x + (other.x - self.x) * share, self.y + (other.y - self.y) * share)
    }

    /// Returns the distance to another point.
    pub(crate) fn distance(self, other: Point) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

/// A width and a height.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Size {
    /// Extent from left to right.
    pub width: f64,
    /// Extent from top to bottom.
    pub height: f64,
}

impl Size {
    /// Returns the size with width and height exchanged.
    pub(crate) fn turned(self) -> Size {
        Size { width: self.height, height: self.width }
    }
}

/// One segment of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A straight line to a point.
    Line(Point),
    /// A cubic Bézier curve: two control points and the end.
    Curve(Point, Point, Point),
}

impl Step {
    /// Returns the end of the step.
    pub fn end(self) -> Point {
        match self {
            Step::Line(end) | Step::Curve(_, _, end) => end,
        }
    }

    /// Returns the step with `change` applied to every point.
    fn map(self, change: impl Fn(Point) -> Point) -> Step {
        match self {
            Step::Line(end) => Step::Line(change(end)),
            Step::Curve(first, second, end) => Step::Curve(change(first), change(second), change(end)),
        }
    }
}

/// A line of straight and curved steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    /// The first point.
    pub start: Point,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// Maximum radius of a rounded corner of a path.
const CORNER: f64 = 10.0;

impl Path {
    /// Creates an empty path that starts at this point.
    pub(crate) fn from(start: Point) -> Path {
        Path { start, steps: Vec::new() }
    }

    /// Returns the last point.
    pub fn end(&self) -> Point {
        self.steps.last().map_or(self.start, |step| step.end())
    }

    /// Adds a straight line. A step without length is left out, and two steps on the same vertical line are merged.
    pub(crate) fn line(&mut self, to: Point) {
        let from = self.end();
        if from == to {
            return;
        }
        let before = match self.steps[..] {
            [.., before, _] => before.end(),
            _ => self.start,
        };
        match self.steps.last_mut() {
            Some(Step::Line(end)) if before.x == from.x && from.x == to.x && (before.y < from.y) == (from.y < to.y) => {
                *end = to;
            }
            _ => self.steps.push(Step::Line(to)),
        }
    }

    /// Adds a curve that starts and ends vertically.
    pub(crate) fn swing(&mut self, to: Point) {
        let from = self.end();
        if from.x == to.x {
            return self.line(to);
        }
        let middle = (from.y + to.y) / 2.0;
        self.steps.push(Step::Curve(at(from.x, middle), at(to.x, middle), to));
    }

    /// Adds a line through a rounded corner to a point.
    pub(crate) fn corner(&mut self, corner: Point, to: Point) {
        let from = self.end();
        let reach = CORNER.min(from.distance(corner) / 2.0).min(corner.distance(to) / 2.0);
        if reach <= 0.0 {
            self.line(corner);
            return self.line(to);
        }
        let enter = corner.towards(from, reach / from.distance(corner));
        let leave = corner.towards(to, reach / corner.distance(to));
        self.line(enter);
        self.steps.push(Step::Curve(enter.towards(corner, 0.55), leave.towards(corner, 0.55), leave));
        self.line(to);
    }

    /// Returns the path with `change` applied to every point.
    pub(crate) fn map(&self, change: impl Fn(Point) -> Point) -> Path {
        let steps = self.steps.iter().map(|step| step.map(&change)).collect();
        Path { start: change(self.start), steps }
    }

    /// Returns the path as a polyline that approximates its curves.
    pub fn flat(&self) -> Vec<Point> {
        const PIECES: u32 = 16;
        let mut points = vec![self.start];
        for step in &self.steps {
            let from = points[points.len() - 1];
            match *step {
                Step::Line(end) => points.push(end),
                Step::Curve(first, second, end) => {
                    let piece = |index| bezier([from, first, second, end], f64::from(index) / f64::from(PIECES));
                    points.extend((1..=PIECES).map(piece));
                }
            }
        }
        points
    }
}

fn bezier([a, b, c, d]: [Point; 4], share: f64) -> Point {
    let (ab, bc, cd) = (a.towards(b, share), b.towards(c, share), c.towards(d, share));
    ab.towards(bc, share).towards(bc.towards(cd, share), share)
}

/// Returns a closed outline whose corners are rounded by at most `radius`.
pub(crate) fn rounded(corners: &[Point], radius: f64) -> Path {
    let count = corners.len();
    let cut = |index: usize| {
        let (before, corner, after) =
            (corners[(index + count - 1) % count], corners[index], corners[(index + 1) % count]);
        let (back, on) = (corner.distance(before), corner.distance(after));
        let reach = radius.min(back / 2.0).min(on / 2.0);
        (corner.towards(before, reach / back.max(1e-9)), corner, corner.towards(after, reach / on.max(1e-9)))
    };
    let mut path = Path::from(cut(0).2);
    for index in (1..count).chain([0]) {
        let (enter, corner, leave) = cut(index);
        path.steps.push(Step::Line(enter));
        if radius > 0.0 {
            path.steps.push(Step::Curve(enter.towards(corner, 0.55), leave.towards(corner, 0.55), leave));
        }
    }
    path
}

/// Rounds a number to one decimal for SVG and JSON.
pub(crate) fn tenths(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// Returns the `y` of the topmost and the lowest point at which the vertical line at `x` meets a closed outline.
/// Returns `None` if it misses the outline.
pub(crate) fn cut_vertically(outline: &[Point], x: f64) -> Option<(f64, f64)> {
    let mut found: Option<(f64, f64)> = None;
    for (index, &a) in outline.iter().enumerate() {
        let b = outline[(index + 1) % outline.len()];
        if (a.x - x) * (b.x - x) > 0.0 {
            continue;
        }
        let ends = if a.x == b.x {
            [a.y, b.y]
        } else {
            let y = a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
            [y, y]
        };
        for y in ends {
            let (low, high) = found.unwrap_or((y, y));
            found = Some((low.min(y), high.max(y)));
        }
    }
    found
}

/// Returns the `x` of the leftmost and the rightmost point at which the horizontal line at `y` meets a closed outline.
/// Returns `None` if it misses the outline.
pub(crate) fn cut_horizontally(outline: &[Point], y: f64) -> Option<(f64, f64)> {
    let turned: Vec<Point> = outline.iter().map(|point| point.turned()).collect();
    cut_vertically(&turned, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_is_cut_on_its_slopes() {
        let diamond = [at(0.0, -10.0), at(20.0, 0.0), at(0.0, 10.0), at(-20.0, 0.0)];
        assert_eq!(cut_vertically(&diamond, 0.0), Some((-10.0, 10.0)));
        assert_eq!(cut_vertically(&diamond, 10.0), Some((-5.0, 5.0)));
        assert_eq!(cut_horizontally(&diamond, 5.0), Some((-10.0, 10.0)));
        assert_eq!(cut_vertically(&diamond, 21.0), None);
    }

    #[test]
    fn straight_pieces_become_one() {
        let mut path = Path::from(at(5.0, 0.0));
        path.line(at(5.0, 10.0));
        path.swing(at(5.0, 20.0));
        assert_eq!(path.steps, [Step::Line(at(5.0, 20.0))]);
        path.swing(at(9.0, 40.0));
        assert_eq!(path.steps[1], Step::Curve(at(5.0, 30.0), at(9.0, 30.0), at(9.0, 40.0)));
        assert_eq!(path.flat().last(), Some(&at(9.0, 40.0)));
    }

    #[test]
    fn there_is_no_negative_zero() {
        assert_eq!(tenths(-0.01).to_string(), "0");
        assert_eq!(tenths(1.25).to_string(), "1.3");
    }
}
