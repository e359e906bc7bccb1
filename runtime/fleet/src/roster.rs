//! The machines of a fleet: who may do what, at each place of the stream.
//!
//! Statements of the operator and frames of journals are messages of one stream, so their numbers order them without any clock:
//! a frame counts if the last statement before it admits its signer. Only the end of an admission is a time, and it is
//! compared with the time at which the server stored the frame.
//!
//! A statement that the operator did not sign, or that is not the next one, is an error for everything that its machine
//! signed. It is never skipped.

use crate::fleet::{Fleet, FleetError};
use crate::jetstream::{Publish, RequestError};
use crate::repetition::patiently;
use crate::settings::FleetSettings;
use crate::statement::{Admission, Role, Statement, StatementFault, Word};
use glovebox_journal::ports::PortError;
use glovebox_signing::envelope::{Envelope, PayloadType};
use glovebox_signing::key::{KeyId, PublicKey, SigningKey};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex as Locks, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

/// How old the last look at the statements about a machine may be when it appends, or sends what is not stored.
const AGE_MAX: Duration = Duration::from_secs(1);

/// A place in the stream, or now.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The number of a message.
    seq: u64,
    /// When the server stored it.
    time: Timestamp,
    /// All statements before this number are needed. At least `seq`, and higher if many messages are read at once.
    read_to: u64,
    /// How old the last look at the statements may be if the place is not in the stream.
    age_max: Duration,
}

impl Place {
    /// Returns the place of a message that the server stored at this time.
    pub fn new(seq: u64, time: Timestamp) -> Self {
        Self { seq, time, read_to: seq, age_max: AGE_MAX }
    }

    /// Returns the place after everything that is stored now, for messages that are not stored.
    pub fn now() -> Self {
        Self { seq: u64::MAX, time: Timestamp::now(), read_to: u64::MAX, age_max: AGE_MAX }
    }

    /// As [`Place::now`], but statements that are younger than `age_max` may be missing.
    pub(crate) fn lately(age_max: Duration) -> Self {
        Self { age_max, ..Self::now() }
    }

    /// Says that the message is one of several that are read, the last of which has this number.
    #[must_use]
    pub(crate) fn before(self, last: u64) -> Self {
        Self { read_to: last.max(self.seq), ..self }
    }
}

/// A statement, and the number of its message.
#[derive(Debug, Clone)]
struct StoredStatement {
    seq: u64,
    statement: Statement,
}

/// What is known about one machine.
#[derive(Debug, Default)]
struct MachineHistory {
    statements: Vec<StoredStatement>,
    /// There is no other statement before this number.
    complete_to: u64,
    read_at: Option<Instant>,
}

impl MachineHistory {
    fn number(&self) -> u64 {
        self.statements.last().map_or(0, |stored| stored.statement.number)
    }

    /// Returns the admission that holds at a place.
    fn admission(&self, at: Place) -> Option<&Admission> {
        let last = self.statements.iter().rfind(|stored| stored.seq < at.seq)?;
        last.statement.admission.as_ref().filter(|admission| admission.is_valid_at(at.time))
    }
}

/// The statements about the machines of a fleet, as far as they were read.
pub(crate) struct Roster {
    fleet: Fleet,
    settings: FleetSettings,
    key: Option<SigningKey>,
    /// Each machine has a lock of its own: it is held while the servers are asked about the machine.
    histories: Locks<HashMap<KeyId, Arc<Mutex<MachineHistory>>>>,
}

/// The payload of a signed message, and the machine that signed it.
#[derive(Debug, Clone)]
pub struct Signed {
    /// What was signed.
    pub payload: Vec<u8>,
    /// The key of the signer.
    pub machine: PublicKey,
    /// What the signer was admitted to.
    pub admission: Admission,
}

/// A machine that the operator spoke about, as `fleet ls` shows it.
#[derive(Debug, Clone)]
pub struct Member {
    /// The last statement.
    pub last: Statement,
    /// When the first of its admissions in a row was made. `None` if it is expelled.
    pub since: Option<Timestamp>,
    /// The name that it has, or had when it was expelled. `None` if it was never admitted.
    pub name: Option<Word>,
}

impl Roster {
    pub(crate) fn new(fleet: &Fleet, settings: FleetSettings, key: Option<SigningKey>) -> Self {
        Self { fleet: Fleet { roster: None, ..fleet.clone() }, settings, key, histories: Locks::default() }
    }

