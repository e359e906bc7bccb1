//! The journal and its queue in one SQLite database: the adapter for one machine.
//!
//! One thread writes and commits what has queued up meanwhile in one transaction; readers have a connection of their own.
//! `stage.ready` enters the queue in the very transaction that stores it, so that a fact and its queue entry cannot part.
//! The hash chain is verified from the first record to the last whenever a journal is opened.

mod connection;
mod log_file;
mod owner;
mod queue;
mod rows;
mod signature;
mod writer;

pub(crate) use log_file::{LOG_BYTES, LOG_FILE};
pub use owner::Owner;
pub use signature::Provenance;

use crate::blobs::rows::{BlobRows, SharedReader};
use crate::blobs::{DirBlobs, Outbox, SmallBlobs};
use crate::event::{Digest, Event, Record, RunId, Subject, whole_milliseconds};
use crate::ports::{PortError, RunLog, Stored};
use cap_std::fs::Dir;
use glovebox_sandbox::user_key::UserKey;
use jiff::Timestamp;
use queue::Leases;
use rows::Tip;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use writer::{Batch, Entry, Writer};

/// The journal of one run, to append to. Its opener holds the run's [`Owner`] lock. Calls for another run are refused.
///
/// When it is dropped, everything is brought into the database's one file, so that a copy of it is a copy of the journal.
pub struct SqliteLog {
    run: RunId,
    writer: Writer,
    reader: SharedReader,
    outbox: Arc<Outbox>,
    leases: Leases,
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.outbox.close();
        // Closed first: the log's file can be emptied and removed only by the last connection, and that one must be able to write.
        drop(self.reader.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.writer.stop();
    }
}

impl SqliteLog {
    /// Opens the journal of a run at `path`, or creates an empty one, and verifies its chain. What is appended is not signed.
    pub fn open(path: &Path, run: RunId) -> Result<Self, PortError> {
        Self::open_signed(path, run, None)
    }

    /// The same with the user's key: a journal that is not wholly signed with it is refused, and what is appended is signed. Without a
    /// key a signed journal is refused, since what would follow could not be signed.
    pub fn open_signed(path: &Path, run: RunId, key: Option<UserKey>) -> Result<Self, PortError> {
        let connection = connection::writable(path)?;
        let tip = rows::verify(&connection)?;
        if tip.seq > 0 {
            tracing::debug!(records = tip.seq, "verified the journal");
        }
        signature::require_own(signature::provenance(&connection, key.as_ref())?, key.as_ref())?;
        if let Some(Event::RunStarted(started)) = rows::read(&connection, 1, 1)?.first().map(|first| &first.event) {
            require_run(&started.run_id, &run)?;
        }
        Self::start((path, run), connection, (tip, key))
    }

    /// Opens a journal of which `verified` has been read, and verifies only the records that were appended since, which it returns.
    /// Refused are an empty journal, one that another user signed, and an unsigned one where what follows is to be signed.
    pub fn reopen(
        path: &Path,
        key: Option<UserKey>,
        verified: &VerifiedJournal,
    ) -> Result<(Self, Vec<Record>), PortError> {
        let run = verified.run_id().cloned();
        let run = run.ok_or_else(|| PortError::Unavailable(format!("no run has begun in `{}`", path.display())))?;
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
        Ok((Self::start((path, run), connection, (tip, key))?, tail))
    }

    fn start(
        (path, run): (&Path, RunId),
        connection: Connection,
        (tip, key): (Tip, Option<UserKey>),
    ) -> Result<Self, PortError> {
        let reader = Arc::new(Mutex::new(Some(connection::read_only(path)?)));
        let outbox = Arc::new(Outbox::default());
        let writer = Writer::start(connection, (tip, key), Arc::clone(&outbox))?;
        Ok(Self { run, writer, reader, outbox, leases: Leases::default() })
    }

    /// The blobs of this run in its directory: small ones are stored with the appends, and larger ones flushed before them.
    pub fn blobs(&self, run: &Dir) -> Result<DirBlobs, PortError> {
        let small = SmallBlobs { outbox: Arc::clone(&self.outbox), rows: BlobRows(Arc::clone(&self.reader)) };
        Ok(DirBlobs::open_in(run)?.with(small))
    }

    /// Makes the log's file as long as it gets, so that appends write in place. Only before the first append of a process.
    pub fn lengthen(&self, run: &Dir) -> Result<(), PortError> {
        log_file::lengthen(run).map_err(|error| PortError::Unavailable(error.to_string()))
    }

    /// The hash of the last record: two journals with the same one are the same.
    pub fn tip(&self) -> Result<Digest, PortError> {
        Ok(self.reading(rows::tip)?.hash)
    }

    fn reading<T>(&self, read: impl FnOnce(&Connection) -> Result<T, PortError>) -> Result<T, PortError> {
        match &*self.reader.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(reader) => read(reader),
            None => Err(PortError::Unavailable("the journal is closed".into())),
        }
    }

    fn require(&self, run: &RunId) -> Result<(), PortError> {
        require_run(&self.run, run)
    }
}

/// Refuses a call for another run than the journal's.
fn require_run(own: &RunId, run: &RunId) -> Result<(), PortError> {
    match own == run {
        true => Ok(()),
        false => Err(PortError::Unavailable(format!("this journal is of run `{own}`, not of `{run}`"))),
    }
}

impl RunLog for SqliteLog {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(Subject, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        self.require(run)?;
        let entries = events.iter().map(Entry::of).collect::<Result<_, _>>();
        let entries = entries.map_err(|error| PortError::Unavailable(error.to_string()))?;
        self.writer.append(Batch { expect: expect.to_vec(), at: whole_milliseconds(at), entries }).await
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        self.require(run)?;
        self.reading(|reader| rows::read(reader, from, records_max))
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

impl VerifiedJournal {
    /// The run that it is the journal of; none before the first record.
    pub fn run_id(&self) -> Option<&RunId> {
        match &self.records.first()?.event {
            Event::RunStarted(started) => Some(&started.run_id),
            _ => None,
        }
    }
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

    /// The blobs of the same run, to be read.
    pub fn into_blobs(self, run: &Dir) -> Result<DirBlobs, PortError> {
        let outbox = Arc::new(Outbox::default());
        outbox.close();
        let rows = BlobRows(Arc::new(Mutex::new(Some(self.connection))));
        Ok(DirBlobs::open_in(run)?.with(SmallBlobs { outbox, rows }))
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
