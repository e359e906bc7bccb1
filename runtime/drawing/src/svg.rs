//! Writes a drawing as one self-contained SVG file for the light and the dark theme, with a title on every element.
//!
//! Untrusted text appears only as character data and in quoted attribute values. The file has no script, no link and no
//! external reference. Every CSS rule begins with `svg.pipeline`, so an embedding page keeps its style. The same
//! drawing gives the same bytes.

use super::drawing::{Drawing, DrawnBox, DrawnEdge, DrawnLabel, DrawnNode, Line, NodeKind, Tone};
use super::geometry::{Path, Point, Size, Step, at, tenths};
use super::head::Arrow;
use super::overlay::NodeProgress;
use super::palette::{Colour, FAINT, Theme, dashes};
use super::text::counted;
use glovebox_pipeline::ir::Status;
use std::fmt::{Display, Write};

const FONT: &str = "\"Helvetica Neue\",Helvetica,Arial,\"Liberation Sans\",sans-serif";

/// Tones in the order of the style sheet.
const TONES: [Tone; 5] = [Tone::Plain, Tone::Success, Tone::Fail, Tone::Restart, Tone::Jump];
/// The CSS classes of boxes at even and at odd depth.
const PARITIES: [&str; 2] = ["even", "odd"];
/// Progress in the order of the style sheet.
const PROGRESS: [NodeProgress; 6] = [
    NodeProgress::Running,
    NodeProgress::Ended(Status::Success),
    NodeProgress::Ended(Status::PartialSuccess),
    NodeProgress::Ended(Status::Retry),
    NodeProgress::Ended(Status::Fail),
    NodeProgress::Ended(Status::Skipped),
];

/// Writes a drawing as SVG.
pub fn to_svg(drawing: &Drawing) -> String {
    let bytes = 4096 + 1024 * (drawing.nodes.len() + drawing.edges.len());
    let mut svg = Svg { text: String::with_capacity(bytes), is_run: drawing.is_run };
    let (width, height) = (tenths(drawing.size.width), tenths(drawing.size.height));
    let run = if drawing.is_run { " run" } else { "" };
    svg.raw(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pipeline{run}\" role=\"img\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n"
    ));
    svg.element("title", &drawing.title);
    let left_out = match drawing.boxes_left_out {
        0 => String::new(),
        count => format!(", {count} subgraphs left without a box"),
    };
    svg.element(
        "desc",
        &format!("{}, {}{left_out}", counted(drawing.nodes.len(), "node"), counted(drawing.edges.len(), "edge")),
    );
    svg.raw(format_args!("<style>\n{}</style>\n", stylesheet(!drawing.boxes.is_empty())));
    svg.raw(format_args!("<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n"));
    let (taken, left): (Vec<&DrawnEdge>, Vec<&DrawnEdge>) = drawing.edges.iter().partition(|edge| edge.taken > 0);
    let edges = || left.iter().chain(&taken);
    if !drawing.boxes.is_empty() {
        svg.raw("<g class=\"boxes\">\n");
        drawing.boxes.iter().for_each(|drawn| svg.box_around(drawn));
        svg.raw("</g>\n");
    }
    svg.raw("<g class=\"edges\">\n");
    edges().for_each(|edge| svg.edge(edge));
    svg.raw("</g>\n<g class=\"edge-texts\">\n");
    for edge in edges() {
        edge.label.iter().for_each(|label| svg.edge_label(edge, label));
    }
    drawing.boxes.iter().flat_map(|drawn| &drawn.lines).for_each(|line| svg.line(line));
    svg.raw("</g>\n<g class=\"nodes\">\n");
    drawing.nodes.iter().for_each(|node| svg.node(node));
    svg.raw("</g>\n</svg>\n");
    svg.text
}

struct Svg {
    text: String,
    is_run: bool,
}

impl Svg {
    /// Appends trusted text: markup and numbers.
    fn raw(&mut self, ours: impl Display) {
        write!(self.text, "{ours}").expect("writing to a string does not fail");
    }

