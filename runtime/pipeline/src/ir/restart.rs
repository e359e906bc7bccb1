//! The restarts of a run: their maximum number, and the context keys that survive.
//!
//! An edge with `loop_restart` begins a new generation at its target (spec §2.6): the visits, outcomes and conversations of earlier
//! generations no longer count. The files stay as they are.

use super::{EdgeIndex, Pipeline, Text};

/// Default of `max_restarts`, as other engines have it.
pub const RESTARTS_MAX_DEFAULT: u32 = 50;

/// The graph's settings for restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarts {
    /// The most restarts of one run.
    pub most: u32,
    /// Keys of the context that a new generation begins with.
    pub kept: Vec<Text>,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { most: RESTARTS_MAX_DEFAULT, kept: Vec::new() }
    }
}

impl Pipeline {
    /// True for an edge that begins a new generation.
    pub fn is_restart(&self, edge: EdgeIndex) -> bool {
        self.edges.get(edge.0).is_some_and(|edge| edge.loop_restart)
    }
}
