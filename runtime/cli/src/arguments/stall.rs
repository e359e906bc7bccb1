//! The flags of the stall watchdog, in `run`, `resume`, `fork` and `plan`.

use clap::Args;
use glovebox_record::liveness::StallSettings;

/// Settings of the stall watchdog.
#[derive(Debug, Clone, Copy, Args)]
pub struct StallArguments {
    /// End the run if no branch makes progress for this many milliseconds; 0 for never. For a new run the smaller of
    /// this and the pipeline's `stall_timeout_ms` wins; default 600000
    #[arg(long, value_name = "MS")]
    pub stall_timeout_ms: Option<u64>,
    /// Time between two looks at the progress of the branches, in milliseconds; like `--stall-timeout-ms`; default a
    /// tenth of it, at most 10000
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub stall_check_interval_ms: Option<u64>,
}

impl From<StallArguments> for StallSettings {
    fn from(arguments: StallArguments) -> Self {
        Self { timeout_ms: arguments.stall_timeout_ms, check_interval_ms: arguments.stall_check_interval_ms }
    }
}
