//! A drawing as pixels, for readers that take no SVG. Everything is drawn here, letters too: no library, no font file.
//!
//! Invariant: the same drawing gives the same pixels, and an image has at most [`PIXELS_MAX`] of them.

mod glyphs;
mod pixels;

use super::badge;
use super::drawing::{Drawing, DrawnBox, DrawnEdge, DrawnNode, Line, Role};
use super::geometry::{Path, Point, Size, at, rounded};
use super::head::Arrow;
use super::overlay::NodeProgress;
use super::palette::{Colour, FAINT, Theme, dashes};
use super::text::advance;
use pixels::{Ink, Pixels};

/// The most pixels of an image.
pub const PIXELS_MAX: u64 = 32_000_000;
/// Pixels for each pixel of CSS, where there is room for so many.
const SCALE: f64 = 2.0;

/// Rows of pixels from the top, three bytes each: red, green, blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub bytes: Vec<u8>,
    /// Characters that have no letter here and became empty boxes.
    pub absent: usize,
}

/// Draws with pixels; none when there would be more than [`PIXELS_MAX`].
pub fn to_image(drawing: &Drawing, theme: Theme) -> Option<Image> {
    let Size { width, height } = drawing.size;
    let fits = |scale: &f64| width * height * scale * scale <= PIXELS_MAX as f64;
    let scale = [SCALE, 1.0].into_iter().find(fits)?;
    let pixels = Pixels::new((width * scale) as usize, (height * scale) as usize, theme.basics().ground);
    let mut painter = Painter { pixels, theme, scale, is_run: drawing.is_run, absent: 0 };
    drawing.boxes.iter().for_each(|drawn| painter.box_around(drawn));
    let (taken, left): (Vec<&DrawnEdge>, Vec<&DrawnEdge>) = drawing.edges.iter().partition(|edge| edge.taken > 0);
    left.iter().chain(&taken).for_each(|edge| painter.edge(edge));
    left.iter().chain(&taken).for_each(|edge| painter.edge_label(edge));
    drawing.boxes.iter().for_each(|drawn| painter.box_label(drawn));
    drawing.nodes.iter().for_each(|node| painter.node(node));
    let (width, height) = (u32::try_from(painter.pixels.width).ok()?, u32::try_from(painter.pixels.height).ok()?);
    Some(Image { width, height, bytes: painter.pixels.bytes, absent: painter.absent })
}

struct Painter {
    pixels: Pixels,
    theme: Theme,
    scale: f64,
    is_run: bool,
    absent: usize,
}

impl Painter {
    fn points(&self, path: &Path) -> Vec<Point> {
        path.flat().iter().map(|point| at(point.x * self.scale, point.y * self.scale)).collect()
    }

    fn stroke(&mut self, path: &Path, width: f64, ink: Ink) {
        let points = self.points(path);
        self.pixels.stroke(&points, width * self.scale, ink);
    }

    fn fill(&mut self, path: &Path, ink: Ink) {
        let points = self.points(path);
        self.pixels.fill(&points, ink);
    }

    fn is_faint(&self, is_reached: bool) -> f64 {
        if self.is_run && !is_reached { FAINT } else { 1.0 }
    }

    fn box_around(&mut self, drawn: &DrawnBox) {
        let basics = self.theme.basics();
        let border = rectangle(drawn.centre, drawn.size, super::boxes::RADIUS);
        self.fill(&border, Ink { colour: basics.boxes[drawn.depth % 2], opacity: 1.0 });
        self.stroke(&closed(border), 1.0, Ink { colour: basics.box_line, opacity: 1.0 });
    }

    /// Writes the label of a box, with a rim in the colour of the box that lines end at.
    fn box_label(&mut self, drawn: &DrawnBox) {
        let basics = self.theme.basics();
        let (rim, ink) = (basics.boxes[drawn.depth % 2], basics.muted);
        for line in &drawn.lines {
            let absent = self.absent;
            for (weight, colour) in [(0.45, rim), (0.11, ink)] {
                let ink = Ink { colour, opacity: 1.0 };
                self.absent = absent;
                self.text(&line.text, line.at, line.role.size(), weight, ink);
            }
        }
    }

    fn edge(&mut self, edge: &DrawnEdge) {
        let ink = Ink { colour: self.theme.tone(edge.tone), opacity: self.is_faint(edge.taken > 0) };
        let width = if edge.taken > 0 { 2.2 } else { 1.5 };
        let (own, has_head) = edge.own();
        let arrow = has_head.then(|| Arrow::of(&own));
        let shaft = arrow.as_ref().map_or(&own, |arrow| &arrow.shaft);
        match dashes(edge.tone) {
            None => self.stroke(shaft, width, ink),
            Some(dashes) => {
                for piece in dashed(&shaft.flat(), dashes) {
                    self.stroke(&polyline(&piece), width, ink);
                }
            }
        }
        if let Some(arrow) = &arrow {
            self.fill(&polyline(&arrow.head), ink);
        }
    }

