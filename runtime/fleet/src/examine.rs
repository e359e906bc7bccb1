//! What `glovebox doctor` says about a fleet's servers: one finding for each property.
//!
//! The checks are those of [`crate::init`]. A command that uses the fleet stops at the first problem; here all are shown, with
//! what to change.

use crate::fleet::{Fleet, FleetError};
use crate::init::{Replication, StreamInfo, check_stream, check_sync};
use crate::jetstream::RequestError;
use crate::permissions::UserInfo;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// Difference of the clocks above which a warning is due.
const CLOCK_WARNING: SignedDuration = SignedDuration::from_secs(1);
/// Difference of the clocks above which a machine must not drive a run.
const CLOCK_PROBLEM: SignedDuration = SignedDuration::from_secs(5);

/// One property of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Name of the property: `server`, `encryption`, `user`, `stream`, `replicas`, `sync` or `clock`.
    pub name: &'static str,
    /// Whether the property is as it should be.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to change, or how to check what could not be seen; null if nothing is to be done.
    pub help: Option<String>,
}

/// Whether a property is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is.
    Ok,
    /// It could be better, or could not be checked.
    Warning,
    /// No command uses such a fleet.
    Problem,
}

impl State {
    /// Returns the word for people and for JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

fn ok(name: &'static str, found: impl Into<String>) -> Finding {
    Finding { name, state: State::Ok, found: found.into(), help: None }
}

fn warning(name: &'static str, found: impl Into<String>, help: impl Into<String>) -> Finding {
    Finding { name, state: State::Warning, found: found.into(), help: Some(help.into()) }
}

/// Returns the finding of a check: what is there, or the problem with the setting to change.
fn checked(name: &'static str, found: String, check: Result<(), FleetError>) -> Finding {
    match check {
        Ok(()) => ok(name, found),
        Err(error) => problem(name, &error),
    }
}

fn problem(name: &'static str, error: &FleetError) -> Finding {
    let (found, help) = error.parts();
    Finding { name, state: State::Problem, found, help }
}

impl Fleet {
    /// Examines the servers and the stream. `monitor` is the address of a server's monitoring port, such as
    /// `http://10.0.0.1:8222`; without it the sync setting is not visible.
    ///
    /// # Errors
    /// The servers do not answer, or refuse this user.
    pub async fn examine(&self, replication: Replication, monitor: Option<&str>) -> Result<Vec<Finding>, FleetError> {
        let mut findings = vec![self.server(), self.encryption(), self.user().await];
        if findings[0].state == State::Problem {
            return Ok(findings);
        }
        let asked = Timestamp::now();
        match self.stream().await {
            Ok(stream) => {
                let answered = Timestamp::now();
                let found = format!("`{}`, stored in a {}", self.jetstream.name.stream(), stream.config.storage);
                findings.push(checked("stream", found, check_stream(&stream.config, Replication::SingleNode)));
                findings.push(replicas(&stream, replication));
                findings.extend(stream.ts.map(|server| clock(asked, server, answered)));
            }
            Err(RequestError::NoStream) => findings.push(problem("stream", &self.failed(RequestError::NoStream))),
            Err(error) => return Err(self.failed(error)),
        }
        findings.push(self.sync(monitor).await);
        Ok(findings)
    }

    fn server(&self) -> Finding {
        let info = self.client.server_info();
        let cluster = info.cluster.map_or(String::new(), |cluster| format!(" in the cluster `{cluster}`"));
        let found = format!("nats-server {}, `{}`{cluster}", info.version, info.server_name);
        checked("server", found, self.check_server())
    }

