//! The event of the stall watchdog: no branch of the run made progress for too long.

use super::{AttemptId, BranchId, NodeId};
use glovebox_record::{Failure, FailureClass, FailureCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of branches that the reason of a stalled run names.
const NAMED_MAX: usize = 8;

/// No branch of the run made progress for the time of the stall watchdog. The running attempts are asked to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStalled {
    /// The time in milliseconds without progress after which a run is stalled.
    pub timeout_ms: u64,
    /// The time in milliseconds without progress that was measured.
    pub idle_ms: u64,
    /// The branches with a running attempt.
    pub silent: Vec<SilentBranch>,
}

/// A branch of a stalled run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SilentBranch {
    /// The branch.
    pub branch: BranchId,
    /// The node of the running attempt.
    pub node: NodeId,
    /// The id of the running attempt.
    pub attempt_id: AttemptId,
    /// Time in milliseconds since something of the attempt moved.
    pub silent_ms: u64,
}

impl RunStalled {
    /// Returns the failure with which the run ends.
    pub fn failure(&self) -> Failure {
        let named = self.silent.iter().take(NAMED_MAX);
        let named = named.map(|one| format!("{} at {} ({} s)", one.branch, one.node, one.silent_ms / 1000));
        let more = match self.silent.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = named.collect::<Vec<_>>().join(", ");
        let (code, timeout_ms) = (FailureCode::RUN_STALLED, self.timeout_ms);
        let reason = format!("stall_watchdog_timeout: no branch made progress for {timeout_ms} ms: {named}{more}");
        Failure::new(FailureClass::Transient, code, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_silent_branches_up_to_a_bound() {
        let silent = |count: usize| {
            let one = |number: usize| SilentBranch {
                branch: BranchId::new(format!("f-{number}")),
                node: NodeId::new("build"),
                attempt_id: AttemptId::new("a"),
                silent_ms: 600_000,
            };
            RunStalled { timeout_ms: 600_000, idle_ms: 610_000, silent: (0..count).map(one).collect() }.failure()
        };
        let two = silent(2);
        assert_eq!((two.class, two.code.as_str()), (FailureClass::Transient, "run/stall_watchdog_timeout"));
        assert_eq!(
            two.reason,
            "stall_watchdog_timeout: no branch made progress for 600000 ms: f-0 at build (600 s), f-1 at build (600 s)"
        );
        assert!(silent(NAMED_MAX + 3).reason.ends_with("f-7 at build (600 s) and 3 more"));
    }
}
