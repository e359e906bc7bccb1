//! Frames around subgraphs: the rows they take between layers, their dotted borders, their labels.
//!
//! Lines run over a border, which stays dotted beside them; a label stands where no line runs, if there is such a place.

use super::canvas::Canvas;
use super::{CharSet, TextScene};
use crate::drawing::Line;
use crate::layout::ClusterBorder;
use crate::text::columns;

/// Rows that frames take.
#[derive(Default)]
pub(super) struct FrameRows {
    /// Of each frame: rows from its upper border to its first layer, and from its last to its lower border.
    own: Vec<(usize, usize)>,
    /// Above each layer, and below.
    pub(super) above: Vec<usize>,
    pub(super) below: Vec<usize>,
}

/// The frames that there are.
fn all<'a>(scene: &'a TextScene<'_>) -> impl DoubleEndedIterator<Item = (usize, &'a ClusterBorder)> {
    scene.layered.borders.iter().enumerate().filter_map(|(index, border)| border.as_ref().map(|border| (index, border)))
}

impl FrameRows {
    pub(super) fn of(scene: &TextScene<'_>) -> FrameRows {
        let layers = scene.layered.layers.len();
        let mut rows =
            FrameRows { own: vec![(1, 1); scene.frames.len()], above: vec![0; layers], below: vec![0; layers] };
        // Frames come before those in them.
        for (index, border) in all(scene).rev() {
            let (top, bottom) = rows.own[index];
            for (other, around) in all(scene).take_while(|(other, _)| *other < index) {
                let encloses = |border: &ClusterBorder| {
                    let (left, right) = (scene.xs[around.left[0]], scene.xs[around.right[0]]);
                    (left..right).contains(&scene.xs[border.left[0]])
                };
                if around.first == border.first && encloses(border) {
                    rows.own[other].0 = rows.own[other].0.max(top + 1);
                }
                if around.last() == border.last() && encloses(border) {
                    rows.own[other].1 = rows.own[other].1.max(bottom + 1);
                }
            }
            rows.above[border.first] = rows.above[border.first].max(top);
            rows.below[border.last()] = rows.below[border.last()].max(bottom);
        }
        rows
    }

    /// The first and last row of a frame around layers in these rows.
    fn extent(&self, index: usize, first: usize, last: usize) -> (usize, usize) {
        (first.saturating_sub(1 + self.own[index].0), last + self.own[index].1)
    }
}

/// Draws the borders; `extent` is the first and last row of a layer.
pub(super) fn draw(
    scene: &TextScene<'_>,
    rows: &FrameRows,
    canvas: &mut Canvas,
    extent: impl Fn(usize) -> (usize, usize),
) {
    let (corners, across, along) = match canvas.char_set() {
        CharSet::Ascii => (['.', '.', '.', '.'], '.', ':'),
        CharSet::Unicode => (['┌', '┐', '└', '┘'], '┄', '┊'),
    };
    for (index, border) in all(scene) {
        let (top, bottom) = rows.extent(index, extent(border.first).0, extent(border.last()).1);
        let (left, right) = (scene.xs[border.left[0]], scene.xs[border.right[0]]);
        for x in left..=right {
            canvas.frame(x, top, across);
            canvas.frame(x, bottom, across);
        }
        for y in top + 1..bottom {
            canvas.frame(left, y, along);
            canvas.frame(right, y, along);
        }
        for ((x, y), character) in [(left, top), (right, top), (left, bottom), (right, bottom)].into_iter().zip(corners)
        {
            canvas.frame(x, y, character);
        }
    }
}

/// Writes the labels into the upper borders.
pub(super) fn labels(
    scene: &TextScene<'_>,
    rows: &FrameRows,
    canvas: &mut Canvas,
    extent: impl Fn(usize) -> (usize, usize),
) {
    for (index, border) in all(scene) {
        let (top, _) = rows.extent(index, extent(border.first).0, extent(border.last()).1);
        let (left, right) = (scene.xs[border.left[0]] + 1, scene.xs[border.right[0]]);
        for Line { text, .. } in &scene.frames[index].lines {
            let text = match (canvas.char_set(), text.strip_suffix('…')) {
                // In the place of as many characters as the dots take.
                (CharSet::Ascii, Some(start)) => {
                    let kept = start.chars().count().saturating_sub(2);
                    format!(" {}... ", start.chars().take(kept).collect::<String>())
                }
                _ => format!(" {text} "),
            };
            let last = right.saturating_sub(columns(&text)).max(left);
            let free = (left..=last).find(|x| canvas.is_frame(*x, top, columns(&text)));
            canvas.write(free.unwrap_or(left), top, &text);
        }
    }
}
