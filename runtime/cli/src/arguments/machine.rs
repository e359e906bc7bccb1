//! The arguments of commands about Glovebox and this machine.

use clap::Args;
use glovebox_record::Tier;
use std::path::PathBuf;

/// `glovebox version`.
#[derive(Debug, Args)]
pub struct VersionArguments {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `glovebox schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// The document, such as `record`; without it, all are listed
    pub name: Option<String>,
}

/// `glovebox doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The project whose glovebox.toml has the required tier
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
    /// Attack the sandbox with a hostile program and a hostile component
    #[arg(long, group = "test")]
    pub attack: bool,
    /// Try ordinary behaviours of developers' tools in the sandbox
    #[arg(long, group = "test")]
    pub ordinary: bool,
    /// Test this tier instead of the best one: full, bwrap or landlock
    #[arg(long, value_name = "T", requires = "test", value_parser = tier)]
    pub tier: Option<Tier>,
    /// Try only the behaviours of this group, such as `git`
    #[arg(long, value_name = "G", requires = "ordinary")]
    pub group: Option<String>,
    /// Try only the behaviours whose id or reason contains this text
    #[arg(long, value_name = "TEXT", requires = "ordinary")]
    pub filter: Option<String>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::FleetArguments,
    /// Monitoring port of a NATS server, such as `http://10.0.0.1:8222`; only there its sync setting can be seen
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "URL", requires = "nats")]
    pub nats_monitor: Option<String>,
    /// Accept a fleet with one NATS server
    #[cfg(feature = "fleet")]
    #[arg(long, requires = "nats")]
    pub single_node: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

pub(super) fn tier(text: &str) -> Result<Tier, String> {
    let found = Tier::parse(text).filter(|tier| Tier::CONFINING.contains(tier));
    found.ok_or_else(|| "expected `full`, `bwrap` or `landlock`".to_owned())
}

/// `glovebox compile-component`, which the host of a run starts as a separate process.
#[derive(Debug, Args)]
pub struct CompileArguments {
    /// Limits and identity of the request
    pub bounds: String,
}