    fn edge_label(&mut self, edge: &DrawnEdge) {
        let Some(label) = &edge.label else { return };
        let pill = rectangle(label.centre, label.size, 3.0);
        self.fill(&pill, Ink { colour: self.theme.basics().ground, opacity: 1.0 });
        let opacity = self.is_faint(edge.taken > 0);
        label.lines.iter().for_each(|line| self.line(line, opacity));
    }

    fn line(&mut self, line: &Line, opacity: f64) {
        let basics = self.theme.basics();
        let colour = if matches!(line.role, Role::Note | Role::Condition) { basics.muted } else { basics.ink };
        let weight = if line.role == Role::Label { 0.095 } else { 0.088 };
        self.text(&line.text, line.at, line.role.size(), weight, Ink { colour, opacity });
    }

    /// Writes text around the middle of its baseline; `weight` is the width of its strokes in parts of its size.
    fn text(&mut self, text: &str, middle: Point, size: f64, weight: f64, ink: Ink) {
        let mut x = middle.x - super::text::width(text, size) / 2.0;
        for character in text.chars() {
            let place = advance(character) * size;
            let (strokes, is_own) = glyphs::strokes(character, size, place);
            self.absent += usize::from(!is_own);
            for stroke in strokes {
                self.stroke(&stroke.map(|point| point.moved(x, middle.y)), size * weight, ink);
            }
            x += place;
        }
    }

    fn node(&mut self, node: &DrawnNode) {
        let paint = self.theme.node(node, self.is_run);
        let opacity = self.is_faint(node.progress.is_some());
        let (fill, line) = (Ink { colour: paint.fill, opacity }, Ink { colour: paint.line, opacity });
        let width = if matches!(node.progress, Some((NodeProgress::Running, _))) { 2.5 } else { 1.5 };
        let place = |path: &Path| path.map(|point| point.moved(node.centre.x, node.centre.y));
        for figure in std::iter::once(node.shape.border(node.size)).chain(node.shape.figures(node.size)) {
            let figure = place(&figure);
            self.fill(&figure, fill);
            self.stroke(&closed(figure), width, line);
        }
        node.shape.lines(node.size).iter().for_each(|mark| self.stroke(&place(mark), 1.5, line));
        if node.is_gate {
            self.stroke(&closed(place(&node.shape.gate(node.size))), 1.0, line);
        }
        node.lines.iter().for_each(|line| self.line(line, opacity));
        if let Some((progress, visits)) = node.progress {
            self.badges(&badge::badges(node, progress, visits), paint.line);
        }
    }

    fn badges(&mut self, badges: &badge::Badges, colour: Colour) {
        let (ink, ground) = (Ink { colour, opacity: 1.0 }, Ink { colour: self.theme.basics().ground, opacity: 1.0 });
        let disc = Size { width: 2.0 * badge::RADIUS, height: 2.0 * badge::RADIUS };
        self.fill(&rectangle(badges.sign_centre, disc, badge::RADIUS), ink);
        badges.sign.iter().for_each(|stroke| self.stroke(stroke, 1.8, ground));
        if let Some(visits) = &badges.visits {
            self.fill(&rectangle(visits.centre, visits.size, visits.size.height / 2.0), ink);
            self.text(&visits.text, visits.centre.moved(0.0, 3.6), badge::VISITS_SIZE, 0.12, ground);
        }
    }
}

fn rectangle(centre: Point, size: Size, radius: f64) -> Path {
    let (x, y) = (size.width / 2.0, size.height / 2.0);
    rounded(&[centre.moved(-x, -y), centre.moved(x, -y), centre.moved(x, y), centre.moved(-x, y)], radius)
}

/// A path back to its beginning.
fn closed(mut path: Path) -> Path {
    path.line(path.start);
    path
}

fn polyline(points: &[Point]) -> Path {
    let mut path = Path::from(points.first().copied().unwrap_or_default());
    path.steps = points.iter().skip(1).map(|point| super::Step::Line(*point)).collect();
    path
}

/// The dashes of a line.
fn dashed(points: &[Point], (dash, gap): (f64, f64)) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut is_dash, mut left) = (true, dash);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        while from.distance(to) > left {
            from = from.towards(to, left / from.distance(to));
            if is_dash {
                piece.push(from);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![from];
            }
            is_dash = !is_dash;
            left = if is_dash { dash } else { gap };
        }
        left -= from.distance(to);
        if is_dash {
            piece.push(to);
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}
