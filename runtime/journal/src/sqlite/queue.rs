//! The queue of ready attempts, computed from the records.
//!
//! The queue is in the memory of the process that drives the run, which is the only one that delivers. It changes after
//! each append, once the append is durable. Leases are in memory too, because they must end with the process. After the
//! journal was opened, and after an append that may have failed, the queue is unknown. The next call then rebuilds it
//! from the records.

use super::rows::{self, Tip};
use super::{PAGE_RECORDS, SqliteLog};
use crate::event::{Record, RunId, Task};
use crate::lease::LeaseTable;
use crate::ports::{ClaimQueue, Delivery, Next, PortError};
use crate::queue_change::QueueChange;
use jiff::Timestamp;
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The leases of this process.
#[derive(Default)]
pub(super) struct Leases(Mutex<LeaseTable>);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sort key of the queue: the time at which a task is due, in milliseconds since the epoch, and the sequence number
/// of its `stage.ready` record.
type Place = (i64, u64);

/// The tasks that are ready and not finished.
#[derive(Debug, Default, PartialEq)]
pub struct Queue {
    waiting: BTreeMap<Place, Task>,
    places: HashMap<Task, Place>,
}

impl Queue {
    /// Applies a record. Records must be applied in the order of the journal.
    pub fn apply(&mut self, record: &Record) {
        self.change(QueueChange::from_event(&record.event), record.seq, record.at);
    }

    /// Applies the change of the record with this sequence number and time.
    fn change(&mut self, change: QueueChange, seq: u64, at: Timestamp) {
        match change {
            QueueChange::Ready { task, due_at } => {
                let place = (due_at.unwrap_or(at.as_millisecond()), seq);
                self.remove(&task);
                self.waiting.insert(place, task.clone());
                self.places.insert(task, place);
            }
            QueueChange::Done { task } => self.remove(&task),
            QueueChange::BranchEnded { generation, branch } => {
                self.places.retain(|task, _| !QueueChange::ends(generation, &branch, task));
                self.waiting.retain(|_, task| !QueueChange::ends(generation, &branch, task));
            }
            QueueChange::Clear => *self = Self::default(),
            QueueChange::Nothing => {}
        }
    }

    fn remove(&mut self, task: &Task) {
        if let Some(place) = self.places.remove(task) {
            self.waiting.remove(&place);
        }
    }

    /// Builds the queue from all records.
    fn read(connection: &Connection) -> Result<Self, PortError> {
        let (mut queue, mut tip) = (Self::default(), Tip::START);
        loop {
            let page = rows::page(connection, &mut tip, PAGE_RECORDS)?;
            if page.is_empty() {
                return Ok(queue);
            }
            page.iter().for_each(|record| queue.apply(record));
        }
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
            unknown => unknown.insert(self.reading(Queue::read)?),
        };
        let waiting = queue.waiting.iter().map(|((due_at, ready_seq), task)| {
            (Delivery { run: run.clone(), task: task.clone(), ready_seq: *ready_seq }, *due_at)
        });
        Ok(self.leases.lock().next(waiting, now, lease_ms))
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
