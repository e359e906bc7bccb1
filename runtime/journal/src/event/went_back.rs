//! A visit that a run went back to. What it did since stays in the journal, and counts no more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The visit that a resume begins again before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WentBack {
    /// The visit of the node. The one that begins now has a number of its own.
    pub visit: u32,
    /// The generation of that visit.
    pub generation: u32,
    /// The last record before that visit.
    pub seq: u64,
}
