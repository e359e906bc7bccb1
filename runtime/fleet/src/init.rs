//! The stream of a fleet: `fleet init` creates it, and every other command only checks it.
//!
//! A stream that loses acknowledged records, or that anybody could create by mistake, would break the promise of a
//! checkpoint. So the checks refuse a server without atomic batches and a stream with one replica, and name the setting.
//! Whether the server flushes each record is visible only to its operator and on its monitoring port.

use crate::fleet::{Fleet, FleetError};
use crate::jetstream::{JetStream, RequestError};
use crate::repetition::patiently;
use crate::s3;
use glovebox_journal::event::RunId;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first version of the server that has atomic batches.
const VERSION_MIN: (u64, u64) = (2, 12);
/// The size in bytes that a message may have on every server. It is the server's default.
const PAYLOAD_BYTES_MIN: usize = 1024 * 1024;
/// Replicas of a stream in a cluster.
const REPLICAS: u8 = 3;
/// Maximum size in bytes of an answer of the monitoring port.
const MONITOR_BYTES_MAX: usize = 1024 * 1024;

/// How many machines store each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// Three servers. One of them may be lost.
    Cluster,
    /// One server. If its disk is lost, so is every journal.
    SingleNode,
}

/// The result of the checks of a fleet that may be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FleetReport {
    /// What could not be checked or is weaker than recommended, each with what to do.
    pub warnings: Vec<String>,
}

/// The configuration of a stream, as far as this program sets and checks it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StreamConfig {
    name: String,
    #[serde(default)]
    subjects: Vec<String>,
    #[serde(default)]
    pub(crate) storage: String,
    #[serde(default)]
    pub(crate) num_replicas: u8,
    #[serde(default)]
    allow_atomic: bool,
    /// Replicas answer reads of many messages.
    #[serde(default)]
    allow_direct: bool,
    #[serde(default)]
    retention: String,
    #[serde(default)]
    discard: String,
    /// In nanoseconds; 0 for no limit.
    #[serde(default)]
    max_age: u64,
    /// -1 for no limit.
    #[serde(default)]
    max_msgs_per_subject: i64,
}

#[derive(Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) config: StreamConfig,
    /// The servers with the stream. `None` outside of a cluster.
    #[serde(default)]
    pub(crate) cluster: Option<ClusterInfo>,
    /// The time of the answer by the server's clock.
    #[serde(default)]
    pub(crate) ts: Option<Timestamp>,
}

/// The servers with a stream.
#[derive(Deserialize)]
pub(crate) struct ClusterInfo {
    /// The servers that follow the leader.
    #[serde(default)]
    pub(crate) replicas: Vec<Replica>,
}

/// A server that follows the leader of a stream.
#[derive(Deserialize)]
pub(crate) struct Replica {
    pub(crate) name: String,
    /// True if it has all that the leader has.
    #[serde(default)]
    pub(crate) current: bool,
}

/// The part of the page `varz` of a server's monitoring port that is read.
#[derive(Deserialize)]
struct Varz {
    #[serde(default)]
    jetstream: VarzJetStream,
}

#[derive(Default, Deserialize)]
struct VarzJetStream {
    #[serde(default)]
    config: VarzConfig,
}

#[derive(Default, Deserialize)]
pub(crate) struct VarzConfig {
    #[serde(default)]
    sync_always: bool,
    /// In nanoseconds.
    sync_interval: Option<u64>,
}

/// The part of the information about a stream that lists subjects.
#[derive(Deserialize)]
struct StreamSubjects {
    state: SubjectsState,
    /// Number of subjects that match.
    #[serde(default)]
    total: usize,
}

#[derive(Deserialize)]
struct SubjectsState {
    #[serde(default)]
    subjects: BTreeMap<String, IgnoredAny>,
}

impl Fleet {
    /// Returns the ids of all runs. A run whose id is not its own subject is left out: no command gives a run such an id.
    ///
    /// # Errors
    /// There is no stream, or no server answers.
    pub async fn runs(&self) -> Result<Vec<RunId>, FleetError> {
        let name = &self.jetstream.name;
        let (request, mut runs) = (format!("STREAM.INFO.{}", name.stream()), Vec::new());
        loop {
            let body = serde_json::json!({ "subjects_filter": name.runs(), "offset": runs.len() });
            let page = patiently(self.patience, || self.jetstream.call::<StreamSubjects>(&request, &body)).await;
            let StreamSubjects { state, total } = page.map_err(|error| self.failed(error))?;
            let count = state.subjects.len();
            runs.extend(state.subjects.into_keys());
            if count == 0 || runs.len() >= total {
                break;
            }
        }
        Ok(runs.iter().filter_map(|subject| name.run_of(subject)).collect())
    }

