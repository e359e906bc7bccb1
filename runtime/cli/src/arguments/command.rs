//! The arguments of `glovebox run` that run one command without a pipeline file.

use clap::Args;

/// One command, and what it may write.
#[derive(Debug, Default, Args)]
pub struct CommandArguments {
    /// With a command: a file or folder that it may change, relative to the project; default: everything. Repeatable
    #[arg(long, value_name = "PATH", requires = "command")]
    pub write: Vec<String>,
    /// Run this command in the sandbox, without a pipeline file, and show its output as it arrives
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["file", "from", "script", "simulate", "inputs"])]
    pub command: Vec<String>,
}
