//! The command line of what an author of a plugin needs: `glovebox plugin new`, `build`, `dev`, `wit` and `embed-manifest`.

use crate::plugin_language::{Language, World};
use clap::Args;
use std::path::PathBuf;

/// Maximum length of the name of a builder, in bytes.
const BUILDER_BYTES_MAX: usize = 200;

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
    /// Who builds, for the provenance: a URI, such as that of a CI workflow; default: `glovebox:builder/local`
    #[arg(long, value_name = "URI", value_parser = builder)]
    pub builder: Option<String>,
}

fn builder(text: &str) -> Result<String, String> {
    let is_uri = text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    let is_visible = text.len() <= BUILDER_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    let expected = format!("a URI of at most {BUILDER_BYTES_MAX} visible ASCII characters is expected");
    if is_uri && is_visible { Ok(text.to_owned()) } else { Err(expected) }
}

/// `glovebox plugin rebuild`.
#[derive(Debug, Args)]
pub struct RebuildArguments {
    /// The component: a file, or the name of a plugin of the project in the current folder
    #[arg(value_name = "FILE|NAME")]
    pub plugin: PathBuf,
    /// A repository with the source; default: the address in the provenance
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Agree to run the printed build command, with your rights and in no sandbox; without it, nothing is run and the exit code is 6
    #[arg(long)]
    pub accept: bool,
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
