//! The restarts of a run: their maximum number, and the context keys that a restart keeps.
//!
//! An edge with `loop_restart` begins a new generation at its target (spec §2.6). The visits, outcomes and conversations of
//! earlier generations are ignored from then on. The files stay as they are.

use super::{EdgeIndex, Pipeline, Text};

/// Default of `max_restarts`; other engines have the same default.
pub const RESTARTS_MAX_DEFAULT: u32 = 50;

/// The graph's settings for restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restarts {
    /// Maximum number of restarts in one run.
    pub most: u32,
    /// Keys of the context that are copied into a new generation.
    pub kept: Vec<Text>,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { most: RESTARTS_MAX_DEFAULT, kept: Vec::new() }
    }
}

impl Pipeline {
    /// Returns true for an edge that begins a new generation.
    pub fn is_restart(&self, edge: EdgeIndex) -> bool {
        self.edges.get(edge.0).is_some_and(|edge| edge.loop_restart)
    }
}