    /// Returns what is known about a machine, as its only user.
    async fn history(&self, machine: &KeyId) -> OwnedMutexGuard<MachineHistory> {
        let history = {
            let mut histories = self.histories.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(histories.entry(*machine).or_default())
        };
        history.lock_owned().await
    }

    /// Forgets what is known about a machine.
    fn forget(&self, machine: &KeyId) {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner).remove(machine);
    }

    /// Returns the id of the fleet.
    pub(crate) fn id(&self) -> &str {
        &self.settings.id
    }

    /// Returns what a machine was admitted to at a place.
    ///
    /// # Errors
    /// [`PortError::Foreign`] with `record` if it had none of these roles.
    pub(crate) async fn require(
        &self,
        machine: &PublicKey,
        at: Place,
        roles: &[Role],
        record: u64,
    ) -> Result<Admission, PortError> {
        let found = self.admission(&machine.id(), at).await?;
        found.map(|(_, admission)| admission).filter(|admission| admission.has_any(roles)).ok_or_else(|| {
            tracing::warn!(%machine, record, "the signer was not admitted to {}", list(roles));
            PortError::Foreign { seq: record }
        })
    }

    /// Returns the key and the admission of a machine at a place. `None` if it was not admitted there.
    async fn admission(&self, machine: &KeyId, at: Place) -> Result<Option<(PublicKey, Admission)>, PortError> {
        let mut history = self.history(machine).await;
        match (at.read_to, history.read_at) {
            (u64::MAX, Some(read_at)) if read_at.elapsed() <= at.age_max => {}
            (u64::MAX, Some(_)) => self.refresh(machine, &mut history).await?,
            (read_to, _) if read_to != u64::MAX && history.complete_to >= read_to => {}
            (read_to, _) => {
                self.read(machine, &mut history, self.fleet.patience).await.map_err(|error| port_error(&error))?;
                if read_to != u64::MAX {
                    history.complete_to = history.complete_to.max(read_to);
                }
            }
        }
        let found = history.admission(at).cloned();
        let found = history.statements.first().map(|first| first.statement.machine).zip(found);
        // A signature can name any key. Only those of machines are kept.
        if history.statements.is_empty() {
            self.forget(machine);
        }
        Ok(found)
    }

    /// Reads the newest statements about a machine that is known. While the servers are away, what is known is used: nothing is
    /// stored meanwhile, and readers of what is stored decide in the end.
    async fn refresh(&self, machine: &KeyId, history: &mut MachineHistory) -> Result<(), PortError> {
        match self.read(machine, history, Duration::ZERO).await {
            Ok(()) | Err(FleetError::NoServer { .. }) => Ok(()),
            Err(error) => Err(port_error(&error)),
        }
    }

    /// Returns the key and the admission of this machine if it is admitted now with one of these roles.
    ///
    /// # Errors
    /// [`PortError::Unavailable`] if it is not, or if the servers do not answer.
    pub(crate) async fn signer(&self, roles: &[Role]) -> Result<(&SigningKey, Admission), PortError> {
        let key = self.key()?;
        let machine = key.public();
        let id = machine.id();
        let mut history = self.history(&id).await;
        match history.read_at {
            None => self.read(&id, &mut history, self.fleet.patience).await.map_err(|error| port_error(&error))?,
            Some(read_at) if read_at.elapsed() > AGE_MAX => self.refresh(&id, &mut history).await?,
            Some(_) => {}
        }
        match history.admission(Place::now()).filter(|admission| admission.has_any(roles)) {
            Some(admission) => Ok((key, admission.clone())),
            None => Err(PortError::Unavailable(format!(
                "this machine is not admitted to {}: its key is {machine}\n\
                 help: the operator admits it: `glovebox fleet admit {machine} --name NAME --may {}`",
                list(roles),
                roles.last().map_or("drive", |role| role.as_str()),
            ))),
        }
    }

    /// Returns the key of this machine.
    ///
    /// # Errors
    /// [`PortError::Unavailable`] if it has none.
    pub(crate) fn key(&self) -> Result<&SigningKey, PortError> {
        self.key.as_ref().ok_or_else(|| {
            let reason = "this user has no key for the fleet\nhelp: make one: `glovebox fleet key`";
            PortError::Unavailable(reason.to_owned())
        })
    }

    /// Reads the statements about a machine that follow those that are known. All that are stored when it is called are read.
    async fn read(&self, machine: &KeyId, history: &mut MachineHistory, patience: Duration) -> Result<(), FleetError> {
        let subject = self.fleet.jetstream.name.machine(machine);
        let failed = |fault: StatementFault| FleetError::Statement { machine: *machine, reason: fault.to_string() };
        loop {
            let from = history.statements.last().map_or(1, |stored| stored.seq + 1);
            let next = patiently(patience, || self.fleet.jetstream.next(&subject, from)).await;
            let next = next.map_err(|error| self.fleet.failed(error))?;
            let Some(message) = next else { break };
            let statement =
                Statement::open(&message.payload, &self.settings.operator, history.number()).map_err(failed)?;
            if statement.fleet != self.settings.id {
                return Err(failed(StatementFault::Other("fleet")));
            }
            if statement.machine.id() != *machine {
                return Err(failed(StatementFault::Other("machine")));
            }
            history.statements.push(StoredStatement { seq: message.seq, statement });
        }
        history.read_at = Some(Instant::now());
        Ok(())
    }

    /// Stores a further statement about a machine. Another one at the same time makes it fail.
    async fn state(
        &self,
        operator: &SigningKey,
        machine: PublicKey,
        admission: Option<Admission>,
    ) -> Result<(), FleetError> {
        let mut known = MachineHistory::default();
        self.read(&machine.id(), &mut known, self.fleet.patience).await?;
        let (head, last) = (known.statements.last().map_or(0, |stored| stored.seq), known.number());
        let statement = Statement::new(&self.settings.id, machine, last, admission);
        let no_server = |reason: String| FleetError::NoServer { servers: self.fleet.servers.clone(), reason };
        let payload = statement.sign(operator).map_err(|error| no_server(error.to_string()))?;
        let message = [Publish { subject: self.fleet.jetstream.name.machine(&machine.id()), payload: payload.into() }];
        match patiently(self.fleet.patience, || self.fleet.jetstream.append(&message, Some(head), "statement")).await {
            Ok(_) => Ok(()),
            // A repetition finds its own statement if the answer to the first one was lost.
            Err(RequestError::WrongHead) => {
                self.read(&machine.id(), &mut known, self.fleet.patience).await?;
                match known.statements.get(usize::try_from(last).unwrap_or(usize::MAX)) {
                    Some(stored) if stored.statement == statement => Ok(()),
                    _ => Err(no_server("another statement about the machine was made at the same time".to_owned())),
                }
            }
            Err(error) => Err(self.fleet.failed(error)),
        }
    }

    /// Opens an envelope with one signature, and returns its payload and its signer.
    ///
    /// # Errors
    /// [`PortError::Corrupt`] if the envelope or its signature is damaged, [`PortError::Foreign`] with `record` if the signer
    /// had none of the roles at the place.
    pub(crate) async fn open(
        &self,
        kind: PayloadType,
        message: &[u8],
        at: Place,
        roles: &[Role],
        record: u64,
    ) -> Result<Signed, PortError> {
        let corrupt = |found: String| PortError::Corrupt { what: format!("a signed message ({kind})"), found };
        let read = Envelope::read(kind, message).map_err(|error| corrupt(error.to_string()))?;
        let mut named = read.named_keys().map(str::parse::<KeyId>);
        let (Some(Ok(id)), None) = (named.next(), named.next()) else {
            return Err(corrupt("it does not have one signature".to_owned()));
        };
        let found = self.admission(&id, at).await?;
        let Some((machine, admission)) = found.filter(|(_, admission)| admission.has_any(roles)) else {
            tracing::warn!(key = %id, record, "the signer of a message was not admitted to {}", list(roles));
            return Err(PortError::Foreign { seq: record });
        };
        let (payload, _) = read.verify([&machine]).map_err(|error| corrupt(error.to_string()))?;
        Ok(Signed { payload: payload.to_vec(), machine, admission })
    }
}

