//! Divides the paths of edges into parts, so that a part that several edges share is drawn only once.
//!
//! If a shared part were drawn twice, the dashes of one edge would fill the gaps of the other.

use super::drawing::DrawnEdge;
use super::geometry::{Point, Step, tenths};
use std::collections::HashMap;

/// A position in tenths of a pixel.
type Place = (i64, i64);

fn place(point: Point) -> Place {
    ((tenths(point.x) * 10.0) as i64, (tenths(point.y) * 10.0) as i64)
}

/// Sets the number of steps that are drawn for each edge. Edges that a run took come first, then longer ones.
pub(super) fn divide(edges: &mut [DrawnEdge]) {
    let length = |edge: &DrawnEdge| edge.path.flat().windows(2).map(|pair| pair[0].distance(pair[1])).sum::<f64>();
    let lengths: Vec<f64> = edges.iter().map(length).collect();
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|one, other| {
        let taken = |index: &usize| edges[*index].taken > 0;
        taken(other).cmp(&taken(one)).then(lengths[*other].total_cmp(&lengths[*one])).then(one.cmp(other))
    });
    let mut drawn: HashMap<(u32, Place), Vec<DrawnStep>> = HashMap::new();
    for index in order {
        let edge = &mut edges[index];
        let tone = edge.tone as u32;
        let mut from = edge.path.start;
        let starts: Vec<Point> = edge.path.steps.iter().map(|step| std::mem::replace(&mut from, step.end())).collect();
        let steps = edge.path.steps.iter().zip(starts).map(|(step, start)| DrawnStep { start, step: *step });
        let steps: Vec<DrawnStep> = steps.collect();
        let is_known = |step: &&DrawnStep| {
            let known = drawn.get(&(tone, place(step.step.end())));
            known.is_some_and(|known| known.iter().any(|other| other.covers(step)))
        };
        let shared = steps.iter().rev().take_while(is_known).count();
        edge.own_steps = edge.path.steps.len() - shared;
        for step in steps.into_iter().take(edge.own_steps) {
            drawn.entry((tone, place(step.step.end()))).or_default().push(step);
        }
    }
}

/// A step of a path with its start.
struct DrawnStep {
    start: Point,
    step: Step,
}

impl DrawnStep {
    /// Returns true if this step covers `other` completely and both have the same end.
    fn covers(&self, other: &DrawnStep) -> bool {
        let (start, from) = (self.start, other.start);
        let (Step::Line(end), Step::Line(_)) = (self.step, other.step) else {
            return place(start) == place(from) && self.step == other.step;
        };
        let between = |low: f64, high: f64, value: f64| (low.min(high)..=low.max(high)).contains(&value);
        let is_straight = (start.x == end.x && from.x == end.x) || (start.y == end.y && from.y == end.y);
        is_straight && between(start.x, end.x, from.x) && between(start.y, end.y, from.y)
    }
}
