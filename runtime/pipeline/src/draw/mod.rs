//! Pictures of a pipeline: SVG, pixels, letters, and coordinates for programs.
//!
//! `Pipeline -scene-> layout -> Drawing -> svg | raster | positions`, and `Pipeline -> layers -> letters`. The layout is our own, so that
//! the nine shapes of the specification and the octagon look as they should, the same file gives the same bytes everywhere, and no program
//! of somebody else runs. Labels are foreign text: `text` makes them harmless before anything else sees them.

mod badge;
mod boxes;
mod drawing;
mod geometry;
mod head;
mod layout;
mod letters;
mod overlay;
mod palette;
mod positions;
mod raster;
mod scene;
mod shape;
mod shared;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use drawing::{Drawing, DrawnBox, DrawnEdge, DrawnLabel, DrawnNode, Line, Role};
pub use geometry::{Path, Point, Size, Step};
pub use letters::{Letters, to_text};
pub use overlay::{Overlay, Standing};
pub use palette::Theme;
pub use positions::{BoxPlace, EdgePlace, Layout, NodePlace};
pub use raster::{Image, PIXELS_MAX, to_image};
pub use svg::to_svg;

use crate::ir::Pipeline;

/// Draws a pipeline, with a run over it if one is given.
pub fn draw(pipeline: &Pipeline, overlay: Option<&Overlay>) -> Drawing {
    scene::draw(pipeline, overlay)
}
