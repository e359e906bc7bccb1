//! The arguments of `glovebox trust`.

use super::ProjectArguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with confirmations.
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// List what may be sent out, and where to, for all projects
    Ls(TrustListArguments),
    /// Confirm all that a pipeline, or a model, sends out
    Give(TrustGiveArguments),
    /// Withdraw confirmations, of a project or one by one
    Rm(TrustRemoveArguments),
}

/// `glovebox trust ls`.
#[derive(Debug, Args)]
pub struct TrustListArguments {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox trust give`.
#[derive(Debug, Args)]
pub struct TrustGiveArguments {
    /// The pipeline, a DOT file; default: `pipeline.dot` of the project, else its only DOT file
    #[arg(conflicts_with = "model")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub project: ProjectArguments,
    /// Confirm where the key of this model is sent; a name under `[models]`, for `glovebox models test`
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// `glovebox trust rm`.
#[derive(Debug, Args)]
pub struct TrustRemoveArguments {
    /// Ids as `trust ls` prints them; default: all of the project
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}
