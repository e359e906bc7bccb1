//! Which part of each edge's way is its own: what several edges share is drawn once, or dashes of one would fill the gaps of another.

use super::drawing::DrawnEdge;
use super::geometry::{Point, Step, tenths};
use std::collections::HashMap;

/// A place, in tenths of a pixel.
type Place = (i64, i64);

fn place(point: Point) -> Place {
    ((tenths(point.x) * 10.0) as i64, (tenths(point.y) * 10.0) as i64)
}

/// Sets how many steps of each edge are drawn. Edges that a run took come first, then long ones before those that join them.
pub(super) fn divide(edges: &mut [DrawnEdge]) {
    let length = |edge: &DrawnEdge| edge.path.flat().windows(2).map(|pair| pair[0].distance(pair[1])).sum::<f64>();
    let lengths: Vec<f64> = edges.iter().map(length).collect();
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|one, other| {
        let taken = |index: &usize| edges[*index].taken > 0;
        taken(other).cmp(&taken(one)).then(lengths[*other].total_cmp(&lengths[*one])).then(one.cmp(other))
    });
    let mut drawn: HashMap<(u32, Place), Vec<(Point, Step)>> = HashMap::new();
    for index in order {
        let edge = &mut edges[index];
        let tone = edge.tone as u32;
        let mut from = edge.path.start;
        let starts: Vec<Point> = edge.path.steps.iter().map(|step| std::mem::replace(&mut from, step.end())).collect();
        let is_known = |(step, start): (&Step, &Point)| {
            let known = drawn.get(&(tone, place(step.end())));
            known.is_some_and(|known| known.iter().any(|(other, its)| covers((*other, its), (*start, step))))
        };
        let shared = edge.path.steps.iter().zip(&starts).rev().take_while(|pair| is_known(*pair)).count();
        edge.own_steps = edge.path.steps.len() - shared;
        for (step, start) in edge.path.steps.iter().zip(starts).take(edge.own_steps) {
            drawn.entry((tone, place(step.end()))).or_default().push((start, *step));
        }
    }
}

/// True when the first of two steps with the same end lies over all of the second.
fn covers((start, step): (Point, &Step), (from, other): (Point, &Step)) -> bool {
    let (Step::Line(end), Step::Line(_)) = (step, other) else {
        return place(start) == place(from) && step == other;
    };
    let between = |low: f64, high: f64, value: f64| (low.min(high)..=low.max(high)).contains(&value);
    let is_straight = (start.x == end.x && from.x == end.x) || (start.y == end.y && from.y == end.y);
    is_straight && between(start.x, end.x, from.x) && between(start.y, end.y, from.y)
}
