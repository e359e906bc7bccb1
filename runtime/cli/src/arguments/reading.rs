//! The arguments of commands that show what a run did.

use super::{LATEST, RunsArguments};
use crate::runs::RunSelector;
use clap::Args;
use glovebox_engine::event::NodeId;

/// `glovebox show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The run
    pub run: RunSelector,
    /// Show this node's attempts
    pub node: Option<NodeId>,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The run
    #[arg(default_value = LATEST)]
    pub run: RunSelector,
    /// Show only these files and folders, relative to the project
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Show the number of changed lines of each file instead of the patch
    #[arg(long, conflicts_with = "json")]
    pub stat: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
