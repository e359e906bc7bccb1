//! The ports between the engine and its storage.
//!
//! The engine is the same for one machine and for many. An adapter stores and delivers; it never decides about retries,
//! gates or routing. Only [`RunLog::append`] guarantees exclusivity: a queue may deliver twice and a signal may be
//! lost, but of two appends that expect the same head only one is stored. A lease on a run saves work, and decides nothing.
//! The log, the queue, the blobs and the leases have two adapters, on disk ([`crate::sqlite`]) and in memory
//! ([`crate::memory`]). `runtime/engine/tests/ports` runs the same tests against both. The engine has the adapter of the
//! signals.

use crate::event::{Digest, Event, EventText, Record, RunId, StreamKey, Task};
use jiff::Timestamp;
use std::fs::File;
use std::future::{Future, ready};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The failures of a port. Each requires a different reaction.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The head of a stream is not the expected record, and nothing was stored. The caller must read the records after
    /// the expected head.
    #[error("the head of `{stream}` is record {head}, expected {expected}")]
    Conflict {
        /// The stream whose head is not as expected.
        stream: StreamKey,
        /// The sequence number that the caller expected.
        expected: u64,
        /// The actual head; 0 before the first record.
        head: u64,
    },
    /// It is unknown whether the append was stored. The caller must read the head before it decides.
    #[error("`{0}` may or may not have been stored")]
    Ambiguous(String),
    /// The store cannot be reached or used at the moment.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store is intact, but this user did not write it. The caller must not act on it.
    #[error("record {seq} is not signed with this user's key")]
    Foreign {
        /// The first record that is not signed with this user's key.
        seq: u64,
    },
    /// The store is intact and encrypted, and this user does not have the key.
    #[error("run `{run}` is encrypted, and this user does not have its key")]
    NoKey {
        /// The run.
        run: RunId,
    },
    /// The journal has another version and cannot be read.
    #[error(
        "the journal has version {found}, expected {expected}; the version of glovebox that began the run can read it"
    )]
    Version {
        /// The version of the journal.
        found: i32,
        /// The version that this program writes.
        expected: i32,
    },
    /// The store is damaged: stored bytes differ from what was written. The caller must stop.
    #[error("{what} is corrupt: {found}")]
    Corrupt {
        /// The record or blob.
        what: String,
        /// The problem.
        found: String,
    },
}

/// The sequence number and the hash of a stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Sequence number of the record.
    pub seq: u64,
    /// Hash of the previous record.
    pub prev: Digest,
    /// Hash of the record.
    pub hash: Digest,
    /// The stored text of the event.
    pub text: EventText,
}

impl Stored {
    /// Returns the record of the event that was stored at this position.
    pub fn record(self, at: Timestamp, event: Event) -> Record {
        let Self { seq, prev, hash, text } = self;
        Record { seq, at, prev, hash, event, text }
    }
}

/// The journals of runs.
pub trait RunLog: Send + Sync {
    /// Appends all events or none to a run's journal, with the time `at`. `expect` has the required last sequence
    /// number of each stream (0 for a stream without records); if one differs, the append fails with
    /// [`PortError::Conflict`]. When it returns, the events are durable, and so is every blob that was put before the
    /// call. Without events, only the blobs are made durable. `at` is truncated to whole milliseconds. Returns the
    /// position of each event, in order.
    fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> impl Future<Output = Result<Vec<Stored>, PortError>> + Send;

    /// Reads at most `records_max` records of a run, starting with sequence number `from`. Returns an empty list at the end.
    fn read(
        &self,
        run: &RunId,
        from: u64,
        records_max: usize,
    ) -> impl Future<Output = Result<Vec<Record>, PortError>> + Send;
}

impl<L: RunLog> RunLog for Arc<L> {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        (**self).append(run, expect, at, events).await
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        (**self).read(run, from, records_max).await
    }
}

impl<Q: ClaimQueue> ClaimQueue for Arc<Q> {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        (**self).next(run, now, lease_ms).await
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        (**self).extend(delivery, now, lease_ms).await
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        (**self).hold(delivery, now, lease_ms).await
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        (**self).done(delivery).await
    }
}

/// A ready attempt that the queue delivered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: Task,
    /// Sequence number of the attempt's `stage.ready` record.
    pub ready_seq: u64,
}

/// The next delivery of a run's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An attempt that may start now.
    Due(Delivery),
    /// No attempt may start before this time. There is no separate timer: a `stage.ready` with a later `due_at` is the timer.
    At(Timestamp),
    /// The queue is empty.
    Empty,
}

