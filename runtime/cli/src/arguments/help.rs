//! The arguments of commands that explain `glovebox` itself: help, completions, man pages.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// `glovebox help`.
#[derive(Debug, Args)]
pub struct HelpArguments {
    /// A command, or a topic: `exit-codes`, `environment`; without it, all commands are listed
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

/// `glovebox completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `glovebox man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder that gets the pages, such as `~/.local/share/man/man1`; pages of the same name are replaced
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
