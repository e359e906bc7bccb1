//! The arguments of `cancel`, `pause`, `wait`, `attach` and `steer`.

use super::{RunsArguments, wall_time};
use crate::runs::RunSelector;
use clap::Args;
use glovebox_journal::event::NodeId;
use std::time::Duration;

/// `glovebox cancel` and `glovebox pause`.
#[derive(Debug, Args)]
pub struct ControlArguments {
    /// The run
    pub run: RunSelector,
    /// Who asks; default: the name of the user
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox steer`.
#[derive(Debug, Args)]
pub struct SteerArguments {
    /// The run
    pub run: RunSelector,
    /// The node whose agent gets the message
    pub node: NodeId,
    /// The message, at most 16 KiB
    pub text: String,
    /// Who sends it; default: the name of the user
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox wait`.
#[derive(Debug, Args)]
pub struct WaitArguments {
    /// The run
    pub run: RunSelector,
    /// Maximum time to wait, such as `30m`; default: no maximum
    #[arg(long, value_name = "T", value_parser = wall_time)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox attach`.
#[derive(Debug, Args)]
pub struct AttachArguments {
    /// The run
    pub run: RunSelector,
    /// Print what the run did before, too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print the records of the journal, one per line
    #[arg(long)]
    pub json: bool,
}
