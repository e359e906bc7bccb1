//! The arguments of `glovebox run` that run a pipeline again.

use clap::Args;

/// Whether and how a pipeline runs again.
#[derive(Debug, Default, Args)]
pub struct AgainArguments {
    /// Begin at the stage that failed in the latest run of this pipeline, on the project as it is now
    #[arg(long, conflicts_with_all = ["from", "command"])]
    pub rerun_failed: bool,
    /// Run again when a file of the project changes that git does not ignore, until Ctrl-C
    #[arg(long, conflicts_with = "run_id")]
    pub watch: bool,
}
