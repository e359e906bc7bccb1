//! The flag for how many stages of a run are under way at once: of `run`, `resume`, `fork` and `plan`.

use clap::Args;
use glovebox_plan::config::PARALLEL_MAX;

/// How many stages are under way at once.
#[derive(Debug, Clone, Copy, Args)]
pub struct ParallelArguments {
    /// The most stages at a time, of all branches together; beats `parallel_max` under `[run]` in glovebox.toml
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PARALLEL_MAX as u64))]
    pub max_parallel: Option<u64>,
}
