//! The arguments of `glovebox fleet`, and those with which other commands name a fleet.

use clap::{Args, Subcommand};
use glovebox_fleet::store_url::StoreUrl;
use glovebox_fleet::subjects::FleetName;
use glovebox_signing::key::PublicKey;
use std::path::PathBuf;

/// The servers of a fleet, and who operates it.
#[derive(Debug, Default, Args)]
pub struct FleetArguments {
    /// NATS servers of a fleet, such as `tls://10.0.0.1:4222,tls://10.0.0.2:4222`; one that answers is enough
    #[arg(long, value_name = "URL[,URL]", value_delimiter = ',')]
    pub nats: Vec<String>,
    /// User of the NATS servers; its password is read from GLOVEBOX_NATS_PASSWORD
    #[arg(long, value_name = "NAME", requires = "nats")]
    pub nats_user: Option<String>,
    /// Name of the fleet on these servers [default: gb]
    #[arg(long, value_name = "NAME", value_parser = fleet_name, requires = "nats")]
    pub fleet: Option<FleetName>,
    /// Public key of the fleet's operator, as `fleet init` prints it; default: `operator` under `[fleet]` in
    /// glovebox.toml, else the key of this user
    #[arg(long, value_name = "KEY", requires = "nats")]
    pub operator: Option<PublicKey>,
}

/// What to do with a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Make a fleet on NATS servers, and the key of its operator
    Init(FleetInitArguments),
}

/// `glovebox fleet init`.
#[derive(Debug, Args)]
pub struct FleetInitArguments {
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Where all machines keep blobs: `s3://BUCKET?endpoint=URL`, with keys from AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY, or a shared folder, `file:///FOLDER`
    #[arg(long, value_name = "URL")]
    pub store: StoreUrl,
    /// Allow one server, whose disk then has the only copy of every journal
    #[arg(long)]
    pub single_node: bool,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

fn fleet_name(text: &str) -> Result<FleetName, String> {
    FleetName::new(text).ok_or_else(|| "expected 1 to 32 characters of a-z, A-Z, 0-9, `-` and `_`".to_owned())
}
