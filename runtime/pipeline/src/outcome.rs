//! The parts of a stage's outcome and of the run's context that conditions and routes read.

use glovebox_record::Status;

/// The part of an outcome that routing reads.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The status of the stage.
    pub status: Status,
    /// The edge label that the stage prefers; empty for none.
    pub preferred_label: &'a str,
    /// The next nodes that the stage suggests, best first.
    pub suggested_next_ids: &'a [String],
}

/// Looks up a key in the run's context: its value as text, empty if there is none.
pub type Lookup<'a> = &'a dyn Fn(&str) -> String;
