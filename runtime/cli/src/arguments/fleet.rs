//! The arguments of `glovebox fleet`, and those with which other commands name a fleet.

use super::machine::tier;
use clap::{Args, Subcommand};
use glovebox_fleet::lease::Lease;
use glovebox_fleet::server_users::ServerRole;
use glovebox_fleet::statement::{Role, Word};
use glovebox_fleet::store_url::StoreUrl;
use glovebox_fleet::subjects::FleetName;
use glovebox_record::{Label, Tier};
use glovebox_signing::key::PublicKey;
use jiff::civil::Date;
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
    /// Print the public key of this machine; the key is made the first time
    Key(FleetKeyArguments),
    /// Admit a machine, or change what it may do
    Admit(FleetAdmitArguments),
    /// Expel a machine; what it signed before still counts
    Expel(FleetExpelArguments),
    /// List the machines of the fleet
    Ls(FleetListArguments),
    /// Print the users of each role for the configuration of the NATS servers
    Permissions(FleetPermissionsArguments),
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
    /// How long a machine may be silent before another one does its work, 3s to 5m; a fleet keeps its lease [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub lease: Option<Lease>,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox fleet key`.
#[derive(Debug, Args)]
pub struct FleetKeyArguments {
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox fleet admit`.
#[derive(Debug, Args)]
pub struct FleetAdmitArguments {
    /// Public key of the machine, as `fleet key` prints it there
    #[arg(value_name = "KEY")]
    pub machine: PublicKey,
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Name of the machine, which no other machine of the fleet has
    #[arg(long, value_name = "NAME")]
    pub name: Word,
    /// What the machine may do, one or more of `submit`, `drive`, `build` and `verify`, separated by commas
    #[arg(long, value_name = "ROLE[,ROLE]", value_delimiter = ',', required = true)]
    pub may: Vec<Role>,
    /// A label that the machine may claim; repeatable
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<Label>,
    /// The machine must confine commands in this tier or a better one: full, bwrap or landlock
    #[arg(long, value_name = "T", value_parser = tier)]
    pub tier: Option<Tier>,
    /// The last day of the admission in UTC, such as 2027-01-31
    #[arg(long, value_name = "DATE")]
    pub until: Option<Date>,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox fleet expel`.
#[derive(Debug, Args)]
pub struct FleetExpelArguments {
    /// The machine: its name or its public key
    #[arg(value_name = "NAME|KEY")]
    pub machine: String,
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox fleet ls`.
#[derive(Debug, Args)]
pub struct FleetListArguments {
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// The project folder
    #[arg(long, value_name = "D", default_value = ".")]
    pub workdir: PathBuf,
}

/// `glovebox fleet permissions`.
#[derive(Debug, Args)]
pub struct FleetPermissionsArguments {
    /// The role of a user: `operator`, `client`, `driver`, `worker` or `reader`; repeatable; default: all
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<ServerRole>,
    /// Name of the fleet
    #[arg(long, value_name = "NAME", value_parser = fleet_name, default_value = "gb")]
    pub fleet: FleetName,
}

fn lease(text: &str) -> Result<Lease, String> {
    let found = glovebox_pipeline::lower::duration(text).and_then(|duration| Lease::new(duration).ok());
    found.ok_or_else(|| "expected a time from `3s` to `5m`".to_owned())
}

fn fleet_name(text: &str) -> Result<FleetName, String> {
    FleetName::new(text).ok_or_else(|| {
        "expected 1 to 32 characters of a-z, A-Z, 0-9, `-` and `_`, without `-mail` at the end".to_owned()
    })
}
