//! Flags that bound what the model calls of a run may cost.

use clap::Args;
use glovebox_record::spend::{Money, SpendBounds};

/// Bounds on what model calls may cost.
#[derive(Debug, Clone, Copy, Args)]
pub struct SpendArguments {
    /// Maximum number of model tokens of the run, sent and received. For a new run the smallest of this, the pipeline's
    /// `max_tokens` and that of `[run]` in glovebox.toml wins
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Maximum cost of the run's model calls in US dollars, such as `0.50`; like `--max-tokens`
    #[arg(long, value_name = "USD")]
    pub max_budget_usd: Option<Money>,
}

impl From<SpendArguments> for SpendBounds {
    fn from(arguments: SpendArguments) -> Self {
        Self { tokens_max: arguments.max_tokens, cost_max: arguments.max_budget_usd }
    }
}
