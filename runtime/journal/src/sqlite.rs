//! The journal and its claim queue in one SQLite database: the adapter for one machine.
//!
//! One writer commits all batches that wait in one transaction. Readers have a separate connection. The queue is
//! computed from the records alone, so that it can never disagree with them. The hash chain is verified from the first
//! record to the last when a journal is opened; [`SqliteLog::reopen`] skips records that were already verified.

mod connection;
mod empty_file;
mod guard;
mod log_file;
mod owner;
mod pages;
mod queue;
mod rows;
mod signature;
mod writer;

pub use log_file::{LOG_BYTES, LOG_FILE};
pub use owner::{Owner, OwnerFile};
pub use pages::Pages;
pub use signature::Provenance;

use crate::blobs::rows::{BlobRows, SharedReader};
use crate::blobs::{DirBlobs, Outbox, SmallBlobs};
use crate::event::{Digest, Event, Record, RunId, StreamKey, whole_milliseconds};
use crate::ports::{PortError, RunLog, Stored};
use crate::queue::Queue;
use cap_std::fs::Dir;
use glovebox_record::spend::SpendTotals;
use glovebox_workspace::user_key::UserKey;
use jiff::Timestamp;
use queue::{Leases, SharedQueue};
pub use rows::Tip;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use writer::store::Store;
use writer::{Batch, Entry, Writer};

/// Number of records in a page of a journal.
const PAGE_RECORDS: usize = 256;

/// The journal of one run, open for appends. The process that opens it must hold the run's [`Owner`] lock. Calls for
/// another run are refused.
///
/// When it is dropped, the write-ahead log is checkpointed, so that a copy of the database file is a copy of the
/// journal.
pub struct SqliteLog {
    run: RunId,
    writer: Writer,
    reader: SharedReader,
    outbox: Arc<Outbox>,
    queue: SharedQueue,
    leases: Leases,
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.outbox.close();
        // The reader is closed first: only the last connection can empty and remove the write-ahead log, and it must be
        // the writable one.
        drop(self.reader.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.writer.close();
    }
}

impl SqliteLog {
    /// Opens the journal of a run at `path`, or creates an empty one, and verifies its chain. Appended records are not signed.
    pub fn open(path: &Path, run: RunId) -> Result<Self, PortError> {
        Self::open_signed(path, run, None)
    }

    /// As [`SqliteLog::open`], but with the user's key: appended records are signed, and a journal in which a record is
    /// not signed with the key is refused. Without a key, a signed journal is refused, because appended records could
    /// not be signed.
    pub fn open_signed(path: &Path, run: RunId, key: Option<UserKey>) -> Result<Self, PortError> {
        let connection = connection::writable(path)?;
        let tip = rows::verify(&connection)?;
        if tip.seq > 0 {
            tracing::debug!(records = tip.seq, "verified the journal");
        }
        signature::require_own(signature::provenance(&connection, key.as_ref())?, key.as_ref())?;
        if let Some(started) = rows::read(&connection, 1, 1)?.first().and_then(|first| first.event.run_started()) {
            require_run(&started.run_id, &run)?;
        }
        Self::start(path, run, connection, tip, key)
    }

    /// Creates an empty journal in the directory of a new run. This is faster and needs fewer flushes than creating the
    /// tables when the journal is opened.
    pub fn create_in(run: &Dir) -> Result<(), PortError> {
        empty_file::create(run).map_err(|error| PortError::Unavailable(error.to_string()))
    }

    /// Opens a journal that was verified up to some record. Also returns true if the journal has more records, which
    /// are verified when they are read. Refuses an empty journal, a journal that another user signed, and an unsigned
    /// one if a key is given.
    pub fn reopen(path: &Path, key: Option<UserKey>, verified: &VerifiedJournal) -> Result<(Self, bool), PortError> {
        let run = verified.run_id().cloned();
        let run = run.ok_or_else(|| PortError::Unavailable(format!("no run has begun in `{}`", path.display())))?;
        let connection = connection::writable(path)?;
        let tip = rows::tip_after(&connection, &verified.tip)?;
        // The signatures of the verified records were checked. If there are new records, all signatures are checked again.
        let has_grown = tip != verified.tip;
        let provenance = match has_grown {
            true => signature::provenance(&connection, key.as_ref())?,
            false => verified.provenance,
        };
        signature::require_own(provenance, key.as_ref())?;
        Ok((Self::start(path, run, connection, tip, key)?, has_grown))
    }

    /// Reads the next page of records after `tip`, verifies each one against its predecessor, and advances `tip` to the
    /// last of them.
    pub fn next_page(&self, tip: &mut Tip) -> Result<Vec<Record>, PortError> {
        self.reading(|reader| rows::page(reader, tip, PAGE_RECORDS))
    }

    /// Sets the initial queue, so that the records need not be read for it. It must be called before the first append of a process.
    pub fn begin_queue(&self, queue: Queue) {
        self.queue.set(queue);
    }

    fn start(
        path: &Path,
        run: RunId,
        connection: Connection,
        tip: Tip,
        key: Option<UserKey>,
    ) -> Result<Self, PortError> {
        let reader = Arc::new(Mutex::new(Some(connection::read_only(path)?)));
        let outbox = Arc::new(Outbox::default());
        let queue = if tip.seq == 0 { SharedQueue::empty() } else { SharedQueue::default() };
        let store = Store::new(connection, tip, key, Arc::clone(&outbox), queue.clone());
        Ok(Self { run, writer: Writer::new(store), reader, outbox, queue, leases: Leases::default() })
    }