    /// Appends untrusted text as character data or inside a quoted value.
    fn foreign(&mut self, text: &str) {
        for character in super::text::clean(text).chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&#39;"),
                _ => self.text.push(character),
            }
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        self.raw(format_args!("<{name}>"));
        self.foreign(text);
        self.raw(format_args!("</{name}>\n"));
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.raw(format_args!(" {name}=\""));
        self.foreign(value);
        self.raw("\"");
    }

    fn box_around(&mut self, drawn: &DrawnBox) {
        self.raw(format_args!("<g class=\"box {}\">\n", PARITIES[drawn.depth % 2]));
        self.element("title", &drawn.title);
        self.rect("border", drawn.centre, drawn.size, super::boxes::RADIUS);
        self.raw("</g>\n");
    }

    fn edge(&mut self, edge: &DrawnEdge) {
        self.open_edge(edge, "edge");
        self.element("title", &edge.title);
        let (own, has_head) = edge.own();
        if has_head {
            let arrow = Arrow::new(&own);
            self.path("way", &arrow.shaft, false);
            self.raw("<path class=\"head\" d=\"");
            for (index, point) in arrow.head.iter().enumerate() {
                self.raw(format_args!("{}{}", if index == 0 { 'M' } else { 'L' }, pair(*point)));
            }
            self.raw("Z\"/>\n");
        } else {
            self.path("way", &own, false);
        }
        self.raw("</g>\n");
    }

    fn open_edge(&mut self, edge: &DrawnEdge, class: &str) {
        let taken = match edge.taken {
            0 if self.is_run => " faint",
            0 => "",
            _ => " taken",
        };
        self.raw(format_args!("<g class=\"{class} tone-{}{taken}\"", edge.tone.class()));
        self.attribute("data-from", &edge.from);
        self.attribute("data-to", &edge.to);
        if let Some(index) = edge.index {
            self.raw(format_args!(" data-edge=\"{index}\""));
        }
        self.raw(">\n");
    }

    fn edge_label(&mut self, edge: &DrawnEdge, label: &DrawnLabel) {
        self.open_edge(edge, "edge-text");
        self.rect("pill", label.centre, label.size, 3.0);
        label.lines.iter().for_each(|line| self.line(line));
        self.raw("</g>\n");
    }

    fn rect(&mut self, class: &str, centre: Point, size: Size, radius: f64) {
        let corner = centre.moved(-size.width / 2.0, -size.height / 2.0);
        self.raw(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>\n",
            tenths(corner.x),
            tenths(corner.y),
            tenths(size.width),
            tenths(size.height),
            tenths(radius)
        ));
    }

    fn line(&mut self, line: &Line) {
        let (x, y) = (tenths(line.at.x), tenths(line.at.y));
        self.raw(format_args!("<text class=\"{}\" x=\"{x}\" y=\"{y}\">", line.role.class()));
        self.foreign(&line.text);
        self.raw("</text>\n");
    }

    fn path(&mut self, class: &str, path: &Path, is_closed: bool) {
        self.raw(format_args!("<path class=\"{class}\" d=\"M{}", pair(path.start)));
        for step in &path.steps {
            match *step {
                Step::Line(end) => self.raw(format_args!("L{}", pair(end))),
                Step::Curve(first, second, end) => {
                    self.raw(format_args!("C{} {} {}", pair(first), pair(second), pair(end)));
                }
            }
        }
        self.raw(if is_closed { "Z\"/>\n" } else { "\"/>\n" });
    }

    fn node(&mut self, node: &DrawnNode) {
        self.raw("<g");
        self.attribute("id", &format!("node-{}", node.id));
        let progress = match node.progress {
            Some((progress, _)) => format!(" status-{}", progress.as_str()),
            None if self.is_run => " faint".to_owned(),
            None => String::new(),
        };
        let gate = if node.is_gate { " gate" } else { "" };
        self.raw(format_args!(" class=\"node kind-{}{gate}{progress}\"", node.kind.class()));
        self.attribute("data-node", &node.id);
        self.raw(">\n");
        self.element("title", &node.title);
        let place = |path: &Path| path.map(|point| point.moved(node.centre.x, node.centre.y));
        self.path("border", &place(&node.shape.border(node.size)), true);
        node.shape.figures(node.size).iter().for_each(|figure| self.path("border", &place(figure), true));
        node.shape.lines(node.size).iter().for_each(|line| self.path("mark", &place(line), false));
        if node.is_gate {
            self.path("ring", &place(&node.shape.gate(node.size)), true);
        }
        node.lines.iter().for_each(|line| self.line(line));
        if let Some((progress, visits)) = node.progress {
            self.badges(node, progress, visits);
        }
        self.raw("</g>\n");
    }

    /// Draws the sign for the progress of a node at the upper left, and the number of visits at the upper right.
    fn badges(&mut self, node: &DrawnNode, progress: NodeProgress, visits: u32) {
        let badges = super::badge::badges(node, progress, visits);
        self.raw(format_args!(
            "<circle class=\"badge\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n",
            tenths(badges.sign_centre.x),
            tenths(badges.sign_centre.y),
            super::badge::RADIUS
        ));
        badges.sign.iter().for_each(|stroke| self.path("sign", stroke, false));
        if let Some(visits) = &badges.visits {
            self.rect("badge", visits.centre, visits.size, visits.size.height / 2.0);
            let at = at(visits.centre.x, visits.centre.y + 3.6);
            self.raw(format_args!("<text class=\"visits\" x=\"{}\" y=\"{}\">", tenths(at.x), tenths(at.y)));
            self.foreign(&visits.text);
            self.raw("</text>\n");
        }
    }
}