    /// Creates the streams of the fleet: that of journals and that of messages to runs. One that exists is checked and not
    /// changed.
    ///
    /// # Errors
    /// The server is too old or JetStream is off, or an existing stream has an unsafe setting, or the servers cannot
    /// store as many replicas.
    pub async fn init(&self, replication: Replication) -> Result<(), FleetError> {
        self.check_server()?;
        let name = &self.jetstream.name;
        self.create(&self.jetstream, name.stored().to_vec(), replication).await?;
        self.create(&self.jetstream.mail(), name.mail_stored().to_vec(), replication).await
    }

    async fn create(
        &self,
        jetstream: &JetStream,
        subjects: Vec<String>,
        replication: Replication,
    ) -> Result<(), FleetError> {
        let name = &jetstream.stream;
        let config = StreamConfig {
            name: name.clone(),
            subjects,
            storage: "file".to_owned(),
            num_replicas: match replication {
                Replication::Cluster => REPLICAS,
                Replication::SingleNode => 1,
            },
            allow_atomic: true,
            allow_direct: true,
            retention: "limits".to_owned(),
            discard: "new".to_owned(),
            max_age: 0,
            max_msgs_per_subject: -1,
        };
        // Servers that have just started elect a leader first.
        match patiently(self.patience, || stream(jetstream)).await {
            Ok(found) => return check_stream(&found.config, replication),
            Err(RequestError::NoStream) => {}
            Err(error) => return Err(self.failed(error)),
        }
        let request = format!("STREAM.CREATE.{name}");
        let created = patiently(self.patience, || jetstream.call::<StreamInfo>(&request, &config)).await;
        let created = created.map_err(|error| match error {
            RequestError::Refused(reason) => FleetError::Unsafe {
                found: format!("the server does not create the stream `{name}`: {reason}"),
                help: "start three servers as one cluster with `jetstream` on, or allow one: `--single-node`"
                    .to_owned(),
            },
            error => self.failed(error),
        })?;
        check_stream(&created.config, replication)
    }

    /// Checks that the servers and the stream keep what they acknowledge. `monitor` is the address of a server's
    /// monitoring port, such as `http://10.0.0.1:8222`; without it the sync setting is not visible.
    ///
    /// # Errors
    /// The server is too old, JetStream is off, there is no stream, or it has an unsafe setting.
    pub async fn check(&self, replication: Replication, monitor: Option<&str>) -> Result<FleetReport, FleetError> {
        self.check_server()?;
        for jetstream in [&self.jetstream, &self.jetstream.mail()] {
            let stream = stream(jetstream).await.map_err(|error| self.failed_in(jetstream, error))?;
            check_stream(&stream.config, replication)?;
        }
        let mut warnings = Vec::new();
        if replication == Replication::SingleNode {
            warnings.push("one server stores every journal: if its disk is lost, so are all runs".to_owned());
        }
        match self.sync_setting(monitor).await {
            Ok(found) => check_sync(&found)?,
            Err(reason) => warnings.push(format!(
                "it is not known whether the servers flush each record: {reason}\n\
                 help: set `jetstream {{ sync_interval: always }}` on every server"
            )),
        }
        Ok(FleetReport { warnings })
    }

    pub(crate) fn check_server(&self) -> Result<(), FleetError> {
        let server = self.client.server_info();
        check_version(&server.version)?;
        if server.max_payload < PAYLOAD_BYTES_MIN {
            return Err(FleetError::Unsafe {
                found: format!(
                    "the server accepts messages of {} bytes, expected {PAYLOAD_BYTES_MIN}",
                    server.max_payload
                ),
                help: "remove `max_payload` from its configuration".to_owned(),
            });
        }
        match server.jetstream {
            true => Ok(()),
            false => Err(FleetError::Unsafe {
                found: "JetStream is off on the server".to_owned(),
                help: "write `jetstream { store_dir: DIR, sync_interval: always }` into its configuration".to_owned(),
            }),
        }
    }

    /// Reads the sync setting, or returns why it is not visible.
    pub(crate) async fn sync_setting(&self, monitor: Option<&str>) -> Result<VarzConfig, String> {
        let monitor = monitor.ok_or("no monitoring port was named")?;
        let reason = |error: reqwest::Error| error.to_string();
        let client = s3::client(true).map_err(|error| error.to_string())?;
        let mut page = client.get(format!("{}/varz", monitor.trim_end_matches('/'))).send().await.map_err(reason)?;
        let mut bytes = Vec::new();
        while let Some(part) = page.chunk().await.map_err(reason)? {
            bytes.extend_from_slice(&part);
            if bytes.len() > MONITOR_BYTES_MAX {
                return Err(format!("`{monitor}` answers with more than {MONITOR_BYTES_MAX} bytes"));
            }
        }
        let varz: Varz = serde_json::from_slice(&bytes).map_err(|error| format!("`{monitor}`: {error}"))?;
        Ok(varz.jetstream.config)
    }
}

