//! A sheet of pixels: fills and strokes with smooth edges, and nothing else.

use crate::geometry::{Point, at};
use crate::palette::Colour;

/// A pixel that is covered.
const WHOLE: u16 = 1 << 12;
/// Lines in each row of pixels on which a fill is measured.
const LINES: usize = 4;

/// Colours in rows from the top, three bytes each.
pub(super) struct Pixels {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bytes: Vec<u8>,
    /// How much of each pixel the figure under way covers, in parts of [`WHOLE`], and which pixels it touches.
    cover: Vec<u16>,
    touched: Vec<usize>,
}

/// A colour and how much of what is below it hides, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink {
    pub(super) colour: Colour,
    pub(super) opacity: f64,
}

impl Pixels {
    /// A sheet in one colour.
    pub(super) fn new(width: usize, height: usize, ground: Colour) -> Pixels {
        let bytes = channels(ground).repeat(width * height);
        Pixels { width, height, bytes, cover: vec![0; width * height], touched: Vec::new() }
    }

    /// Fills a closed outline.
    pub(super) fn fill(&mut self, outline: &[Point], ink: Ink) {
        let low = outline.iter().map(|point| point.y).fold(f64::INFINITY, f64::min).max(0.0) as usize;
        let high = outline.iter().map(|point| point.y).fold(f64::NEG_INFINITY, f64::max).max(0.0).ceil() as usize;
        for row in low..high.min(self.height) {
            for line in 0..LINES {
                let y = row as f64 + (line as f64 + 0.5) / LINES as f64;
                let mut xs = crossings(outline, y);
                xs.sort_by(f64::total_cmp);
                for pair in xs.chunks_exact(2) {
                    self.span(row, pair[0], pair[1]);
                }
            }
        }
        self.apply(ink);
    }

    /// Covers a part of one line of a row.
    fn span(&mut self, row: usize, from: f64, to: f64) {
        let (from, to) = (from.max(0.0), to.min(self.width as f64));
        let mut column = from as usize;
        while (column as f64) < to {
            let part = (to.min(column as f64 + 1.0) - from.max(column as f64)).max(0.0);
            let part = (part * f64::from(WHOLE) / LINES as f64).round() as u16;
            self.touch(row * self.width + column, |cover| cover.saturating_add(part));
            column += 1;
        }
    }

    /// Draws a line over points with round ends and corners.
    pub(super) fn stroke(&mut self, points: &[Point], width: f64, ink: Ink) {
        for pair in points.windows(2) {
            self.segment(pair[0], pair[1], width / 2.0);
        }
        self.apply(ink);
    }

    fn segment(&mut self, a: Point, b: Point, half: f64) {
        let reach = half + 1.0;
        let range = |low: f64, high: f64, most: usize| {
            (low - reach).max(0.0) as usize..((high + reach).max(0.0).ceil() as usize).min(most)
        };
        for row in range(a.y.min(b.y), a.y.max(b.y), self.height) {
            for column in range(a.x.min(b.x), a.x.max(b.x), self.width) {
                let pixel = at(column as f64 + 0.5, row as f64 + 0.5);
                let cover = (half + 0.5 - distance(pixel, a, b)).clamp(0.0, 1.0).min(2.0 * half);
                let cover = (cover * f64::from(WHOLE)).round() as u16;
                if cover > 0 {
                    self.touch(row * self.width + column, |before| before.max(cover));
                }
            }
        }
    }

    fn touch(&mut self, index: usize, change: impl Fn(u16) -> u16) {
        let before = self.cover[index];
        if before == 0 {
            self.touched.push(index);
        }
        self.cover[index] = change(before);
    }

    /// Lays the ink over what the figure covers.
    fn apply(&mut self, ink: Ink) {
        let colour = channels(ink.colour);
        for index in std::mem::take(&mut self.touched) {
            let cover = std::mem::take(&mut self.cover[index]).min(WHOLE);
            let share = f64::from(cover) / f64::from(WHOLE) * ink.opacity;
            for (byte, target) in self.bytes[index * 3..index * 3 + 3].iter_mut().zip(colour) {
                *byte = (f64::from(*byte) + (f64::from(target) - f64::from(*byte)) * share).round() as u8;
            }
        }
    }
}

fn channels(colour: Colour) -> [u8; 3] {
    let [_, red, green, blue] = colour.to_be_bytes();
    [red, green, blue]
}

/// Where a horizontal meets an outline.
fn crossings(outline: &[Point], y: f64) -> Vec<f64> {
    let sides = outline.iter().zip(outline.iter().cycle().skip(1));
    let meets = sides.filter(|(a, b)| (a.y <= y) != (b.y <= y));
    meets.map(|(a, b)| a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y)).collect()
}

/// The distance of a point from a straight line between two others.
fn distance(point: Point, a: Point, b: Point) -> f64 {
    let (x, y) = (b.x - a.x, b.y - a.y);
    let length = x * x + y * y;
    let share =
        if length == 0.0 { 0.0 } else { (((point.x - a.x) * x + (point.y - a.y) * y) / length).clamp(0.0, 1.0) };
    point.distance(a.towards(b, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: Ink = Ink { colour: 0, opacity: 1.0 };

    #[test]
    fn a_square_covers_its_pixels_and_half_of_a_half() {
        let mut pixels = Pixels::new(4, 3, 0xffffff);
        pixels.fill(&[at(1.0, 1.0), at(2.5, 1.0), at(2.5, 2.0), at(1.0, 2.0)], INK);
        let row: Vec<u8> = pixels.bytes[12..24].iter().step_by(3).copied().collect();
        assert_eq!(row, [255, 0, 128, 255]);
        assert!(pixels.bytes[..12].iter().all(|byte| *byte == 255));
    }

    #[test]
    fn a_line_is_as_wide_as_asked_and_may_leave_the_sheet() {
        let mut pixels = Pixels::new(5, 5, 0xffffff);
        pixels.stroke(&[at(-3.0, 2.5), at(9.0, 2.5)], 1.0, INK);
        let column: Vec<u8> = pixels.bytes.chunks_exact(15).map(|row| row[6]).collect();
        assert_eq!(column, [255, 255, 0, 255, 255]);
    }
}