/// The queue of ready attempts. It delivers at least once and does not guarantee exclusivity.
pub trait ClaimQueue: Send + Sync {
    /// Returns the attempt of a run that is due first, with a lease of `lease_ms` from `now`.
    fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> impl Future<Output = Result<Next, PortError>> + Send;

    /// Extends the lease of a delivery to `lease_ms` from `now`. Returns false if the lease had already ended.
    fn extend(
        &self,
        delivery: &Delivery,
        now: Timestamp,
        lease_ms: u64,
    ) -> impl Future<Output = Result<bool, PortError>> + Send;

    /// Leases a delivery that was claimed before the queue returned it, for `lease_ms` from `now`.
    fn hold(
        &self,
        delivery: &Delivery,
        now: Timestamp,
        lease_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Ends the lease of a delivery, after its commit or if its task has already ended.
    fn done(&self, delivery: &Delivery) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// A store of bytes by digest. Its calls block, unlike those of the other ports: stages read and write files on threads
/// that may block, and an asynchronous call would only add a copy of the bytes.
///
/// A blob can be opened as soon as it was put. It becomes durable with the next append, so that an event may name it.
pub trait BlobStore: Send + Sync {
    /// Stores all bytes of a stream. Storing the same bytes again changes nothing.
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError>;

    /// Stores bytes that are in memory.
    fn put_bytes(&self, mut bytes: &[u8]) -> Result<Digest, PortError> {
        self.put(&mut bytes)
    }

    /// Opens a blob. Bytes from the disk are hashed first. If they do not match the digest, the call fails with
    /// [`PortError::Corrupt`].
    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError>;

    /// As [`BlobStore::open`], for a blob that may have at most `bytes_max` bytes. Nothing after them is returned, and a store
    /// of another machine refuses a longer blob before it is transferred.
    fn open_at_most(&self, digest: &Digest, bytes_max: u64) -> Result<Box<dyn Read + Send>, PortError> {
        Ok(Box::new(self.open(digest)?.take(bytes_max)))
    }

    /// Opens a blob without verifying its digest, for readers that hash the bytes while they copy. The error of a blob that
    /// does not exist is [`io::ErrorKind::NotFound`].
    fn open_unverified(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>>;

    /// Reads a whole blob. A blob of more than `bytes_max` bytes is an error.
    fn read_all(&self, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, PortError> {
        read_at_most(self.open(digest)?, digest, bytes_max)
    }

    /// Stores the content of a file. A large file that is already stored may only be read.
    fn keep(&self, file: &mut File) -> Result<(), PortError> {
        self.put(file).map(drop)
    }

    /// Removes what a killed process left behind. Only the process that drives the run may call this.
    fn sweep(&self) -> Result<(), PortError> {
        Ok(())
    }

    /// Returns the counter of the disk space, in bytes, of the new files that were written through this store. It stays 0 for
    /// a store that writes no files of the run.
    fn written(&self) -> Arc<AtomicU64> {
        Arc::default()
    }

    /// Copies blobs to this machine before they are opened, at most `bytes_max` bytes. Nothing to do for a store of this
    /// machine.
    fn fetch(&self, _digests: &[Digest], _bytes_max: u64) -> impl Future<Output = Result<(), PortError>> + Send
    where
        Self: Sized,
    {
        ready(Ok(()))
    }

    /// Makes every blob that was put available to all machines that may read it. Nothing to do for a store of this machine,
    /// whose blobs become durable with the next append.
    fn flush(&self) -> impl Future<Output = Result<(), PortError>> + Send
    where
        Self: Sized,
    {
        ready(Ok(()))
    }
}

/// Reads the whole stream of a blob. More than `bytes_max` bytes are an error.
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

/// Who drives a run. A lease keeps a second process from driving the run at the same time, which would only waste work: of two
/// drivers, the appends decide.
pub trait Leases: Send + Sync {
    /// The lease of a run. It ends when it is dropped.
    type Held: Send;

    /// Takes the lease of a run. Returns an error if another process holds it.
    fn take(&self, run: &RunId) -> impl Future<Output = Result<Self::Held, PortError>> + Send;

    /// Keeps a lease for as long as the future is polled. Returns only if the lease was lost.
    fn keep(&self, held: &Self::Held) -> impl Future<Output = PortError>;
}

/// Notifications that may be lost. There is one: the request to stop.
pub trait Signals: Send + Sync {
    /// Asks the run to stop. The name of the first caller is kept.
    fn cancel(&self, by: &str);

    /// Waits for a request to stop and returns the name of its caller.
    fn canceled(&self) -> impl Future<Output = String> + Send;

    /// Returns a flag that is set by a request to stop, for code that cannot await.
    fn flag(&self) -> Arc<AtomicBool>;
}
