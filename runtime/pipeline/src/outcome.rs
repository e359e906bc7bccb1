//! The parts of a stage's outcome and of the run's context that conditions and routing read.

use glovebox_record::Status;

/// The part of an outcome that routing reads.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Status of the stage.
    pub status: Status,
    /// Label of the edge that the stage prefers; empty if it prefers none.
    pub preferred_label: &'a str,
    /// Next nodes that the stage suggests, best first.
    pub suggested_next_ids: &'a [String],
}

/// Returns the value of a key in the run's context, as text. Empty if there is no value.
pub type Lookup<'a> = &'a dyn Fn(&str) -> String;
