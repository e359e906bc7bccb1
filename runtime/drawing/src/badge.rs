//! The badges that a run adds to a node: a sign for its state, and its number of visits.

use super::drawing::DrawnNode;
use super::geometry::{Path, Point, Size, at, cut_horizontally};
use super::overlay::NodeProgress;
use super::text::width;
use glovebox_pipeline::ir::Status;

/// Radius of the disc of the sign.
pub(crate) const RADIUS: f64 = 7.5;
/// Distance of the badges from the corners of a node.
const INSET: f64 = 10.0;
/// Font size of the number of visits.
pub(crate) const VISITS_SIZE: f64 = 10.0;

/// The badges of a node.
pub(crate) struct Badges {
    pub(crate) sign_centre: Point,
    /// The lines of the sign on its disc.
    pub(crate) sign: Vec<Path>,
    /// The badge with the number of visits; `None` before the second visit.
    pub(crate) visits: Option<Visits>,
}

/// The badge with the number of visits.
pub(crate) struct Visits {
    pub(crate) centre: Point,
    pub(crate) size: Size,
    pub(crate) text: String,
}

/// Returns the badges of a node that the run reached.
pub(crate) fn badges(node: &DrawnNode, progress: NodeProgress, visits: u32) -> Badges {
    // A little below the upper edge, so that the badges of slanted shapes are on their border too.
    let y = -node.size.height / 2.0 + 4.0;
    let half = node.size.width / 2.0;
    let (left, right) = cut_horizontally(&node.shape.outline(node.size), y).unwrap_or((-half, half));
    // Away from the corners and from the middle, because edges arrive there.
    let sign_centre = node.centre.moved((left + INSET).min(-2.0 * RADIUS), y - 3.0);
    let text = format!("×{visits}");
    let size = Size { width: (width(&text, VISITS_SIZE) + 10.0).ceil(), height: 15.0 };
    let aside = (right - INSET - size.width / 2.0 + RADIUS).max(RADIUS + size.width / 2.0);
    let badge = Visits { centre: node.centre.moved(aside, y - 3.0), size, text };
    Badges { sign_centre, sign: sign(progress, sign_centre), visits: (visits > 1).then_some(badge) }
}

fn sign(progress: NodeProgress, centre: Point) -> Vec<Path> {
    let strokes: &[&[(f64, f64)]] = match progress {
        NodeProgress::Running => &[&[(-1.5, -3.0), (3.0, 0.0), (-1.5, 3.0), (-1.5, -3.0)]],
        NodeProgress::Ended(Status::Success) => &[&[(-3.2, 0.2), (-0.9, 2.6), (3.3, -2.4)]],
        NodeProgress::Ended(Status::PartialSuccess) => &[&[(-3.2, 0.8), (-1.0, -1.0), (1.0, 0.8), (3.2, -1.0)]],
        NodeProgress::Ended(Status::Retry) => &[
            &[(-0.9, -4.2), (-3.5, -1.7), (-0.9, 0.8)],
            &[(-3.2, -1.7), (1.2, -1.7), (3.2, 0.5), (1.8, 3.0), (-1.2, 3.2)],
        ],
        NodeProgress::Ended(Status::Fail) => &[&[(-2.6, -2.6), (2.6, 2.6)], &[(-2.6, 2.6), (2.6, -2.6)]],
        NodeProgress::Ended(Status::Skipped) => &[&[(-3.0, 0.0), (3.0, 0.0)]],
    };
    let path = |points: &&[(f64, f64)]| {
        let mut places = points.iter().map(|(x, y)| at(centre.x + x, centre.y + y));
        let mut path = Path::from(places.next().unwrap_or(centre));
        places.for_each(|place| path.line(place));
        path
    };
    strokes.iter().map(path).collect()
}