    /// Returns the blobs of this run. Small blobs are stored with the appends, and larger ones are flushed before them.
    pub fn blobs(&self, run: &Dir) -> Result<DirBlobs, PortError> {
        let small = SmallBlobs { outbox: Arc::clone(&self.outbox), rows: BlobRows::new(Arc::clone(&self.reader)) };
        Ok(DirBlobs::open_in(run)?.with(small))
    }

    /// Lengthens the file of the write-ahead log, so that appends write in place. It starts with room for a few appends
    /// and later gets its full length.
    pub fn lengthen(&self, run: &Dir) -> Result<(), PortError> {
        self.writer.lengthen(run)
    }

    /// Returns the hash of the last record. Two journals with the same hash have the same records.
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

/// Refuses a call for another run than that of the journal.
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
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        self.require(run)?;
        let entries = events.iter().map(Entry::new).collect::<Result<_, _>>();
        let entries = entries.map_err(|error| PortError::Unavailable(error.to_string()))?;
        self.writer.append(Batch { expect: expect.to_vec(), at: whole_milliseconds(at), entries }).await
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        self.require(run)?;
        self.reading(|reader| rows::read(reader, from, records_max))
    }
}

/// A journal that is open for reading only, possibly while another process drives the run.
pub struct SqliteReader {
    connection: Connection,
}

/// A verified journal that is still open, so that its records can be read again.
pub struct OpenJournal {
    /// The open journal.
    pub reader: SqliteReader,
    /// The verified journal.
    pub verified: VerifiedJournal,
}

impl OpenJournal {
    /// Closes the journal. While it is open, its write-ahead log cannot be removed.
    pub fn close(self) -> VerifiedJournal {
        self.verified
    }
}

/// A journal that was verified from its first record to its last.
#[derive(Debug, Clone)]
pub struct VerifiedJournal {
    /// Records in order: all records, or only the start and the resumes of the run, depending on the method that read them.
    pub records: Vec<Record>,
    /// Who signed the journal.
    pub provenance: Provenance,
    tip: Tip,
}

impl VerifiedJournal {
    /// Creates a journal without records.
    pub fn empty() -> Self {
        Self { records: Vec::new(), provenance: Provenance::Own, tip: Tip::START }
    }

    /// Returns the run of the journal, or `None` before the first record.
    pub fn run_id(&self) -> Option<&RunId> {
        Some(&self.records.first()?.event.run_started()?.run_id)
    }

    /// Returns the number of records in the journal, including those that are not in `records`.
    pub fn records_count(&self) -> u64 {
        self.tip.seq
    }

    /// Returns the hash of the last record; all zeros if there is none.
    pub fn head(&self) -> Digest {
        self.tip.hash
    }
}

impl SqliteReader {
    /// Opens the journal at `path`. A missing journal is [`PortError::Unavailable`]; it is never created.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        Ok(Self { connection: connection::read_only(path)? })
    }

    /// Reads every record and verifies the chain and the signatures. The events are read only once.
    pub fn read_verified(&self, key: Option<&UserKey>) -> Result<VerifiedJournal, PortError> {
        self.verified(key, |connection| {
            let mut tip = Tip::START;
            let mut records = rows::page(connection, &mut tip, usize::MAX)?;
            records.iter_mut().for_each(|record| record.text.forget());
            Ok((records, tip))
        })
    }

    /// As [`SqliteReader::read_verified`], but keeps only the start and the resumes of the run.
    pub fn read_start_and_resumes(&self, key: Option<&UserKey>) -> Result<VerifiedJournal, PortError> {
        self.verified(key, |connection| rows::terms(connection, Tip::START))
    }

    fn verified(
        &self,
        key: Option<&UserKey>,
        read: impl FnOnce(&Connection) -> Result<(Vec<Record>, Tip), PortError>,
    ) -> Result<VerifiedJournal, PortError> {
        // One read transaction, because a driver may append between the two queries.
        let snapshot = self.connection.unchecked_transaction().map_err(port_error)?;
        let (records, tip) = read(&snapshot)?;
        let provenance = signature::provenance(&snapshot, key)?;
        tracing::debug!(records = tip.seq, "verified the journal");
        Ok(VerifiedJournal { records, provenance, tip })
    }

    /// Reads the first and the last record without verifying them. Only for a list of runs.
    pub fn ends(&self) -> Result<Vec<Record>, PortError> {
        rows::ends(&self.connection)
    }

    /// Returns the spend of all attempts of a run without verifying the records. Only for a list of runs.
    pub fn spent(&self) -> Result<SpendTotals, PortError> {
        rows::spent(&self.connection)
    }

    /// Returns who signed the journal.
    pub fn provenance(&self, key: Option<&UserKey>) -> Result<Provenance, PortError> {
        signature::provenance(&self.connection, key)
    }

    /// Returns the blobs of the same run, for reading.
    pub fn into_blobs(self, run: &Dir) -> Result<DirBlobs, PortError> {
        let outbox = Arc::new(Outbox::default());
        outbox.close();
        let rows = BlobRows::new(Arc::new(Mutex::new(Some(self.connection))));
        Ok(DirBlobs::open_in(run)?.with(SmallBlobs { outbox, rows }))
    }

    /// Returns the sequence number and the hash of the last record.
    pub fn tip(&self) -> Result<(u64, Digest), PortError> {
        rows::tip(&self.connection).map(|tip| (tip.seq, tip.hash))
    }
}

/// Converts an SQLite error to a port error.
fn port_error(error: rusqlite::Error) -> PortError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, TooBig};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase | TooBig) => {
            PortError::Corrupt { what: "the journal's database".into(), found: error.to_string() }
        }
        _ => PortError::Unavailable(error.to_string()),
    }
}