fn pair(point: Point) -> String {
    format!("{} {}", tenths(point.x), tenths(point.y))
}

fn hex(colour: Colour) -> String {
    format!("#{colour:06x}")
}

/// Returns the style sheet: the rules of both themes, then the light colours, then the dark colours in a media query.
/// It contains rules for boxes only if there are boxes.
fn stylesheet(has_boxes: bool) -> String {
    let mut css = String::new();
    let mut rule = |selector: &str, body: &str| css.push_str(&format!("svg.pipeline {selector}{{{body}}}\n"));
    rule("text", &format!("font-family:{FONT};text-anchor:middle"));
    rule(".label", "font-size:13px;font-weight:500");
    rule(".edge-label", "font-size:11.5px");
    if has_boxes {
        rule(".box-label", "font-size:11.5px;font-weight:600;stroke-width:4;stroke-linejoin:round;paint-order:stroke");
        rule(".box .border", "stroke-width:1");
    }
    rule(".note,svg.pipeline .condition", "font-size:10.5px");
    rule(".border,svg.pipeline .mark", "stroke-width:1.5;stroke-linejoin:round");
    rule(".ring", "fill:none;stroke-width:1");
    rule(".way", "fill:none;stroke-width:1.5");
    for tone in TONES {
        if let Some((dash, gap)) = dashes(tone) {
            rule(&format!(".tone-{} .way", tone.class()), &format!("stroke-dasharray:{dash} {gap}"));
        }
    }
    rule(".sign", "fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round");
    rule(".visits", "font-size:10px;font-weight:600");
    rule(".taken .way", "stroke-width:2.2");
    rule(".status-running .border", "stroke-width:2.5");
    rule(".pill", "stroke:none");
    rule(
        ".faint .border,svg.pipeline .faint .mark,svg.pipeline .faint .ring,svg.pipeline .faint text,svg.pipeline .edge.faint",
        &format!("opacity:{FAINT}"),
    );
    css.push_str(&colours(Theme::ALL[0], has_boxes));
    css.push_str(&format!("@media (prefers-color-scheme:dark){{\n{}}}\n", colours(Theme::ALL[1], has_boxes)));
    css
}

fn colours(theme: Theme, has_boxes: bool) -> String {
    let basics = theme.basics();
    let mut css = String::new();
    let mut rule = |selector: &str, body: &str| css.push_str(&format!("svg.pipeline {selector}{{{body}}}\n"));
    rule(".ground,svg.pipeline .pill", &format!("fill:{}", hex(basics.ground)));
    rule("text", &format!("fill:{}", hex(basics.ink)));
    rule(".note,svg.pipeline .condition", &format!("fill:{}", hex(basics.muted)));
    if has_boxes {
        for (parity, fill) in PARITIES.into_iter().zip(basics.boxes) {
            rule(&format!(".box.{parity} .border"), &format!("fill:{};stroke:{}", hex(fill), hex(basics.box_line)));
        }
        rule(".box-label", &format!("fill:{};stroke:{}", hex(basics.muted), hex(basics.boxes[0])));
    }
    rule(".sign", &format!("stroke:{}", hex(basics.ground)));
    rule(".visits", &format!("fill:{}", hex(basics.ground)));
    let mut paint = |selector: String, paint: super::palette::Paint| {
        let (fill, line) = (hex(paint.fill), hex(paint.line));
        rule(&format!("{selector} .border"), &format!("fill:{fill};stroke:{line}"));
        rule(&format!("{selector} .mark,svg.pipeline {selector} .ring"), &format!("stroke:{line}"));
        rule(&format!("{selector} .badge"), &format!("fill:{line}"));
    };
    NodeKind::ALL.iter().for_each(|(kind, class)| paint(format!(".kind-{class}"), theme.kind(*kind)));
    PROGRESS.iter().for_each(|progress| paint(format!(".status-{}", progress.as_str()), theme.progress(*progress)));
    for tone in TONES {
        let (class, line) = (tone.class(), hex(theme.tone(tone)));
        rule(&format!(".tone-{class} .way"), &format!("stroke:{line}"));
        rule(&format!(".tone-{class} .head"), &format!("fill:{line}"));
    }
    css
}
