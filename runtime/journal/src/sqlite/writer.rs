//! The only writer of the database, and the queue of batches in front of it.
//!
//! A producer first adds its batch to the queue and yields, so that other ready tasks can add theirs. A producer that
//! then finds the store unlocked commits all waiting batches in one transaction, on its own thread. So one producer
//! needs no thread switch, and many producers share a flush. A batch with an unmet expectation leaves no trace and does
//! not affect the other batches. A batch whose producer was dropped before the commit is not stored. Connections that
//! compete for one database block each other for seconds; many senders to one writer do not.

pub(super) mod store;

use crate::event::{Event, StreamKey, canonical};
use crate::ports::{PortError, Stored};
use crate::queue_change::QueueChange;
use cap_std::fs::Dir;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use store::Store;
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// Maximum number of batches in one commit.
const GROUP_MAX: usize = 64;

/// An event in its stored form.
pub(super) struct Entry {
    stream: String,
    text: String,
    queue: QueueChange,
}

impl Entry {
    /// Serializes an event.
    pub(super) fn new(event: &Event) -> Result<Self, serde_json::Error> {
        let queue = QueueChange::from_event(event);
        Ok(Self { stream: event.stream().to_string(), text: canonical(event)?, queue })
    }
}

/// Events that are stored together or not at all.
pub(super) struct Batch {
    pub(super) expect: Vec<(StreamKey, u64)>,
    pub(super) at: Timestamp,
    pub(super) entries: Vec<Entry>,
}

type Answer = Result<Vec<Stored>, PortError>;

struct Request {
    batch: Batch,
    answer: oneshot::Sender<Answer>,
}

/// The database and the batches that wait for it.
pub(super) struct Writer {
    waiting: Mutex<VecDeque<Request>>,
    /// `None` once it is closed.
    store: Mutex<Option<Store>>,
}

impl Writer {
    /// Creates a writer that continues at the journal's end. It signs records with the key, stores the blobs of the
    /// outbox with each append, and updates the queue.
    pub(super) fn new(store: Store) -> Self {
        Self { waiting: Mutex::default(), store: Mutex::new(Some(store)) }
    }

    /// Stores a batch, and returns when it is durable or refused. Blocks for a flush unless another producer is writing.
    pub(super) async fn append(&self, batch: Batch) -> Answer {
        let (answer, mut answered) = oneshot::channel();
        self.waiting().push_back(Request { batch, answer });
        // Producers on the same thread can only add their batches now, because the flush blocks the thread.
        yield_now().await;
        // Another producer has committed this batch. Batches that were added since are left to their own producers.
        if let Ok(answer) = answered.try_recv() {
            return answer;
        }
        self.write_waiting()?;
        // If the producer that took the batch gave no answer, the batch may have been committed.
        answered.await.map_err(|_| PortError::Ambiguous("the last append".into()))?
    }

    /// Commits groups until no batch waits, or until another producer is writing.
    fn write_waiting(&self) -> Result<(), PortError> {
        // The queue is checked again after the lock is released: a producer that found the store locked has left its
        // batch to this one.
        while !self.waiting().is_empty() {
            let mut store = match self.store.try_lock() {
                Ok(store) => store,
                Err(TryLockError::WouldBlock) => return Ok(()),
                Err(TryLockError::Poisoned(_)) => return Err(stopped()),
            };
            let store = store.as_mut().ok_or_else(stopped)?;
            let group = self.next_group();
            if !group.is_empty() {
                commit(store, group);
            }
        }
        Ok(())
    }

    fn next_group(&self) -> Vec<Request> {
        let mut waiting = self.waiting();
        waiting.retain(|request| !request.answer.is_closed());
        let count = waiting.len().min(GROUP_MAX);
        waiting.drain(..count).collect()
    }

    /// Lengthens the write-ahead log for the next appends. See [`LogFile`](super::log_file::LogFile).
    pub(super) fn lengthen(&self, run: &Dir) -> Result<(), PortError> {
        let mut store = self.store.lock().map_err(|_| stopped())?;
        store.as_mut().ok_or_else(stopped)?.lengthen(run)
    }

    /// Closes the database. No batch may be appended afterwards.
    pub(super) fn close(&self) {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        store.into_iter().for_each(Store::close);
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stopped() -> PortError {
    PortError::Unavailable("the journal's writer has stopped".into())
}

/// Commits a group and sends each producer in it its result.
fn commit(store: &mut Store, group: Vec<Request>) {
    let (batches, senders): (Vec<Batch>, Vec<_>) =
        group.into_iter().map(|request| (request.batch, request.answer)).unzip();
    let answers = match store.commit(batches) {
        Ok(answers) => answers,
        Err(error) => senders.iter().map(|_| Err(error.again())).collect(),
    };
    for (sender, answer) in senders.into_iter().zip(answers) {
        let _ = sender.send(answer);
    }
}
