//! The command line of what an author of a plugin needs: `glovebox plugin new`, `build`, `dev`, `wit` and `embed-manifest`.

use crate::plugin_language::{Language, World};
use clap::Args;
use std::path::PathBuf;

/// `glovebox plugin new`.
#[derive(Debug, Args)]
pub struct NewPluginArguments {
    /// Name of the plugin, such as `acme.review`
    pub name: String,
    /// Where the project is written; default: the name with `-` for `.`
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// The language
    #[arg(long, value_enum, default_value = "rust")]
    pub lang: Language,
    /// What the plugin may import: a handler has files, an agent a model too, a verifier commands, rules nothing
    #[arg(long, value_enum, default_value = "handler")]
    pub world: World,
}

/// `glovebox plugin build`.
#[derive(Debug, Args)]
pub struct BuildPluginArguments {
    /// The project, a folder with a plugin.toml
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}

/// `glovebox plugin dev`.
#[derive(Debug, Args)]
pub struct DevPluginArguments {
    /// The project, a folder with a plugin.toml
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The folder with the cases; default: `cases` in the project
    #[arg(long, value_name = "D")]
    pub cases: Option<PathBuf>,
    /// Run the cases once, and exit with 1 if one differs from what it expects
    #[arg(long)]
    pub once: bool,
}

/// `glovebox plugin wit`.
#[derive(Debug, Args)]
pub struct WitArguments {
    /// A folder that is empty or does not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `glovebox plugin embed-manifest`.
#[derive(Debug, Args)]
pub struct EmbedArguments {
    /// The component
    pub component: PathBuf,
    /// The manifest, a JSON file with `name`, `version`, `description` and `wants`
    pub manifest: PathBuf,
    /// Write here instead of into the component
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
