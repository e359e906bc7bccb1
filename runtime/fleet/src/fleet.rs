//! A connection to the servers of a fleet.
//!
//! It has the address, the name and the password that its caller gives it; it reads neither files nor the environment.

use crate::blobs::ObjectBlobs;
use crate::jetstream::{JetStream, RequestError, Violation};
use crate::lease::Lease;
use crate::log::NatsLog;
use crate::roster::{Place, Roster, Signed};
use crate::run_key::{LentKey, RunKey, RunKeys, SealedKey, Secrecy};
use crate::settings::FleetSettings;
use crate::statement::{Admission, Role};
use crate::subjects::{FleetName, token as plain_or_digest};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerError};
use futures_util::{Stream, StreamExt as _};
use glovebox_journal::event::RunId;
use glovebox_journal::ports::PortError;
use glovebox_signing::envelope::{Broken, Envelope, PayloadType};
use glovebox_signing::key::{KeyId, PublicKey, SigningKey};
use std::sync::Arc;
use std::time::Duration;

/// Interval of pings while the server sends nothing. At the third interval without an answer, the connection is given up and another
/// server is tried: one without power or behind a cut link never says that the connection has ended.
const PING_EVERY: Duration = Duration::from_secs(2);

/// The address of a fleet, and how long to wait for its servers.
#[derive(Debug, Clone)]
pub struct FleetAddress {
    /// Addresses of servers, such as `nats://10.0.0.1:4222`. One that answers is enough.
    pub servers: Vec<String>,
    /// User and password.
    pub login: Option<Login>,
    /// The name of the fleet on these servers.
    pub name: FleetName,
    /// How long one request waits for its answer.
    pub answer_wait: Duration,
    /// How long a request is repeated while there is no answer, for example while servers elect a leader.
    pub patience: Duration,
}

impl FleetAddress {
    /// Returns the address of the fleet `gb` on these servers, without a login. A request waits 3 seconds for an answer
    /// and is repeated for 30 seconds.
    pub fn new(servers: Vec<String>) -> Self {
        let (answer_wait, patience) = (Duration::from_secs(3), Duration::from_secs(30));
        Self { servers, login: None, name: FleetName::default(), answer_wait, patience }
    }
}

/// Why nothing is read or written before a fleet is joined.
pub(crate) const NOT_JOINED: &str = "the operator of the fleet is not known, so no signature can be checked";

/// A user of the servers.
#[derive(Clone)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a fleet cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// An address is not one of a NATS server.
    #[error("`{servers}` is not a list of addresses of NATS servers: {reason}\nhelp: write `nats://HOST:4222`")]
    Address {
        /// The addresses.
        servers: String,
        /// The problem.
        reason: String,
    },
    /// No server answers.
    #[error("no NATS server answers at `{servers}`: {reason}")]
    NoServer {
        /// The addresses.
        servers: String,
        /// The problem.
        reason: String,
    },
    /// The servers refuse the user.
    #[error("the NATS server at `{servers}` refuses this user\nhelp: check the user and the password")]
    Denied {
        /// The addresses.
        servers: String,
    },
    /// The fleet's stream does not exist.
    #[error("the stream `{stream}` does not exist\nhelp: create it once: `glovebox fleet init`")]
    NoStream {
        /// The stream.
        stream: String,
    },
    /// The user may not send a request.
    #[error(
        "the NATS server does not let this user do it: {violation}\nhelp: print the permissions of each role: `glovebox fleet permissions`"
    )]
    Forbidden {
        /// What the server says.
        violation: String,
    },
    /// This machine does not have the role.
    #[error("{reason}")]
    NotAdmitted {
        /// The role, and how to get it.
        reason: String,
    },
    /// Another operator's key signed the settings of the fleet.
    #[error(
        "the fleet `{fleet}` is not that of the given operator: {reason}\nhelp: ask the operator for the public key that `glovebox fleet init` printed"
    )]
    OtherOperator {
        /// The fleet.
        fleet: String,
        /// Why its settings do not count.
        reason: Broken,
    },
    /// What the fleet says about a machine does not count.
    #[error(
        "what the fleet says about the machine {machine} does not count: {reason}\nhelp: only the operator may write there: `glovebox fleet permissions`"
    )]
    Statement {
        /// The machine.
        machine: KeyId,
        /// Why the statement does not count.
        reason: String,
    },
    /// The servers or the stream have a setting with which the record of a run could be lost.
    #[error("{found}\nhelp: {help}")]
    Unsafe {
        /// The setting.
        found: String,
        /// The setting to change.
        help: String,
    },
}

