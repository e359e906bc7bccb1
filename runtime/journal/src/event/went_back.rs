//! The visit to which a run was rewound. The records between that visit and the resume stay in the journal, but no
//! longer determine the state of the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The visit to which a resume rewound the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WentBack {
    /// The visit of the node. The visit that follows the resume has a new number.
    pub visit: u32,
    /// The generation of that visit.
    pub generation: u32,
    /// The sequence number of the last record before that visit.
    pub seq: u64,
}