/// Reads the configuration and the state of a stream.
pub(crate) async fn stream(jetstream: &JetStream) -> Result<StreamInfo, RequestError> {
    jetstream.call(&format!("STREAM.INFO.{}", jetstream.stream), &()).await
}

fn check_version(version: &str) -> Result<(), FleetError> {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u64>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= VERSION_MIN {
        return Ok(());
    }
    let (major, minor) = VERSION_MIN;
    Err(FleetError::Unsafe {
        found: format!("the server has version {version}, expected {major}.{minor} or newer"),
        help: "install a newer nats-server: an older one has no atomic batches".to_owned(),
    })
}

pub(crate) fn check_stream(stream: &StreamConfig, replication: Replication) -> Result<(), FleetError> {
    let name = &stream.name;
    let unsafe_setting = |found: String, help: &str| Err(FleetError::Unsafe { found, help: help.to_owned() });
    if !stream.allow_atomic {
        return unsafe_setting(
            format!("the stream `{name}` accepts no atomic batches"),
            &format!("run `nats stream edit {name} --allow-batch`"),
        );
    }
    if stream.storage != "file" {
        return unsafe_setting(
            format!("the stream `{name}` is stored in {}, expected a file", stream.storage),
            "remove the stream and run `glovebox fleet init`",
        );
    }
    let keeps_all = stream.retention == "limits" && stream.discard == "new";
    if !keeps_all || stream.max_age != 0 || stream.max_msgs_per_subject != -1 {
        return unsafe_setting(
            format!("the stream `{name}` drops old records"),
            &format!(
                "run `nats stream edit {name} --discard=new --max-age=0 --max-msgs-per-subject=-1`; its retention must be `limits`"
            ),
        );
    }
    if replication == Replication::Cluster && stream.num_replicas < REPLICAS {
        return unsafe_setting(
            format!("the stream `{name}` has {} replicas, expected {REPLICAS}", stream.num_replicas),
            &format!("run `nats stream edit {name} --replicas={REPLICAS}`, or allow one server: `--single-node`"),
        );
    }
    Ok(())
}

pub(crate) fn check_sync(found: &VarzConfig) -> Result<(), FleetError> {
    if found.sync_always {
        return Ok(());
    }
    let interval = found.sync_interval.map_or("later".to_owned(), |ns| format!("each {} s", ns / 1_000_000_000));
    Err(FleetError::Unsafe {
        found: format!("the server flushes records {interval}: a power cut loses acknowledged ones"),
        help: "set `jetstream { sync_interval: always }` on every server".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_atomic_batches_is_refused() {
        for version in ["2.12.0", "2.15.1", "2.12.0-RC.1", "3.0.0"] {
            check_version(version).unwrap();
        }
        for version in ["2.11.9", "2.9.10", "1.99.0", "", "x"] {
            let error = check_version(version).unwrap_err();
            assert!(error.to_string().contains("expected 2.12 or newer"), "{error}");
            assert_eq!(error.exit_code(), 3);
        }
    }

    #[test]
    fn an_unsafe_stream_is_refused_with_the_setting_to_change() {
        let stream = |change: &str| {
            let mut config = serde_json::json!({
                "name": "gb", "storage": "file", "num_replicas": 3, "allow_atomic": true, "retention": "limits",
                "discard": "new", "max_age": 0, "max_msgs_per_subject": -1,
            });
            match change {
                "replicas" => config["num_replicas"] = 1.into(),
                "atomic" => config["allow_atomic"] = false.into(),
                "storage" => config["storage"] = "memory".into(),
                "retention" => config["retention"] = "workqueue".into(),
                "discard" => config["discard"] = "old".into(),
                "age" => config["max_age"] = 1_000_000_000.into(),
                "messages" => config["max_msgs_per_subject"] = 5.into(),
                _ => {}
            }
            serde_json::from_value::<StreamConfig>(config).unwrap()
        };
        check_stream(&stream(""), Replication::Cluster).unwrap();
        check_stream(&stream("replicas"), Replication::SingleNode).unwrap();
        for (change, found) in [
            ("replicas", "has 1 replicas, expected 3"),
            ("atomic", "accepts no atomic batches"),
            ("storage", "stored in memory"),
            ("retention", "drops old records"),
            ("discard", "drops old records"),
            ("age", "drops old records"),
            ("messages", "drops old records"),
        ] {
            let error = check_stream(&stream(change), Replication::Cluster).unwrap_err().to_string();
            assert!(error.contains(found) && error.contains("\nhelp: "), "{error}");
        }
    }
}
