//! The journal and its queue in one SQLite database: the adapter for one machine.
//!
//! One thread writes and commits what has queued up meanwhile in one transaction; readers have a connection of their own.
//! `stage.ready` enters the queue in the very transaction that stores it, so that a fact and its queue entry cannot part.
//! The hash chain is verified from the first record to the last whenever a journal is opened.

mod connection;
mod owner;
mod queue;
mod rows;
mod signature;
mod writer;

pub use owner::Owner;
pub use signature::Provenance;

use crate::event::{Digest, Event, Record, Subject, canonical, whole_milliseconds};
use crate::ports::{PortError, RunLog};
use glovebox_sandbox::user_key::UserKey;
use jiff::Timestamp;
use queue::Leases;
use rows::Tip;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use writer::{Batch, Entry, Writer};

/// A journal that may be appended to. Whoever opens one holds the run's [`Owner`] lock.
pub struct SqliteLog {
    writer: Writer,
    reader: Mutex<Connection>,
    leases: Leases,
    last: watch::Receiver<u64>,
}

impl SqliteLog {
    /// Opens the journal at `path`, or creates an empty one, and verifies its chain. What is appended is not signed.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        Self::open_signed(path, None)
    }

    /// The same with the user's key: a journal that is not wholly signed with it is refused, and what is appended is signed. Without a
    /// key a signed journal is refused, since what would follow could not be signed.
    pub fn open_signed(path: &Path, key: Option<UserKey>) -> Result<Self, PortError> {
        let connection = connection::writable(path)?;
        let tip = rows::verify(&connection)?;
        if tip.seq > 0 {
            tracing::debug!(records = tip.seq, "verified the journal");
        }
        signature::require_own(signature::provenance(&connection, key.as_ref())?, key.as_ref())?;
        Self::start(path, connection, (tip, key))
    }

    /// Opens a journal of which `verified` has been read, and verifies only the records that were appended since, which it returns.
    /// Refused are a journal that another user signed, and an unsigned one where what follows is to be signed.
    pub fn reopen(
        path: &Path,
        key: Option<UserKey>,
        verified: &VerifiedJournal,
    ) -> Result<(Self, Vec<Record>), PortError> {
        let connection = connection::writable(path)?;
        let known = verified.records.last().map_or(Tip::START, |last| Tip { seq: last.seq, hash: last.hash });
        let tail = rows::read_after(&connection, &known)?;
        let tip = tail.last().map_or(known, |last| Tip { seq: last.seq, hash: last.hash });
        // Signatures of the known records were checked; with new records, all are checked again.
        let provenance = match tail.is_empty() {
            true => verified.provenance,
            false => signature::provenance(&connection, key.as_ref())?,
        };
        signature::require_own(provenance, key.as_ref())?;
        Ok((Self::start(path, connection, (tip, key))?, tail))
    }

    fn start(path: &Path, connection: Connection, (tip, key): (Tip, Option<UserKey>)) -> Result<Self, PortError> {
        let reader = connection::read_only(path)?;
        let (told, last) = watch::channel(tip.seq);
        let writer = Writer::start(connection, (tip, key), told)?;
        Ok(Self { writer, reader: Mutex::new(reader), leases: Leases::default(), last })
    }

    /// The hash of the last record: two journals with the same one are the same.
    pub fn tip(&self) -> Result<Digest, PortError> {
        Ok(rows::tip(&self.reader())?.hash)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunLog for SqliteLog {
    async fn append(
        &self,
        expect: Vec<(Subject, u64)>,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<Vec<Record>, PortError> {
        let mut entries = Vec::with_capacity(events.len());
        for event in events {
            let text = canonical(&event).map_err(|error| PortError::Unavailable(error.to_string()))?;
            entries.push(Entry { event, text });
        }
        self.writer.append(Batch { expect, at: whole_milliseconds(at), entries }).await
    }

    fn read(&self, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        rows::read(&self.reader(), from, records_max)
    }

    fn head(&self, subject: &Subject) -> Result<u64, PortError> {
        rows::head(&self.reader(), subject)
    }

    fn follow(&self) -> watch::Receiver<u64> {
        self.last.clone()
    }
}

/// A journal that is only read, also while another process drives the run.
pub struct SqliteReader {
    connection: Connection,
}

/// A journal that was read and verified from its first record to its last.
#[derive(Debug, Clone)]
pub struct VerifiedJournal {
    /// Every record in order.
    pub records: Vec<Record>,
    /// Whose journal it is.
    pub provenance: Provenance,
}

impl SqliteReader {
    /// Opens the journal at `path`. A journal that is not there is unavailable, never created.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        Ok(Self { connection: connection::read_only(path)? })
    }

    /// Reads every record and verifies the chain and the signatures, in one pass over the content.
    pub fn read_verified(&self, key: Option<&UserKey>) -> Result<VerifiedJournal, PortError> {
        // One transaction: a driver may append between the two queries.
        let snapshot = self.connection.unchecked_transaction().map_err(port_error)?;
        let records = rows::read(&snapshot, 1, usize::MAX)?;
        let provenance = signature::provenance(&snapshot, key)?;
        tracing::debug!(records = records.len(), "verified the journal");
        Ok(VerifiedJournal { records, provenance })
    }

    /// Reads the first and the last record without verifying them: good enough for a list of runs, and for nothing else.
    pub fn ends(&self) -> Result<Vec<Record>, PortError> {
        rows::ends(&self.connection)
    }

    /// Whose journal it is, by the signatures of its records.
    pub fn provenance(&self, key: Option<&UserKey>) -> Result<Provenance, PortError> {
        signature::provenance(&self.connection, key)
    }

    /// Sequence number and hash of the last record.
    pub fn tip(&self) -> Result<(u64, Digest), PortError> {
        rows::tip(&self.connection).map(|tip| (tip.seq, tip.hash))
    }
}

/// What SQLite says, in the four kinds.
fn port_error(error: rusqlite::Error) -> PortError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => {
            PortError::Corrupt { what: "the journal's database".into(), found: error.to_string() }
        }
        _ => PortError::Unavailable(error.to_string()),
    }
}
