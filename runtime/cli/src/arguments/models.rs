//! The arguments of `glovebox models` and `glovebox fake-llm`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What to do with models.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List the models of glovebox.toml, and whether their keys are set
    Ls(ModelsListArguments),
    /// Ask each model a short question
    Test(ModelsTestArguments),
}

/// `glovebox models ls`.
#[derive(Debug, Args)]
pub struct ModelsListArguments {
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox models test`.
#[derive(Debug, Args)]
pub struct ModelsTestArguments {
    /// A name under `[models]`; default: every model
    pub name: Option<String>,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox fake-llm`.
#[derive(Debug, Args)]
pub struct FakeArguments {
    /// The answers, a TOML file
    pub script: PathBuf,
    /// Address to listen on; port 0 means any free port
    #[arg(long, value_name = "A", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Write each request to this file, one JSON document per line
    #[arg(long, value_name = "F")]
    pub log: Option<PathBuf>,
}
