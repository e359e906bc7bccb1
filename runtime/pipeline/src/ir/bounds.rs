//! The resource limits of a run and of a node. None means that the file sets no limit.

use glovebox_record::LimitSettings;
use glovebox_record::spend::SpendBounds;
use std::time::Duration;

/// Default of `max_steps`: an endless loop stops here (other engines use 200 too).
pub const STEPS_MAX_DEFAULT: u64 = 200;

/// Limits of a whole run (decision bounds-and-flags).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunBounds {
    /// Maximum number of stage executions; [`STEPS_MAX_DEFAULT`] by default.
    pub steps_max: u64,
    /// Maximum wall time of the run.
    pub wall_max: Option<Duration>,
    /// The budget of its model calls.
    pub spend_max: SpendBounds,
}

/// Limits of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeBounds {
    /// Maximum duration of one attempt.
    pub timeout: Option<Duration>,
    /// Maximum number of model turns in one attempt.
    pub max_turns: Option<u32>,
    /// The budget of its model calls in a run, all visits together.
    pub spend_max: SpendBounds,
    /// Maximum number of visits in a run (`max_visits`).
    pub visits_max: Option<u32>,
    /// Maximum number of its steps in a run, retries and branches included (`max_steps`).
    pub steps_max: Option<u64>,
    /// Maximum wall time in which attempts of it are under way in a run (`max_wall_time`).
    pub wall_max: Option<Duration>,
    /// Limits of its component from `limits.<name>` attributes.
    pub limits: LimitSettings,
}
