//! The four ports between the engine and whatever keeps its facts.
//!
//! One machine and many run the same engine over these. An adapter stores and delivers; it never decides about retries,
//! gates or routing. Exclusivity comes from [`RunLog::append`] alone: a queue may deliver twice and a signal may be lost,
//! but of two appends that expect the same head only one is stored. Two adapters exist, [`crate::sqlite`] and [`crate::memory`];
//! `tests/ports` holds both to the same promises.

use crate::event::{Digest, Event, EventText, Record, RunId, Subject, Task};
use jiff::Timestamp;
use std::future::Future;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The ways in which a port fails, each with a different remedy.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A head is not where the append expected it; nothing was stored. Read on from the actual head.
    #[error("`{subject}` stands at record {head}, expected {expected}")]
    Conflict {
        /// The subject.
        subject: Subject,
        /// The expected head.
        expected: u64,
        /// Its head; 0 before the first record.
        head: u64,
    },
    /// It is not known whether the append was stored. Read the head before deciding.
    #[error("`{0}` may or may not have been stored")]
    Ambiguous(String),
    /// The store cannot be reached or used now.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store is intact, but this user did not write it. Stop before acting on it.
    #[error("record {seq} is not signed with this user's key")]
    Foreign {
        /// The first record that is not.
        seq: u64,
    },
    /// The journal has another version. It cannot be read.
    #[error(
        "the journal has version {found}, expected {expected}; the version of glovebox that began the run can read it"
    )]
    Version {
        /// The version it has.
        found: i32,
        /// The version that is written now.
        expected: i32,
    },
    /// The store is damaged: stored bytes differ from what was written. Stop.
    #[error("{what} is corrupt: {found}")]
    Corrupt {
        /// The record or blob.
        what: String,
        /// The problem.
        found: String,
    },
}

/// The position of a stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its sequence number.
    pub seq: u64,
    /// Hash of the record before.
    pub prev: Digest,
    /// Its own hash.
    pub hash: Digest,
    /// The stored record.
    pub text: EventText,
}

impl Stored {
    /// The record of an event that was stored here.
    pub fn record(self, at: Timestamp, event: Event) -> Record {
        let Self { seq, prev, hash, text } = self;
        Record { seq, at, prev, hash, event, text }
    }
}

/// The journals of runs.
pub trait RunLog: Send + Sync {
    /// Appends all events to a run's journal or none, each stamped `at`, if every subject's last sequence number is as expected (0 for a
    /// subject without records). Durable when it returns, with every blob that was put before it began; without events only the blobs are. `at` must be whole milliseconds; the rest is cut. Answers with one place for
    /// each event, in order.
    fn append(
        &self,
        run: &RunId,
        expect: &[(Subject, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> impl Future<Output = Result<Vec<Stored>, PortError>> + Send;

    /// Reads at most `records_max` records of a run with sequence numbers of `from` and above. Empty at the end.
    fn read(
        &self,
        run: &RunId,
        from: u64,
        records_max: usize,
    ) -> impl Future<Output = Result<Vec<Record>, PortError>> + Send;
}

/// A ready attempt, handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: Task,
    /// Sequence number of its `stage.ready`.
    pub ready_seq: u64,
}

/// The next delivery of a run's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An attempt that may start now.
    Due(Delivery),
    /// Nothing before this moment; a `stage.ready` with a later `due_at` is the timer.
    At(Timestamp),
    /// Nothing at all.
    Empty,
}

/// Ready attempts. Delivers at least once and promises nothing about exclusivity.
pub trait ClaimQueue: Send + Sync {
    /// Hands out the attempt of a run that is due first, for `lease_ms` from `now`.
    fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> impl Future<Output = Result<Next, PortError>> + Send;

    /// Holds a delivery for another `lease_ms` from `now`. False when its lease had ended already.
    fn extend(
        &self,
        delivery: &Delivery,
        now: Timestamp,
        lease_ms: u64,
    ) -> impl Future<Output = Result<bool, PortError>> + Send;

    /// Holds a delivery that was claimed before it was handed out, for `lease_ms` from `now`.
    fn hold(
        &self,
        delivery: &Delivery,
        now: Timestamp,
        lease_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Forgets a delivery, after its commit or when its task has ended already.
    fn done(&self, delivery: &Delivery) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// Bytes by their digest. Its calls block, unlike those of the other ports: stages read and write files on threads that may block, and
/// a copy of the bytes in between would gain nothing.
///
/// A blob can be opened at once after it was put. It is durable when a later append is, so that an event may name it.
pub trait BlobStore: Send + Sync {
    /// Stores all bytes of a stream. Storing the same bytes again changes nothing.
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError>;

    /// Stores bytes that are at hand.
    fn put_bytes(&self, mut bytes: &[u8]) -> Result<Digest, PortError> {
        self.put(&mut bytes)
    }

    /// Opens a blob. Bytes from the disk are digested again first, so what is read is what was stored.
    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError>;

    /// Reads a whole blob of at most `bytes_max`.
    fn read_all(&self, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, PortError> {
        read_at_most(self.open(digest)?, digest, bytes_max)
    }
}

/// Reads the whole stream of a blob, of at most `bytes_max`.
pub(crate) fn read_at_most(stream: impl Read, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, PortError> {
    let mut bytes = Vec::new();
    let mut stream = stream.take(bytes_max.saturating_add(1));
    stream.read_to_end(&mut bytes).map_err(|error| PortError::Unavailable(error.to_string()))?;
    if bytes.len() as u64 > bytes_max {
        let found = format!("more than {bytes_max} bytes, the most that is read at once");
        return Err(PortError::Corrupt { what: format!("blob {digest}"), found });
    }
    Ok(bytes)
}

/// Hints that may be lost. One matters here: a request to stop.
pub trait Signals: Send + Sync {
    /// Asks the run to stop. The first caller's name is kept.
    fn cancel(&self, by: &str);

    /// Waits for a request and returns the name of its caller.
    fn canceled(&self) -> impl Future<Output = String> + Send;

    /// Set from the moment of a request; handed to calls that cannot wait.
    fn flag(&self) -> Arc<AtomicBool>;
}
