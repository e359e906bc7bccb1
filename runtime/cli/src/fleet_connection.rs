//! From the arguments of a command to the connection to a fleet.
//!
//! Passwords and the keys of object stores come from the environment only: every user of a machine can read the command
//! lines of all its processes.

use crate::arguments::FleetArguments;
use crate::exit::{Exit, Stop};
use crate::fleet_keys::FleetKey;
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_fleet::fleet::{Fleet, FleetAddress, FleetError, Login};
use glovebox_fleet::roster::Member;
use glovebox_fleet::statement::{Admission, Role};
use glovebox_fleet::store_url::{StoreError, StoreUrl};
use glovebox_journal::event::RunId;
use glovebox_journal::ports::PortError;
use glovebox_plan::config::Config;
use glovebox_signing::key::{PublicKey, SigningKey};
use jiff::Timestamp;
use std::path::Path;

const PASSWORD: &str = "GLOVEBOX_NATS_PASSWORD";
/// The variables with the keys of an object store, and the names of the client for them.
const CREDENTIALS: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "aws_access_key_id"),
    ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"),
    ("AWS_SESSION_TOKEN", "aws_session_token"),
    ("AWS_REGION", "aws_region"),
];

/// A connection to a fleet whose settings its operator signed.
pub struct ConnectedFleet {
    /// The connection to the servers.
    pub fleet: Fleet,
    /// The blobs of all machines.
    pub blobs: ObjectBlobs,
    /// Where they are.
    pub store: StoreUrl,
    /// The operator.
    operator: PublicKey,
}

impl ConnectedFleet {
    /// Returns the admission of this machine if it is admitted now with one of these roles.
    ///
    /// # Errors
    /// It is not, or it has no key (exit 6).
    pub async fn require(&self, roles: &[Role]) -> Result<Admission, Stop> {
        self.fleet.require(roles).await.map_err(|error| stop(&error))
    }

    /// Has a run that does not exist yet encrypted, for this user and the machines that are admitted to drive now.
    ///
    /// # Errors
    /// No machine is (exit 6), or the servers do not answer.
    pub async fn encrypt(&self, run: &RunId) -> Result<(), Stop> {
        let members = self.fleet.members(&self.operator).await.map_err(|error| stop(&error))?;
        let drives = |member: &&Member| {
            let admission = member.last.admission.as_ref();
            let valid = admission.filter(|admission| admission.is_valid_at(Timestamp::now()));
            valid.is_some_and(|admission| admission.has_any(&[Role::Drive]))
        };
        let machines: Vec<PublicKey> = members.iter().filter(drives).map(|member| member.last.machine).collect();
        if machines.is_empty() {
            let message =
                "the project has hold-outs, and no machine is admitted to drive, so none could decrypt the run";
            return Err(Stop::new(Exit::Policy, message).with_help(
                "the operator admits one: `glovebox fleet admit KEY --name NAME --may drive,build,verify`",
            ));
        }
        self.fleet.encrypt(run, &machines).map_err(|error| Stop::new(Exit::Policy, error.to_string()))
    }
}

impl FleetArguments {
    /// Connects to the fleet, reads its settings and opens its blobs. `config` may name the operator. `workdir` is the
    /// project folder, in which no key may lie. Without a key of this machine, journals can only be read.
    ///
    /// # Errors
    /// No server answers (exit 9), the servers refuse the user or another operator made the fleet (6), there is no fleet
    /// (3), or the arguments are incomplete (2).
    pub async fn connect(&self, config: &Config, workdir: &Path) -> Result<ConnectedFleet, Stop> {
        let operator = self.operator(config, workdir)?;
        let key = FleetKey::Machine.read(workdir)?;
        let mut fleet = self.servers().await?;
        let settings = fleet.join(&operator, key).await.map_err(|error| stop(&error))?;
        let blobs = open(&settings.store)?;
        Ok(ConnectedFleet { fleet, blobs, store: settings.store, operator })
    }

    /// Connects to the servers and trusts nothing that they store.
    ///
    /// # Errors
    /// No server answers (exit 9), the servers refuse the user (6), or the arguments are incomplete (2).
    pub async fn servers(&self) -> Result<Fleet, Stop> {
        Fleet::connect(&self.address()?).await.map_err(|error| stop(&error))
    }

