//! The arguments of `glovebox work` and `glovebox pull`.

use super::{FleetArguments, LabelArguments, RunsArguments, machine};
use clap::Args;
use glovebox_record::Tier;
use std::path::PathBuf;

/// `glovebox work`.
#[derive(Debug, Args)]
pub struct WorkArguments {
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Number of stages that this machine makes at the same time; default: the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub seats: Option<u16>,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Confine commands in this tier of the sandbox instead of the best one: full, bwrap or landlock
    #[arg(long, value_name = "T", value_parser = machine::tier)]
    pub tier: Option<Tier>,
    /// Drive no runs: only make stages
    #[arg(long)]
    pub no_drive: bool,
    /// Make no stages: only drive runs
    #[arg(long, conflicts_with_all = ["no_drive", "seats"])]
    pub no_execute: bool,
    /// Allow stages to use what is this machine's, in the words of the refusal, such as
    /// `env OPENAI_API_KEY to https://api.openai.com` or `folder /srv/data to fleet`
    #[arg(long, value_name = "SOURCE to SINK")]
    pub allow: Vec<String>,
    /// Folder for the files of runs; default: the folder for caches
    #[arg(long, value_name = "D")]
    pub dir: Option<PathBuf>,
    /// The folder whose glovebox.toml may name the operator
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox pull`.
#[derive(Debug, Args)]
pub struct PullRunArguments {
    /// Id of the run
    pub run: String,
    #[command(flatten)]
    pub fleet: FleetArguments,
    #[command(flatten)]
    pub runs: RunsArguments,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}
