//! The command line of signatures and revocations: `glovebox plugin keygen`, `sign`, `verify` and `revoke`.

use clap::{ArgGroup, Args};
use glovebox_record::Digest;
use std::path::PathBuf;

/// `glovebox plugin keygen`.
#[derive(Debug, Args)]
pub struct KeygenArguments {
    /// The new file of the private key; the public key is written to FILE.pub. No file is replaced
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `glovebox plugin sign`.
#[derive(Debug, Args)]
pub struct SignArguments {
    /// The component
    pub component: PathBuf,
    /// A private key (PEM); several sign with several keys, such as an old one and a new one
    #[arg(long = "key", value_name = "KEY", required = true)]
    pub keys: Vec<PathBuf>,
    /// Name of the plugin, for a component without a manifest
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write here instead of to COMPONENT.sig.json
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `glovebox plugin verify`.
#[derive(Debug, Args)]
pub struct VerifyPluginArguments {
    /// The component
    pub component: PathBuf,
    /// A public key: a file (PEM), or its text `ed25519:…`; default: the keys under `[trust]` in glovebox.toml
    #[arg(long = "key", value_name = "PUB")]
    pub key: Option<PathBuf>,
    /// The file of signatures; default: COMPONENT.sig.json
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Name of the plugin, for a component without a manifest
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The project whose keys are trusted
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin revocations`.
#[derive(Debug, Args)]
pub struct RevocationsArguments {
    /// Fetch the lists that `[trust]` names in registries and at addresses
    #[arg(long)]
    pub refresh: bool,
    /// The project
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox plugin revoke`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["component", "list", "undo"])))]
pub struct RevokeArguments {
    /// The component to revoke: its digest (`blake3:…`) or its file
    #[arg(value_name = "DIGEST|FILE", requires = "reason")]
    pub component: Option<String>,
    /// Why; everybody whose run is stopped sees it
    #[arg(long, value_name = "TEXT", requires = "component")]
    pub reason: Option<String>,
    /// Show the revocations
    #[arg(long)]
    pub list: bool,
    /// Take back the revocation of this component
    #[arg(long, value_name = "DIGEST")]
    pub undo: Option<Digest>,
    /// Change this signed list for other people instead of your own list
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "list")]
    pub publish: Option<PathBuf>,
    /// Also publish the signed list in a registry: `HOST/PATH` or `HOST/PATH:TAG`, by default the tag `latest`
    #[arg(long, value_name = "REFERENCE", requires = "publish")]
    pub push: Option<String>,
    /// The private key (PEM) that signs the list
    #[arg(long, value_name = "KEY", requires = "publish")]
    pub key: Option<PathBuf>,
    /// Print the list as one JSON document
    #[arg(long, requires = "list")]
    pub json: bool,
}