impl FleetError {
    /// Returns the exit code of the program: 9 (transient) if a later attempt may succeed, 6 (policy) if the user is
    /// refused, 11 (mismatch) if a signed statement was changed, and 3 (invalid) if something must be set up first.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoServer { .. } => 9,
            Self::Denied { .. } | Self::Forbidden { .. } | Self::NotAdmitted { .. } | Self::OtherOperator { .. } => 6,
            Self::Statement { .. } => 11,
            Self::Address { .. } | Self::NoStream { .. } | Self::Unsafe { .. } => 3,
        }
    }

    /// Returns what is wrong, and what to do about it.
    pub fn parts(&self) -> (String, Option<String>) {
        let text = self.to_string();
        match text.split_once("\nhelp: ") {
            Some((found, help)) => (found.to_owned(), Some(help.to_owned())),
            None => (text, None),
        }
    }
}

/// A connection to the servers of a fleet. It connects again by itself. Clones share it.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) client: Client,
    pub(crate) jetstream: JetStream,
    pub(crate) servers: String,
    pub(crate) patience: Duration,
    /// The lease in the fleet's settings. The default until [`Fleet::join`].
    pub(crate) lease: Lease,
    /// Who signs and who may sign. `None` until [`Fleet::join`].
    pub(crate) roster: Option<Arc<Roster>>,
    /// The keys of encrypted runs that this process has.
    pub(crate) keys: RunKeys,
}

