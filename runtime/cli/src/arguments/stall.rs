//! The flags of the stall watchdog, in `run`, `resume`, `fork` and `plan`.

use clap::Args;
use glovebox_record::liveness::StallSettings;

/// Settings of the stall watchdog.
#[derive(Debug, Clone, Copy, Args)]
pub struct StallArguments {
    /// End the run if no branch makes progress for this many milliseconds; 0 for never. In a new run, a timeout of the
    /// pipeline (`stall_timeout_ms`) applies too, and the lower one wins; default 600000
    #[arg(long, value_name = "MS")]
    pub stall_timeout_ms: Option<u64>,
    /// Time between two checks of the progress, in milliseconds; default a tenth of the timeout, at most 10000. The
    /// pipeline's `stall_check_interval_ms` applies too, and the lower one wins
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub stall_check_interval_ms: Option<u64>,
}

impl From<StallArguments> for StallSettings {
    fn from(arguments: StallArguments) -> Self {
        Self { timeout_ms: arguments.stall_timeout_ms, check_interval_ms: arguments.stall_check_interval_ms }
    }
}
