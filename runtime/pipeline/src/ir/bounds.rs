//! The resource limits of a run and of a node. `None` means that the file sets no limit.

use glovebox_record::LimitSettings;
use glovebox_record::liveness::StallSettings;
use glovebox_record::spend::SpendBounds;
use std::time::Duration;

/// Default of `max_steps`, which ends an endless loop. Other engines also use 200.
pub const STEPS_MAX_DEFAULT: u64 = 200;

/// Limits of a whole run (decision bounds-and-flags).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBounds {
    /// Maximum number of steps; [`STEPS_MAX_DEFAULT`] by default.
    pub steps_max: u64,
    /// Maximum wall time of the run.
    pub wall_max: Option<Duration>,
    /// Budget of the run's model calls.
    pub spend_max: SpendBounds,
    /// Settings of the stall watchdog.
    pub stall: StallSettings,
}

/// Limits of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeBounds {
    /// Maximum duration of one attempt.
    pub timeout: Option<Duration>,
    /// Maximum number of model turns in one attempt.
    pub max_turns: Option<u32>,
    /// Budget of the node's model calls in a run, for all visits together.
    pub spend_max: SpendBounds,
    /// Maximum number of visits of the node in a run (`max_visits`).
    pub visits_max: Option<u32>,
    /// Maximum number of steps of the node in a run, including retries and all branches (`max_steps`).
    pub steps_max: Option<u64>,
    /// Maximum wall time in a run during which attempts of the node are executed (`max_wall_time`).
    pub wall_max: Option<Duration>,
    /// Limits of the node's component, from `limits.<name>` attributes.
    pub limits: LimitSettings,
}
