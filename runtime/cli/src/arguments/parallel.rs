//! The flag for the number of stages that a run executes at the same time, in `run`, `resume`, `fork` and `plan`.

use clap::Args;
use glovebox_plan::config::PARALLEL_MAX;

/// Bound on the stages that are executed at the same time.
#[derive(Debug, Clone, Copy, Args)]
pub struct ParallelArguments {
    /// Maximum number of stages at a time, in all branches together; overrides `parallel_max` under `[run]` in
    /// glovebox.toml
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX as u64))]
    pub max_parallel: Option<u64>,
}
