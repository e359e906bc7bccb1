//! Draws a checked pipeline as SVG, as coordinates for programs, and as a list for terminals.
//!
//! `Pipeline -scene-> layout -> Drawing -> svg | positions`, and `Pipeline -> list`. This crate has its own layout
//! algorithm, so that the nine shapes of the specification and the octagon are drawn correctly, the same file gives the
//! same bytes everywhere, and no other program is needed. Labels are untrusted text: `text` cleans them before any
//! other module reads them.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod badge;
mod boxes;
mod direction;
mod drawing;
mod geometry;
mod head;
mod layout;
mod list;
mod overlay;
mod palette;
mod positions;
mod scene;
mod shape;
mod shared;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use drawing::{Drawing, DrawnBox, DrawnEdge, DrawnLabel, DrawnNode, Line, Role};
pub use geometry::{Path, Point, Size, Step};
pub use list::to_list;
pub use overlay::{NodeProgress, Overlay};
pub use positions::{BoxPosition, DrawnGraph, EdgePosition, Layout, NodePosition, to_json};
pub use svg::to_svg;

use glovebox_pipeline::ir::Pipeline;

/// Draws a pipeline. If a run is given, its progress is drawn over the pipeline.
pub fn draw(pipeline: &Pipeline, overlay: Option<&Overlay>) -> Drawing {
    scene::draw(pipeline, overlay)
}