impl Fleet {
    /// Connects to the first server that answers.
    ///
    /// # Errors
    /// No server answers, or it refuses the user.
    pub async fn connect(address: &FleetAddress) -> Result<Self, FleetError> {
        let servers = address.servers.join(",");
        let violation = Violation::default();
        let noted = violation.clone();
        let options = ConnectOptions::new()
            .name("glovebox")
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(text)) = event {
                    noted.note(text);
                }
                std::future::ready(())
            })
            .connection_timeout(address.answer_wait)
            .ping_interval(PING_EVERY)
            // A server that is gone is tried again each second at the latest, so that a restart is noticed.
            .reconnect_delay_callback(|attempt| Duration::from_millis(50 << attempt.min(4)));
        let options = match &address.login {
            Some(Login { user, password }) => {
                options.custom_inbox_prefix(inbox(user)).user_and_password(user.clone(), password.clone())
            }
            None => options,
        };
        let client = options.connect(address.servers.as_slice()).await.map_err(|error| match error.kind() {
            ConnectErrorKind::ServerParse => {
                FleetError::Address { servers: servers.clone(), reason: error.to_string() }
            }
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                FleetError::Denied { servers: servers.clone() }
            }
            _ => FleetError::NoServer { servers: servers.clone(), reason: error.to_string() },
        })?;
        let jetstream = JetStream::new(client.clone(), address.name.clone(), address.answer_wait, violation);
        let keys = RunKeys::default();
        Ok(Self { client, jetstream, servers, patience: address.patience, lease: Lease::default(), roster: None, keys })
    }

    /// Returns how long one request waits for its answer.
    pub(crate) fn answer_wait(&self) -> Duration {
        self.jetstream.answer_wait
    }

    /// Returns the error of a request that changed nothing.
    pub(crate) fn failed(&self, error: RequestError) -> FleetError {
        self.failed_in(&self.jetstream, error)
    }

    /// Returns the error of a request to a stream of the fleet that changed nothing.
    pub(crate) fn failed_in(&self, jetstream: &JetStream, error: RequestError) -> FleetError {
        match error {
            RequestError::NoStream => FleetError::NoStream { stream: jetstream.stream.clone() },
            RequestError::Forbidden(violation) => FleetError::Forbidden { violation },
            error => FleetError::NoServer { servers: self.servers.clone(), reason: error.to_string() },
        }
    }

    /// Returns the notes about a run for the people who follow it. They are hints: a note may be lost.
    ///
    /// # Errors
    /// The connection was closed.
    pub async fn notes(&self, run: &RunId) -> Result<impl Stream<Item = String> + use<>, FleetError> {
        let failed = |error: async_nats::SubscribeError| self.failed(RequestError::NoAnswer(error.to_string()));
        let notes = self.client.subscribe(self.jetstream.name.notes(run)).await.map_err(failed)?;
        Ok(notes.map(|note| String::from_utf8_lossy(&note.payload).into_owned()))
    }

    /// Reads the settings of the fleet and trusts this operator from now on. `key` is the key of this machine, which signs
    /// what it appends; without it, journals can only be read.
    ///
    /// # Errors
    /// Another operator made the fleet, or the servers do not answer.
    pub async fn join(&mut self, operator: &PublicKey, key: Option<SigningKey>) -> Result<FleetSettings, FleetError> {
        let settings = self.settings(operator).await?;
        self.lease = settings.lease;
        self.roster = Some(Arc::new(Roster::new(self, settings.clone(), key)));
        Ok(settings)
    }

    /// Returns the journals of this fleet's runs. Frames that are too large for a message are in `blobs`. Before
    /// [`Fleet::join`], no journal can be read or written: nobody could say who signed it.
    pub fn log(&self, blobs: ObjectBlobs) -> NatsLog {
        NatsLog::new(self.jetstream.clone(), blobs, self.patience, self.roster.clone(), self.keys.clone())
    }

    /// Has everything of a run that does not exist yet encrypted. Only this machine, and those of `machines` can read it, and
    /// machines to which a driver gives an attempt of it.
    ///
    /// # Errors
    ///
    /// This machine has no key, one of the others is no public key, or the fleet was not joined.
    pub fn encrypt(&self, run: &RunId, machines: &[PublicKey]) -> Result<(), PortError> {
        let (id, own, key) = (self.id()?, self.machine()?, RunKey::generate());
        let seal = |machine: &PublicKey| {
            let no_key = || PortError::Unavailable(format!("nothing can be encrypted for the machine {machine}"));
            key.seal(id, run, machine).ok_or_else(no_key)
        };
        let others = machines.iter().filter(|machine| **machine != own);
        let keys = std::iter::once(&own).chain(others).map(seal).collect::<Result<_, _>>()?;
        self.keys.keep(run, Secrecy::Encrypted { key, keys });
        Ok(())
    }

    /// Has nothing of a run encrypted that does not exist yet.
    pub fn leave_open(&self, run: &RunId) {
        self.keys.keep(run, Secrecy::Open);
    }

    /// Takes the key of an encrypted run that a driver lends to this machine for an attempt.
    ///
    /// # Errors
    ///
    /// The key is for another machine or another run.
    pub(crate) fn take_key(&self, run: &RunId, sealed: &SealedKey) -> Result<LentKey, PortError> {
        let roster = self.joined()?;
        let key = RunKey::unseal(sealed, roster.id(), run, roster.key()?);
        Ok(self.keys.lend(run, key.ok_or_else(|| PortError::NoKey { run: run.clone() })?))
    }

    /// Returns the id of this fleet, which no other one has.
    ///
    /// # Errors
    /// The fleet was not joined.
    pub(crate) fn id(&self) -> Result<&str, PortError> {
        Ok(self.joined()?.id())
    }

    /// Returns the public key of this machine.
    ///
    /// # Errors
    /// It has none, or the fleet was not joined.
    pub fn machine(&self) -> Result<PublicKey, PortError> {
        Ok(self.joined()?.key()?.public())
    }

    /// Signs a message that is not a frame, such as a result, and returns its envelope. The signature covers neither the
    /// subject nor the time: the payload must name what it is about.
    ///
    /// # Errors
    /// This machine has no key, or the fleet was not joined.
    pub fn sign(&self, kind: PayloadType, payload: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(Envelope::sign(kind, payload, &[self.joined()?.key()?]).to_line().into_bytes())
    }

    /// Opens the envelope of a signed message.
    ///
    /// # Errors
    /// [`PortError::Corrupt`] if the envelope or its signature is damaged, [`PortError::Foreign`] with the number `record` if
    /// the signer had none of the roles at the place.
    pub async fn open(
        &self,
        kind: PayloadType,
        message: &[u8],
        at: Place,
        roles: &[Role],
        record: u64,
    ) -> Result<Signed, PortError> {
        self.joined()?.open(kind, message, at, roles, record).await
    }

    fn joined(&self) -> Result<&Roster, PortError> {
        self.roster.as_deref().ok_or_else(|| PortError::Unavailable(NOT_JOINED.to_owned()))
    }

    /// Returns the admission of this machine if it is admitted now with one of these roles.
    ///
    /// # Errors
    /// It is not, or the servers do not answer.
    pub async fn require(&self, roles: &[Role]) -> Result<Admission, FleetError> {
        let admitted = match self.joined() {
            Ok(roster) => roster.signer(roles).await.map(|(_, admission)| admission),
            Err(error) => Err(error),
        };
        admitted.map_err(|error| match error {
            PortError::Unavailable(reason) => FleetError::NotAdmitted { reason },
            error => FleetError::NoServer { servers: self.servers.clone(), reason: error.to_string() },
        })
    }
}

/// Returns the beginning of the subjects on which a user gets answers. Each user has another one, so that permissions can
/// keep the answers of one user from all others.
pub(crate) fn inbox(user: &str) -> String {
    format!("_INBOX_{}", plain_or_digest(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let login = Login { user: "worker".to_owned(), password: "hunter2".to_owned() };
        let address = FleetAddress { login: Some(login), ..FleetAddress::new(Vec::new()) };
        let printed = format!("{address:?}");
        assert!(printed.contains("worker") && !printed.contains("hunter2"), "{printed}");
    }
}