fn list(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(" or ")
}

/// Returns the error of a journal whose signers cannot be checked.
fn port_error(error: &FleetError) -> PortError {
    match error {
        FleetError::Statement { machine, reason } => {
            PortError::Corrupt { what: format!("a statement about the machine {machine}"), found: reason.clone() }
        }
        error => PortError::Unavailable(error.to_string()),
    }
}

/// The number of messages on each subject of a stream.
#[derive(Deserialize)]
struct SubjectsInfo {
    state: SubjectsState,
}

#[derive(Deserialize)]
struct SubjectsState {
    #[serde(default)]
    subjects: Option<BTreeMap<String, u64>>,
}

impl Fleet {
    /// Admits a machine, or changes the admission that it has.
    ///
    /// # Errors
    /// The fleet is not this operator's, the name belongs to another machine, or the servers do not answer.
    pub async fn admit(
        &self,
        operator: &SigningKey,
        machine: PublicKey,
        admission: Admission,
    ) -> Result<(), FleetError> {
        let others = self.members(&operator.public()).await?;
        let is_taken = |member: &Member| {
            let name = member.last.admission.as_ref().map(|admission| &admission.name);
            member.last.machine != machine && name == Some(&admission.name)
        };
        if let Some(other) = others.iter().find(|member| is_taken(member)) {
            return Err(FleetError::Unsafe {
                found: format!("another machine has the name `{}`: {}", admission.name, other.last.machine),
                help: format!("choose another name, or expel that machine: `glovebox fleet expel {}`", admission.name),
            });
        }
        self.state(operator, machine, Some(admission)).await
    }

