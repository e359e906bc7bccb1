//! The command line of `glovebox plugin`, as one table.

use super::authoring::{
    BuildPluginArguments, DevPluginArguments, EmbedArguments, NewPluginArguments, RebuildArguments, WitArguments,
};
use super::signing::{KeygenArguments, RevocationsArguments, RevokeArguments, SignArguments, VerifyPluginArguments};
use super::{LabelArguments, ProjectArguments};
use clap::{Args, Subcommand};
use glovebox_record::Digest;
use semver::Version;
use std::path::PathBuf;
use std::time::Duration;

/// `glovebox plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Write a plugin's project in Rust, JavaScript, Python or C, with what it needs to build
    New(NewPluginArguments),
    /// Build a plugin's project, and write component, manifest and digest to its folder dist
    Build(BuildPluginArguments),
    /// Build a component again from the source of its provenance, and compare the bytes
    Rebuild(RebuildArguments),
    /// Build a plugin's project and run its cases, again after every change
    Dev(DevPluginArguments),
    /// Call a component with ordinary, odd and hostile inputs, and check what it does; needs no project
    Test(TestArguments),
    /// Publish a component as a version of a repository in a registry
    Push(PushArguments),
    /// Write the WIT package of plugins, for tools of other languages
    Wit(WitArguments),
    /// Write a manifest into a component that was built without one
    EmbedManifest(EmbedArguments),
    /// List the repositories of a registry whose names contain a text
    Search(SearchArguments),
    /// Show a component's imports, exports, world, wants and digest; runs nothing
    Inspect(InspectArguments),
    /// Show what a component may do as a plugin, and add it with --accept
    Add(AddArguments),
    /// Show what each plugin imports, wants and gets, and write glovebox.lock
    Lock(LockArguments),
    /// List the plugins of the project, and whether each is as it was locked
    Ls(ListPluginsArguments),
    /// Find the smallest grants with which a plugin does the same work
    Rehearse(RehearseArguments),
    /// List the plugins of registries of which there is a newer version
    Outdated(OutdatedArguments),
    /// Show what grew in new bytes of a plugin, and agree to them with --accept
    // `--version` is the version of the plugin.
    #[command(disable_version_flag = true)]
    Update(UpdateArguments),
    /// Fetch the plugins of registries that glovebox.lock names into the store
    Pull(PullArguments),
    /// Remove a plugin from glovebox.toml and glovebox.lock; its component is kept
    Remove(RemovePluginArguments),
    /// Create a key that signs plugins
    Keygen(KeygenArguments),
    /// Sign a component, and write its signatures beside it
    Sign(SignArguments),
    /// Check the signatures of a component
    Verify(VerifyPluginArguments),
    /// Stop a component, also in runs under way, and never run it again
    Revoke(RevokeArguments),
    /// Show the lists of revocations of the project, and fetch those that are in registries with --refresh
    Revocations(RevocationsArguments),
}

/// `glovebox plugin inspect`.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The component: a file, or the name of a plugin of the project in the current folder
    #[arg(value_name = "FILE|NAME")]
    pub plugin: PathBuf,
    /// List every import, also the interfaces of WASI that every component has
    #[arg(long)]
    pub all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// The component; default: the one that `plugin build` wrote for the project in this folder
    pub file: Option<PathBuf>,
    /// A stage file (`glovebox schema plugin-stage`) that replaces the normal input; its outcome is printed
    #[arg(long, value_name = "STAGE.json")]
    pub input: Option<PathBuf>,
    /// A folder with cases, as `plugin dev` runs them: each `*.json` is a stage file with what is expected
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
    /// Make only the checks of this group, such as `scope`
    #[arg(long, value_name = "GROUP")]
    pub only: Option<String>,
    /// Run the component's commands in a sandbox; without it, they are refused
    #[arg(long)]
    pub allow_commands: bool,
    /// Maximum time of one call
    #[arg(long, value_name = "T", default_value = "10s", value_parser = super::wall_time)]
    pub wall_time: Duration,
    /// Write the checks as a JUnit report
    #[arg(long, value_name = "F")]
    pub junit: Option<PathBuf>,
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
    /// Write nothing, and exit with 11 if the lock file differs from the project in any way
    #[arg(long)]
    pub locked: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "locked")]
    pub json: bool,
}

/// `glovebox plugin add`.
#[derive(Debug, Args)]
pub struct AddArguments {
    /// The component: a file, a plugin in a registry such as `ghcr.io/acme/review:1.2.0`, or an https address with --digest. A file
    /// outside of the project is copied to `plugins/`
    #[arg(value_name = "FILE|REFERENCE|URL")]
    pub source: String,
    /// Refuse other bytes than those with this BLAKE3 digest, as `plugin inspect` prints it
    #[arg(long, value_name = "D")]
    pub digest: Option<Digest>,
    /// Name of the plugin, for a component without a manifest
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Agree to what is printed; without it, nothing is written and the exit code is 6
    #[arg(long)]
    pub accept: bool,
    /// The project to which the plugin is added
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox plugin update`.
#[derive(Debug, Args)]
pub struct UpdateArguments {
    /// Name of the plugin
    pub name: String,
    /// The new component, of a plugin with a `path`; default: the file there
    #[arg(long, value_name = "FILE|URL", conflicts_with = "version")]
    pub from: Option<String>,
    /// The new version, of a plugin of a registry; default: the newest one
    #[arg(long, value_name = "V")]
    pub version: Option<Version>,
    /// Refuse other bytes than those with this BLAKE3 digest
    #[arg(long, value_name = "D")]
    pub digest: Option<Digest>,
    /// Agree to what grew; without growth, the update needs no agreement
    #[arg(long)]
    pub accept: bool,
    /// The project whose plugin is updated
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox plugin rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArguments {
    /// Name of the plugin
    pub name: String,
    /// The pipeline that is run, a DOT file; default: `pipeline.dot` of the project, else its only DOT file
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub project: ProjectArguments,
    /// Answer model calls from this script (TOML) in each run
    #[arg(long, value_name = "F", conflicts_with = "ask_models")]
    pub script: Option<PathBuf>,
    /// Ask the models of the project in each run; default: answers are simulated
    #[arg(long)]
    pub ask_models: bool,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Agree that the plugin runs with everything that it wants; needed unless glovebox.lock has these bytes and all of it
    #[arg(long)]
    pub accept: bool,
    /// Maximum number of runs
    #[arg(long = "runs", value_name = "N", default_value_t = 200)]
    pub runs_max: usize,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin remove`.
#[derive(Debug, Args)]
pub struct RemovePluginArguments {
    /// Name of the plugin
    pub name: String,
    /// The project from which the plugin is removed
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox plugin ls`.
#[derive(Debug, Args)]
pub struct ListPluginsArguments {
    /// The project
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print the entries that the lock file would have, as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin pull`.
#[derive(Debug, Args)]
pub struct PullArguments {
    /// Name of the plugin; default: all plugins of registries
    pub name: Option<String>,
    /// The project
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox plugin push`.
#[derive(Debug, Args)]
pub struct PushArguments {
    /// The component
    pub file: PathBuf,
    /// The repository, such as `ghcr.io/acme/review`; the tag is the version in the component's manifest
    pub reference: String,
}

/// `glovebox plugin outdated`.
#[derive(Debug, Args)]
pub struct OutdatedArguments {
    /// The project
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// Part of a repository's name
    pub text: String,
    /// The registry, such as `registry.example:5000`; default: those of the project's plugins
    #[arg(long, value_name = "HOST")]
    pub registry: Option<String>,
    /// The project
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}
