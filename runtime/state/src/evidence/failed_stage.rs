//! What is kept of a stage whose last attempt failed, to say why a run failed.

use glovebox_journal::event::Artifact;
use glovebox_record::Failure;

/// A stage whose last attempt failed.
#[derive(Debug, Clone)]
pub struct FailedStage {
    /// The class, code and reason of the failure.
    pub failure: Failure,
    /// The artifacts of the attempt, among them the output of its commands.
    pub artifacts: Vec<Artifact>,
    /// True if the stage could read hold-outs, so that its output is shown only to people who ask for it.
    pub is_withheld: bool,
    /// True if the stage needs a model and none was asked.
    pub is_unasked: bool,
    /// The sequence number of the record of the attempt.
    pub at: u64,
}
