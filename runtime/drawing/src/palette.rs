//! The table of colours for the light and the dark theme, from which the style sheet is generated.

use super::drawing::{NodeKind, Tone};
use super::overlay::NodeProgress;
use glovebox_pipeline::ir::Status;

/// A colour theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Dark lines on a light background.
    Light,
    /// Light lines on a dark background.
    Dark,
}

/// A colour as the number in `#rrggbb`.
pub(crate) type Colour = u32;

/// The colours that do not depend on a kind of node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basics {
    pub(crate) ground: Colour,
    pub(crate) ink: Colour,
    pub(crate) muted: Colour,
    /// The fill of subgraph boxes at even and at odd depth.
    pub(crate) boxes: [Colour; 2],
    pub(crate) box_line: Colour,
}

/// The fill and the border colour of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) fill: Colour,
    pub(crate) line: Colour,
}

/// A row of the table: the paint of the light theme, then that of the dark theme.
type Row = [Paint; 2];

const fn row(light_fill: Colour, light_line: Colour, dark_fill: Colour, dark_line: Colour) -> Row {
    [Paint { fill: light_fill, line: light_line }, Paint { fill: dark_fill, line: dark_line }]
}

/// Opacity of elements that a run did not reach.
pub(crate) const FAINT: f64 = 0.4;

impl Theme {
    /// Both themes.
    pub(crate) const ALL: [Theme; 2] = [Theme::Light, Theme::Dark];

    /// Returns the colours that do not depend on a kind of node.
    pub(crate) fn basics(self) -> Basics {
        match self {
            Theme::Light => Basics {
                ground: 0xffffff,
                ink: 0x1f2328,
                muted: 0x5c6570,
                boxes: [0xf7f8fa, 0xeff1f4],
                box_line: 0xc4cad1,
            },
            Theme::Dark => Basics {
                ground: 0x0d1117,
                ink: 0xe6edf3,
                muted: 0x9da5ae,
                boxes: [0x141a22, 0x1a212b],
                box_line: 0x3d444d,
            },
        }
    }

    /// Returns the paint of nodes of a kind.
    pub(crate) fn kind(self, kind: NodeKind) -> Paint {
        let row = match kind {
            NodeKind::Start => row(0xe9f7ec, 0x2f8f46, 0x122a19, 0x4fb866),
            NodeKind::Exit => row(0xeceef1, 0x3d444d, 0x20262e, 0xb1bac4),
            NodeKind::Agent => row(0xeaf2fd, 0x3b7ddd, 0x13233a, 0x5b9bf0),
            NodeKind::Tool => row(0xf2f4f6, 0x687385, 0x1d232b, 0x8b949e),
            NodeKind::Verify => row(0xe6f6f1, 0x16866b, 0x0f2a25, 0x3fb394),
            NodeKind::Conditional => row(0xfdf4dc, 0xb98a12, 0x2d2410, 0xd9a92f),
            NodeKind::Human => row(0xfdebf1, 0xc9427a, 0x341a27, 0xe8709f),
            NodeKind::Parallel | NodeKind::FanIn => row(0xefecfb, 0x6e56cf, 0x221d3b, 0x9d8cf0),
            NodeKind::Supervisor => row(0xf6ece4, 0x9a6238, 0x2c2018, 0xc88a5c),
            NodeKind::Plugin => row(0xfff0e6, 0xd9641c, 0x33200f, 0xf0883e),
        };
        row[self as usize]
    }

    /// Returns the paint of nodes that a run reached.
    pub(crate) fn progress(self, progress: NodeProgress) -> Paint {
        let row = match progress {
            NodeProgress::Running => row(0xddebff, 0x1f6feb, 0x0f2747, 0x58a6ff),
            NodeProgress::Ended(Status::Success) => row(0xe3f5e7, 0x2f8f46, 0x12301b, 0x4fb866),
            NodeProgress::Ended(Status::PartialSuccess) => row(0xf1f7dd, 0x74931b, 0x262c10, 0xa9c64a),
            NodeProgress::Ended(Status::Retry) => row(0xfdf3d6, 0xb98a12, 0x2f260f, 0xd9a92f),
            NodeProgress::Ended(Status::Fail) => row(0xfde8e6, 0xcf3f36, 0x3a1715, 0xf0695f),
            NodeProgress::Ended(Status::Skipped) => row(0xf2f4f6, 0x8b949e, 0x1d232b, 0x768390),
        };
        row[self as usize]
    }

    /// Returns the colour of an edge.
    pub(crate) fn tone(self, tone: Tone) -> Colour {
        let (light, dark) = match tone {
            Tone::Plain => (0x7b8490, 0x8b949e),
            Tone::Success => (0x3c9a5a, 0x4fb866),
            Tone::Fail => (0xcf4a40, 0xf0695f),
            Tone::Restart => (0x6e56cf, 0x9d8cf0),
            Tone::Jump => (0xd9641c, 0xf0883e),
        };
        if self == Theme::Light { light } else { dark }
    }
}

/// Returns the lengths of the dash and the gap of an edge's line, or `None` for a solid line. With dashes, edges differ
/// not only in colour.
pub(crate) fn dashes(tone: Tone) -> Option<(f64, f64)> {
    match tone {
        Tone::Plain | Tone::Success => None,
        Tone::Fail => Some((5.0, 3.5)),
        Tone::Restart | Tone::Jump => Some((1.5, 3.5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of `glovebox serve` and the pictures have the same colours.
    #[test]
    fn the_page_has_these_colours() {
        let css = include_str!("../../serve/src/page/page.css");
        let (light, dark) = css.split_once("@media (prefers-color-scheme: dark)").unwrap();
        let dark = dark.split_once("\n}\n").unwrap().0;
        for (theme, text) in [(Theme::Light, light), (Theme::Dark, dark)] {
            let basics = theme.basics();
            let mut expected = vec![
                ("ground".to_owned(), basics.ground),
                ("ink".to_owned(), basics.ink),
                ("muted".to_owned(), basics.muted),
                ("box-0".to_owned(), basics.boxes[0]),
                ("box-1".to_owned(), basics.boxes[1]),
                ("box-line".to_owned(), basics.box_line),
                ("edge".to_owned(), theme.tone(Tone::Plain)),
                ("edge-fail".to_owned(), theme.tone(Tone::Fail)),
            ];
            for (name, paint) in [
                ("running", theme.progress(NodeProgress::Running)),
                ("proved", theme.progress(NodeProgress::Ended(Status::Success))),
                ("reserved", theme.progress(NodeProgress::Ended(Status::Retry))),
                ("fail", theme.progress(NodeProgress::Ended(Status::Fail))),
                ("skipped", theme.progress(NodeProgress::Ended(Status::Skipped))),
                ("asks", theme.kind(NodeKind::Human)),
            ] {
                expected.push((format!("{name}-fill"), paint.fill));
                expected.push((format!("{name}-line"), paint.line));
            }
            for (name, colour) in &expected {
                let line = format!("--{name}: #{colour:06x};");
                assert!(text.contains(&line), "{theme:?}: {line}");
            }
            assert_eq!(text.matches(": #").count(), expected.len(), "{theme:?}: the page has other colours");
        }
    }
}
