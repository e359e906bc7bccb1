//! A fleet on servers of its own, with any number of connections.

use crate::nats::{NatsServers, nats_program};
use crate::not_run::not_run;
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_fleet::fleet::{Fleet, FleetAddress, Login};
use glovebox_fleet::init::Replication;
use glovebox_fleet::log::NatsLog;
use glovebox_fleet::statement::{Admission, Role};
use glovebox_journal::event::{Event, Record, RunCanceled, RunId, StreamKey};
use glovebox_journal::ports::{PortError, RunLog as _, Stored};
use glovebox_signing::key::SigningKey;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Servers with the stream of a fleet, and the blobs of all its machines.
pub(crate) struct Bench {
    pub(crate) servers: NatsServers,
    pub(crate) blobs: ObjectBlobs,
}

/// Returns false and says so if the server is not on this machine.
pub(crate) fn can_run(test: &str) -> bool {
    let is_here = nats_program().is_some();
    if !is_here {
        not_run(test, "no nats-server: run `cargo xtask nats`");
    }
    is_here
}

/// Returns an address with short waits.
pub(crate) fn address(servers: Vec<String>) -> FleetAddress {
    FleetAddress { answer_wait: Duration::from_secs(1), ..FleetAddress::new(servers) }
}

/// Returns the key of the operator.
pub(crate) fn operator() -> SigningKey {
    SigningKey::from_seed(&[1; 32]).unwrap()
}

/// Returns the key of every machine that a test does not tell apart.
pub(crate) fn machine() -> SigningKey {
    SigningKey::from_seed(&[2; 32]).unwrap()
}

/// Returns an admission with these roles.
pub(crate) fn admission(name: &str, may: &[Role]) -> Admission {
    let may = may.iter().copied().collect();
    Admission { name: name.parse().unwrap(), may, labels: BTreeSet::new(), tier: None, until: None }
}

/// Records the settings of a fleet.
pub(crate) async fn establish(fleet: &Fleet) {
    fleet.establish(&operator(), &"file:///shared".parse().unwrap(), None).await.unwrap();
}

/// Connects as a machine.
pub(crate) async fn joined(address: &FleetAddress, key: SigningKey) -> Fleet {
    let mut fleet = Fleet::connect(address).await.unwrap();
    fleet.join(&operator().public(), Some(key)).await.unwrap();
    fleet
}

impl Bench {
    pub(crate) async fn start(count: usize) -> Self {
        Self::start_with(count, None).await
    }

    /// Starts servers with the settings of another fleet, which is then the same fleet on other servers.
    pub(crate) async fn start_with(count: usize, settings: Option<Vec<u8>>) -> Self {
        let servers = NatsServers::start(count, "");
        let replication = if count == 1 { Replication::SingleNode } else { Replication::Cluster };
        let fleet = connect(servers.addresses()).await;
        fleet.init(replication).await.unwrap();
        if let Some(settings) = settings {
            let client = async_nats::connect(servers.addresses()).await.unwrap();
            client.request("gb.f", settings.into()).await.unwrap();
        } else {
            establish(&fleet).await;
        }
        let both = admission("machine", &[Role::Submit, Role::Drive]);
        fleet.admit(&operator(), machine().public(), both).await.unwrap();
        Self { servers, blobs: ObjectBlobs::in_memory().unwrap() }
    }

    /// Connects to the servers.
    pub(crate) async fn fleet(&self) -> Fleet {
        connect(self.servers.addresses()).await
    }

    /// Connects as another machine.
    pub(crate) async fn log(&self) -> NatsLog {
        self.log_at(self.servers.addresses()).await
    }

    /// Connects as another machine, by other addresses.
    pub(crate) async fn log_at(&self, servers: Vec<String>) -> NatsLog {
        joined(&address(servers), machine()).await.log(self.blobs.clone())
    }

    /// Reads the journal as a new machine does, verified from its first record.
    pub(crate) async fn records(&self) -> Vec<Record> {
        self.log().await.read(&run(), 1, usize::MAX).await.unwrap()
    }
}

/// Connects to servers that may still elect a leader.
pub(crate) async fn connect(servers: Vec<String>) -> Fleet {
    Fleet::connect(&address(servers)).await.unwrap()
}

pub(crate) fn run() -> RunId {
    "run".into()
}

pub(crate) fn note(text: impl Into<String>) -> Event {
    Event::RunCanceled(RunCanceled { by: text.into() })
}

/// Returns the texts of notes, in order.
pub(crate) fn texts(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| match &record.event {
            Event::RunCanceled(canceled) => canceled.by.as_str(),
            other => panic!("{other:?}"),
        })
        .collect()
}

pub(crate) async fn append(
    log: &NatsLog,
    expect: &[(StreamKey, u64)],
    events: &[Event],
) -> Result<Vec<Stored>, PortError> {
    log.append(&run(), expect, Timestamp::now(), events).await
}

/// Returns an address with a login.
pub(crate) fn with_login(servers: Vec<String>, login: Option<Login>) -> FleetAddress {
    FleetAddress { login, ..address(servers) }
}
