//! The facts about a stage whose last attempt failed that are kept to explain why a run failed.

use glovebox_journal::event::Artifact;
use glovebox_record::{Failure, LimitName, LimitUse};

/// Limits that the kernel enforces by refusing a system call, so that the command fails with its own error message.
const REFUSING: [LimitName; 5] =
    [LimitName::TmpBytes, LimitName::DiskBytes, LimitName::FileBytes, LimitName::Processes, LimitName::Descriptors];
/// The share of a limit from which it counts as used up, percent.
const USED_UP_PERCENT: u128 = 99;

/// Returns the limits that the stage used up without being killed.
pub(super) fn used_up(usage: &[LimitUse]) -> Vec<LimitUse> {
    let is_used_up = |usage: &&LimitUse| {
        let used = usage.used.unwrap_or_default();
        REFUSING.contains(&usage.name)
            && used > 0
            && u128::from(used) * 100 >= u128::from(usage.limit) * USED_UP_PERCENT
    };
    usage.iter().filter(is_used_up).cloned().collect()
}

/// A stage whose last attempt failed.
#[derive(Debug, Clone)]
pub struct FailedStage {
    /// The class, code and reason of the failure.
    pub failure: Failure,
    /// The artifacts of the attempt, among them the output of its commands.
    pub artifacts: Vec<Artifact>,
    /// True if the stage could read hold-outs, so that its output is shown only to people who ask for it.
    pub is_withheld: bool,
    /// Limits that the stage used up, and at which system calls fail instead of the command being killed.
    pub used_up: Vec<LimitUse>,
    /// True if the stage needs a model and none was asked.
    pub is_unasked: bool,
    /// The sequence number of the record of the attempt.
    pub at: u64,
}