    /// Expels a machine. What it signed before still counts.
    ///
    /// # Errors
    /// As for [`Fleet::admit`].
    pub async fn expel(&self, operator: &SigningKey, machine: PublicKey) -> Result<(), FleetError> {
        self.state(operator, machine, None).await
    }

    async fn state(
        &self,
        operator: &SigningKey,
        machine: PublicKey,
        admission: Option<Admission>,
    ) -> Result<(), FleetError> {
        let settings = self.settings(&operator.public()).await?;
        Roster::new(self, settings, None).state(operator, machine, admission).await
    }

    /// Returns the machines that the operator ever admitted, in no order.
    ///
    /// # Errors
    /// The fleet is not this operator's, a statement does not count, or the servers do not answer.
    pub async fn members(&self, operator: &PublicKey) -> Result<Vec<Member>, FleetError> {
        let roster = Roster::new(self, self.settings(operator).await?, None);
        let (pattern, prefix) = (self.jetstream.name.machines(), self.jetstream.name.machines().replace('*', ""));
        let request = format!("STREAM.INFO.{}", self.jetstream.name.stream());
        let body = serde_json::json!({ "subjects_filter": pattern });
        let info = patiently(self.patience, || self.jetstream.call::<SubjectsInfo>(&request, &body)).await;
        let subjects = info.map_err(|error| self.failed(error))?.state.subjects.unwrap_or_default();
        let mut members = Vec::new();
        for subject in subjects.into_keys() {
            // Nobody but the operator should write here. What is no key of a machine admits nobody.
            let Some(id) = subject.strip_prefix(&prefix).and_then(|hex| format!("sha256:{hex}").parse().ok()) else {
                continue;
            };
            let mut known = MachineHistory::default();
            roster.read(&id, &mut known, self.patience).await?;
            let Some(last) = known.statements.last() else { continue };
            let admitted =
                known.statements.iter().rev().take_while(|stored| stored.statement.admission.is_some()).last();
            let since = admitted.map(|stored| stored.statement.at);
            let named = known.statements.iter().rev().find_map(|stored| stored.statement.admission.as_ref());
            let name = named.map(|admission| admission.name.clone());
            members.push(Member { last: last.statement.clone(), since, name });
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn place(seq: u64) -> Place {
        Place::new(seq, "2026-11-30T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn the_last_statement_before_a_place_counts() {
        let machine = SigningKey::from_seed(&[3; 32]).unwrap().public();
        let admission = |role: Role, until: Option<&str>| Admission {
            name: "a".parse().unwrap(),
            may: [role].into(),
            labels: BTreeSet::new(),
            tier: None,
            until: until.map(|date| date.parse().unwrap()),
        };
        let mut known = MachineHistory::default();
        let statements = [
            (10, Some(admission(Role::Build, None))),
            (20, Some(admission(Role::Drive, None))),
            (30, None),
            (40, Some(admission(Role::Drive, Some("2026-11-29")))),
        ];
        for (seq, admission) in statements {
            let statement = Statement::new("F", machine, known.number(), admission);
            known.statements.push(StoredStatement { seq, statement });
        }
        let drives =
            |seq| known.admission(place(seq)).is_some_and(|admission| admission.has_any(&[Role::Drive, Role::Submit]));
        let expected = [(9, false), (11, false), (20, false), (21, true), (30, true), (31, false), (41, false)];
        for (seq, expected) in expected {
            assert_eq!(drives(seq), expected, "message {seq}");
        }
        let before = Place::new(41, "2026-11-29T23:59:59Z".parse().unwrap());
        assert!(known.admission(before).is_some());
    }
}
