//! The arguments of commands that list and remove runs.

use super::RunsArguments;
use crate::runs::RunSelector;
use crate::runs::index::RunState;
use clap::Args;
use std::time::Duration;

/// `glovebox ls`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// List only runs in this state; repeatable
    #[arg(long, value_enum)]
    pub state: Vec<RunState>,
    /// List only runs of pipelines with this text in their name
    #[arg(long, value_name = "TEXT")]
    pub pipeline: Option<String>,
    /// List at most N runs
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Show the list again whenever it changes, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox rm`.
#[derive(Debug, Args)]
pub struct RemoveArguments {
    /// The runs; a running one is refused
    #[arg(required = true, value_name = "RUN")]
    pub targets: Vec<RunSelector>,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox gc`.
#[derive(Debug, Args)]
pub struct CollectArguments {
    /// Remove all runs but the newest N
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Remove runs older than this, such as `30d` or `12h`; with `--keep` a run must be both
    #[arg(long, value_name = "T", value_parser = age)]
    pub older_than: Option<Duration>,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    glovebox_pipeline::lower::duration(text).ok_or_else(|| "expected an age such as `30d`, `12h` or `90m`".to_owned())
}
