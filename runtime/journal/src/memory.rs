//! The log, the claim queue, the blob store and the leases in memory, for any number of runs. Their content is lost when the
//! process ends.
//!
//! This is the second adapter of these ports. It behaves as the adapter on disk, except for durability. Tests of the
//! layers above the ports therefore need no disk, and they fail if a layer relies on a property of SQLite that the
//! ports do not promise.

use crate::event::{Digest, Event, EventText, Record, RunId, StreamKey, canonical, chain, whole_milliseconds};
use crate::lease::LeaseTable;
use crate::ports::{BlobStore, ClaimQueue, Delivery, Leases, Next, PortError, RunLog, Stored};
use crate::queue::Queue;
use jiff::Timestamp;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Journals of runs and their queues. All clones share them.
#[derive(Clone, Default)]
pub struct MemoryLog(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    runs: HashMap<RunId, Journal>,
    leases: LeaseTable,
}

#[derive(Default)]
struct Journal {
    records: Vec<Record>,
    heads: HashMap<StreamKey, u64>,
    queue: Queue,
}

impl MemoryLog {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    fn push(&mut self, at: Timestamp, event: Event, text: String) -> Stored {
        let prev = self.records.last().map_or(Digest::ZERO, |last| last.hash);
        let seq = self.records.len() as u64 + 1;
        let hash = chain(&prev, seq, at, &text);
        let text = EventText::from(text);
        self.heads.insert(event.stream(), seq);
        let record = Record { seq, at, prev, hash, event, text: text.clone() };
        self.queue.apply(&record);
        self.records.push(record);
        Stored { seq, prev, hash, text }
    }
}

impl RunLog for MemoryLog {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        let texts: Result<Vec<String>, _> = events.iter().map(canonical).collect();
        let texts = texts.map_err(|error| PortError::Unavailable(error.to_string()))?;
        let mut store = self.lock();
        let journal = store.runs.entry(run.clone()).or_default();
        for (stream, expected) in expect {
            let head = journal.heads.get(stream).copied().unwrap_or(0);
            if head != *expected {
                return Err(PortError::Conflict { stream: stream.clone(), expected: *expected, head });
            }
        }
        let at = whole_milliseconds(at);
        Ok(events.iter().zip(texts).map(|(event, text)| journal.push(at, event.clone(), text)).collect())
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        let skipped = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        let store = self.lock();
        let records = store.runs.get(run).map_or(&[][..], |journal| &journal.records);
        Ok(records.iter().skip(skipped).take(records_max).cloned().collect())
    }
}

impl ClaimQueue for MemoryLog {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        let Store { runs, leases } = &mut *self.lock();
        Ok(runs.get(run).map_or(Next::Empty, |journal| journal.queue.next(run, leases, now, lease_ms)))
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        Ok(self.lock().leases.extend(delivery, now, lease_ms))
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        self.lock().leases.hold(delivery, now, lease_ms);
        Ok(())
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.lock().leases.end(delivery);
        Ok(())
    }
}

/// Blobs by digest. All clones share them.
#[derive(Clone, Default)]
pub struct MemoryBlobs(Arc<Mutex<HashMap<Digest, Arc<[u8]>>>>);

impl MemoryBlobs {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Arc<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlobStore for MemoryBlobs {
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let mut whole = Vec::new();
        bytes.read_to_end(&mut whole).map_err(|error| PortError::Unavailable(error.to_string()))?;
        let digest = Digest::hash(&whole);
        self.lock().entry(digest).or_insert_with(|| whole.into());
        Ok(digest)
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError> {
        let missing = |_| PortError::Corrupt { what: format!("blob {digest}"), found: "it is missing".to_owned() };
        self.open_unverified(digest).map_err(missing)
    }

    fn open_unverified(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        let bytes = self.lock().get(digest).map(Arc::clone).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// The leases of runs. All clones share them.
#[derive(Clone, Default)]
pub struct MemoryLeases(Arc<Mutex<LeasedRuns>>);

#[derive(Default)]
struct LeasedRuns {
    /// The lease of each run: its number, and who waits for its end.
    held: HashMap<RunId, (u64, Option<Waker>)>,
    /// Number of leases so far.
    count: u64,
}

/// The lease of a run.
pub struct MemoryLease {
    leases: MemoryLeases,
    run: RunId,
    number: u64,
}

impl MemoryLeases {
    /// Ends the lease of a run, as if its time had passed.
    pub fn end(&self, run: &RunId) {
        let ended = self.lock().held.remove(run);
        if let Some((_, Some(waker))) = ended {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, LeasedRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leases for MemoryLeases {
    type Held = MemoryLease;

    async fn take(&self, run: &RunId) -> Result<MemoryLease, PortError> {
        let mut runs = self.lock();
        if runs.held.contains_key(run) {
            return Err(PortError::Unavailable(format!("another driver holds the lease of run `{run}`")));
        }
        runs.count += 1;
        let number = runs.count;
        runs.held.insert(run.clone(), (number, None));
        Ok(MemoryLease { leases: self.clone(), run: run.clone(), number })
    }

    async fn keep(&self, held: &MemoryLease) -> PortError {
        poll_fn(|context| match self.lock().held.get_mut(&held.run).filter(|(number, _)| *number == held.number) {
            Some((_, waiting)) => {
                *waiting = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(PortError::Unavailable(format!("the lease of run `{}` was lost", held.run))),
        })
        .await
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        let mut runs = self.leases.lock();
        if runs.held.get(&self.run).is_some_and(|(number, _)| *number == self.number) {
            runs.held.remove(&self.run);
        }
    }
}