    /// Says whether the connection hides the password and the journals from the network.
    fn encryption(&self) -> Finding {
        let servers: Vec<&str> = self.servers.split(',').collect();
        let is_local = |server: &&str| {
            let host = server.rsplit_once("://").map_or(*server, |(_, host)| host);
            ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
        };
        match () {
            () if self.client.server_info().tls_required || servers.iter().all(|one| one.starts_with("tls://")) => {
                ok("encryption", "TLS")
            }
            () if servers.iter().all(is_local) => ok("encryption", "none: the servers are on this machine"),
            () => warning(
                "encryption",
                "none: the network can read passwords and journals",
                "set `tls { cert_file: …, key_file: … }` on every server and write `tls://HOST:4222`",
            ),
        }
    }

    async fn user(&self) -> Finding {
        match UserInfo::ask(&self.client, self.answer_wait()).await {
            Some(info) => info.finding(&self.jetstream.name),
            None => warning(
                "user",
                "the server does not say what this user may do",
                "allow it to publish `$SYS.REQ.USER.INFO`, as `glovebox fleet permissions` does",
            ),
        }
    }

    async fn sync(&self, monitor: Option<&str>) -> Finding {
        match self.sync_setting(monitor).await {
            Ok(found) => {
                checked("sync", "each record is flushed before it is acknowledged".to_owned(), check_sync(&found))
            }
            Err(reason) => warning(
                "sync",
                format!("it is not known whether the servers flush each record: {reason}"),
                "set `jetstream { sync_interval: always }` on every server, and name the monitoring port of each in turn: \
                 `--nats-monitor http://HOST:8222`",
            ),
        }
    }
}

fn replicas(stream: &StreamInfo, replication: Replication) -> Finding {
    let count = stream.config.num_replicas;
    if replication == Replication::SingleNode && count < 3 {
        let found = format!("{count}: if the disk of this server is lost, so are all runs");
        return warning("replicas", found, "use three servers as one cluster, and leave out `--single-node`");
    }
    let late: Vec<&str> = stream
        .cluster
        .iter()
        .flat_map(|cluster| &cluster.replicas)
        .filter(|one| !one.current)
        .map(|one| one.name.as_str())
        .collect();
    if !late.is_empty() {
        let found = format!("{count}, but `{}` does not have all records", late.join("`, `"));
        return warning("replicas", found, "start that server, or wait until it has caught up");
    }
    checked("replicas", count.to_string(), check_stream(&stream.config, replication))
}

/// Compares the clock of this machine, before and after a request, with the time in the answer.
fn clock(asked: Timestamp, server: Timestamp, answered: Timestamp) -> Finding {
    let half = answered.duration_since(asked) / 2;
    let offset = server.duration_since(asked) - half;
    let side = if offset.is_negative() { "ahead of" } else { "behind" };
    let found = format!(
        "this machine is {} ms {side} the server, give or take {} ms",
        offset.abs().as_millis(),
        half.as_millis() + 1
    );
    let help =
        "synchronise the clocks, for example with chrony: times of records and ends of admissions depend on them";
    match offset.abs() {
        offset if offset > CLOCK_PROBLEM => {
            Finding { name: "clock", state: State::Problem, found, help: Some(help.to_owned()) }
        }
        offset if offset > CLOCK_WARNING => warning("clock", found, help),
        _ => ok("clock", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_found() {
        let at = |milliseconds| Timestamp::from_millisecond(1_764_000_000_000 + milliseconds).unwrap();
        for (server, state, found) in [
            (10, State::Ok, "this machine is 0 ms behind the server, give or take 11 ms"),
            (900, State::Ok, "this machine is 890 ms behind the server, give or take 11 ms"),
            (2010, State::Warning, "this machine is 2000 ms behind the server, give or take 11 ms"),
            (-2990, State::Warning, "this machine is 3000 ms ahead of the server, give or take 11 ms"),
            (6010, State::Problem, "this machine is 6000 ms behind the server, give or take 11 ms"),
            (-5991, State::Problem, "this machine is 6001 ms ahead of the server, give or take 11 ms"),
        ] {
            let finding = clock(at(0), at(server), at(20));
            assert_eq!((finding.state, finding.found.as_str()), (state, found));
            assert_eq!(finding.help.is_some(), state != State::Ok);
        }
    }
}
