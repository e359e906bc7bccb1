//! The queue of a journal in a database, computed from the records.
//!
//! The queue is in the memory of the process that drives the run, which is the only one that delivers. It changes after
//! each append, once the append is durable. Leases are in memory too, because they must end with the process. After the
//! journal was opened, and after an append that may have failed, the queue is unknown. The next call then rebuilds it
//! from the records.

use super::rows::{self, Tip};
use super::{PAGE_RECORDS, SqliteLog};
use crate::event::RunId;
use crate::lease::LeaseTable;
use crate::ports::{ClaimQueue, Delivery, Next, PortError};
use crate::queue::Queue;
use crate::queue_change::QueueChange;
use jiff::Timestamp;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The leases of this process.
#[derive(Default)]
pub(super) struct Leases(Mutex<LeaseTable>);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the queue from all records.
fn read(connection: &Connection) -> Result<Queue, PortError> {
    let (mut queue, mut tip) = (Queue::default(), Tip::START);
    loop {
        let page = rows::page(connection, &mut tip, PAGE_RECORDS)?;
        if page.is_empty() {
            return Ok(queue);
        }
        page.iter().for_each(|record| queue.apply(record));
    }
}

/// The queue of a journal, or `None` if it must be rebuilt from the records.
#[derive(Clone, Default)]
pub(super) struct SharedQueue(Arc<Mutex<Option<Queue>>>);

impl SharedQueue {
    /// Creates the queue of a journal without records.
    pub(super) fn empty() -> Self {
        Self(Arc::new(Mutex::new(Some(Queue::default()))))
    }

    /// Sets the queue.
    pub(super) fn set(&self, queue: Queue) {
        *self.lock() = Some(queue);
    }

    /// Applies the changes of records that have become durable.
    pub(super) fn follow(&self, changes: Vec<(QueueChange, u64, Timestamp)>) {
        if let Some(queue) = &mut *self.lock() {
            changes.into_iter().for_each(|(change, seq, at)| queue.change(change, seq, at));
        }
    }

    /// Drops the queue, so that the next call rebuilds it from the records.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimQueue for SqliteLog {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        self.require(run)?;
        // The lock is held while the records are read. Changes of concurrent appends are applied afterwards.
        let mut queue = self.queue.lock();
        let queue = match &mut *queue {
            Some(queue) => queue,
            unknown => unknown.insert(self.reading(read)?),
        };
        Ok(queue.next(run, &mut self.leases.lock(), now, lease_ms))
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        Ok(self.leases.lock().extend(delivery, now, lease_ms))
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        self.leases.lock().hold(delivery, now, lease_ms);
        Ok(())
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.leases.lock().end(delivery);
        Ok(())
    }
}