    /// Returns the public key of the operator that this user trusts.
    ///
    /// # Errors
    /// The user named none (exit 2).
    pub fn operator(&self, config: &Config, workdir: &Path) -> Result<PublicKey, Stop> {
        let key = match self.operator.or(config.fleet.operator) {
            Some(named) => Some(named),
            None => FleetKey::Operator.read(workdir)?.map(|key| key.public()),
        };
        key.ok_or_else(|| {
            Stop::new(Exit::Usage, "the operator of the fleet is not known")
                .with_help("ask the operator for the public key: `--operator ed25519:…`, or `operator = \"ed25519:…\"` under `[fleet]` in glovebox.toml")
        })
    }

    /// Returns the operator's private key.
    ///
    /// # Errors
    /// This user does not have it (exit 6).
    pub fn operator_key(&self, config: &Config, workdir: &Path) -> Result<SigningKey, Stop> {
        let named = self.operator.or(config.fleet.operator);
        let key = FleetKey::Operator.read(workdir)?.filter(|key| named.is_none_or(|named| named == key.public()));
        key.ok_or_else(|| {
            Stop::new(Exit::Policy, "this user does not have the key of the fleet's operator")
                .with_help("run the command as the user who ran `glovebox fleet init`")
        })
    }

    fn address(&self) -> Result<FleetAddress, Stop> {
        if self.nats.is_empty() {
            return Err(Stop::new(Exit::Usage, "no servers are named").with_help("`--nats nats://HOST:4222`"));
        }
        // An address with a password would be in error messages too.
        if self.nats.iter().any(|server| server.contains('@')) {
            let message = "an address of `--nats` has a user: other users of this machine can read it";
            return Err(Stop::new(Exit::Usage, message)
                .with_help(format!("`--nats-user NAME`, with the password in {PASSWORD}")));
        }
        let login = self.nats_user.as_ref().map(|user| login(user)).transpose()?;
        let default = FleetAddress::new(self.nats.clone());
        Ok(FleetAddress { login, name: self.fleet.clone().unwrap_or_default(), ..default })
    }
}

fn login(user: &str) -> Result<Login, Stop> {
    let password = std::env::var(PASSWORD).map_err(|_| {
        Stop::new(Exit::Usage, format!("there is no password for the user of `--nats-user`: {PASSWORD} is not set"))
            .with_help(format!("read -rs {PASSWORD} && export {PASSWORD}"))
    })?;
    Ok(Login { user: user.to_owned(), password })
}

/// Opens the store of a fleet with the keys of this machine.
///
/// # Errors
/// A folder is missing, or the settings of a service are wrong (exit 3).
pub fn open(store: &StoreUrl) -> Result<ObjectBlobs, Stop> {
    let found = CREDENTIALS.iter().filter_map(|(variable, name)| {
        std::env::var(variable).ok().filter(|value| !value.is_empty()).map(|value| ((*name).to_owned(), value))
    });
    let credentials: Vec<(String, String)> = if store.needs_credentials() { found.collect() } else { Vec::new() };
    store.open(&credentials).map_err(|error| match error {
        StoreError::S3(error) => Stop::new(Exit::Invalid, error.to_string()),
        error @ StoreError::Folder { .. } => {
            let text = error.to_string();
            let (message, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
            Stop::new(Exit::Invalid, message).with_help(help)
        }
    })
}

/// Returns why a command that uses a fleet stops.
pub fn stop(error: &FleetError) -> Stop {
    let exit = match error.exit_code() {
        9 => Exit::Transient,
        6 => Exit::Policy,
        11 => Exit::Mismatch,
        _ => Exit::Invalid,
    };
    let (message, help) = error.parts();
    Stop { help, ..Stop::new(exit, message) }
}

/// Returns why a run of a fleet cannot be read.
pub fn unread(error: &PortError) -> Stop {
    let exit = match error {
        PortError::Corrupt { .. } | PortError::Version { .. } => Exit::Mismatch,
        PortError::Foreign { .. } | PortError::NoKey { .. } => Exit::Policy,
        _ => Exit::Transient,
    };
    let text = error.to_string();
    match text.split_once("\nhelp: ") {
        Some((message, help)) => Stop::new(exit, message).with_help(help),
        None => Stop::new(exit, text),
    }
}
