//! The one writer of the database, and the queue before it.
//!
//! A batch queues up first, and every task that is ready by then queues up its own. Whoever finds nobody writing then commits them all in
//! one transaction, on its own thread: one producer has no change of threads, and many share a flush. A batch whose expectations fail
//! leaves no trace and does not disturb its neighbours, nor does one whose producer gave up before it was written.
//! Competing connections to one database starve each other for seconds; many senders to one writer do not.

pub(super) mod store;

use crate::event::{Event, Subject, canonical};
use crate::ports::{PortError, Stored};
use crate::queue_change::QueueChange;
use cap_std::fs::Dir;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use store::Store;
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// Batches in one commit at most.
const GROUP_MAX: usize = 64;

/// An event as it is stored.
pub(super) struct Entry {
    subject: String,
    text: String,
    queue: QueueChange,
}

impl Entry {
    /// Writes an event as text.
    pub(super) fn new(event: &Event) -> Result<Self, serde_json::Error> {
        let queue = QueueChange::from_event(event);
        Ok(Self { subject: event.subject().to_string(), text: canonical(event)?, queue })
    }
}

/// Events that are stored together or not at all.
pub(super) struct Batch {
    pub(super) expect: Vec<(Subject, u64)>,
    pub(super) at: Timestamp,
    pub(super) entries: Vec<Entry>,
}

type Answer = Result<Vec<Stored>, PortError>;

struct Request {
    batch: Batch,
    answer: oneshot::Sender<Answer>,
}

/// The database and what waits for it.
pub(super) struct Writer {
    waiting: Mutex<VecDeque<Request>>,
    /// None once it is closed.
    store: Mutex<Option<Store>>,
}

impl Writer {
    /// Takes the database over. Nothing waits for it yet.
    pub(super) fn new(store: Store) -> Self {
        Self { waiting: Mutex::default(), store: Mutex::new(Some(store)) }
    }

    /// Stores a batch, and returns when it is durable or refused. Blocks for a flush unless another writes.
    pub(super) async fn append(&self, batch: Batch) -> Answer {
        let (answer, mut answered) = oneshot::channel();
        self.waiting().push_back(Request { batch, answer });
        // Producers on the same thread run only while this one waits, and a flush does not let them.
        yield_now().await;
        // What came after a commit is left to those who came: they gather first, too.
        if let Ok(answer) = answered.try_recv() {
            return answer;
        }
        self.write_waiting()?;
        // The writer died with the batch in hand: it may have been committed.
        answered.await.map_err(|_| PortError::Ambiguous("the last append".into()))?
    }

    /// Writes until nothing waits, or another does.
    fn write_waiting(&self) -> Result<(), PortError> {
        // Looked at again after the lock is free: who came meanwhile found it taken and left the work to this one.
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

    /// Makes the log long enough for the next appends, now and before later ones.
    pub(super) fn lengthen(&self, run: &Dir) -> Result<(), PortError> {
        let mut store = self.store.lock().map_err(|_| stopped())?;
        store.as_mut().ok_or_else(stopped)?.lengthen(run)
    }

    /// Closes the database. Nothing may be appended afterwards.
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

/// Commits a group and answers everybody in it.
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
