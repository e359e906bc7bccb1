//! The command line of `glovebox plugin`, as one table.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `glovebox plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Show a component's imports, exports, world, wants and digest; runs nothing
    Inspect(InspectArguments),
    /// Show what each plugin imports, wants and gets, and write glovebox.lock
    Lock(LockArguments),
    /// Write a plugin's crate: a handler in Rust, its test, the SDK and the WIT package
    New(NewPluginArguments),
    /// Write the WIT package of plugins, for tools of other languages
    Wit(WitArguments),
    /// Write a manifest into a component that was built without one
    EmbedManifest(EmbedArguments),
}

/// `glovebox plugin new`.
#[derive(Debug, Args)]
pub struct NewPluginArguments {
    /// Name of the plugin, such as `acme.review`
    pub name: String,
    /// Where the crate is written; default: the name with `-` for `.`
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
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

/// `glovebox plugin inspect`.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The component
    pub file: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin lock`.
#[derive(Debug, Args)]
pub struct LockArguments {
    /// A pipeline; the glovebox.toml in its folder or above is locked
    pub file: Option<PathBuf>,
    /// The project whose glovebox.toml is locked
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
