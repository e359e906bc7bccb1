//! The queue of a run's ready attempts, folded from its records.
//!
//! Every adapter of the claim queue uses this fold, so that a queue never disagrees with the journal. It knows neither
//! leases nor storage: [`LeaseTable`] has the leases, and the adapter reads the records.

use crate::event::{Record, RunId, Task};
use crate::lease::LeaseTable;
use crate::ports::{Delivery, Next};
use crate::queue_change::QueueChange;
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};

/// The sort key of the queue: the time at which a task is due, in milliseconds since the epoch, and the sequence number
/// of its `stage.ready` record.
type Place = (i64, u64);

/// The tasks of one run that are ready and not finished.
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
    pub(crate) fn change(&mut self, change: QueueChange, seq: u64, at: Timestamp) {
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

    /// Leases and returns the first attempt of this run that is due and not leased.
    pub fn next(&self, run: &RunId, leases: &mut LeaseTable, now: Timestamp, lease_ms: u64) -> Next {
        let waiting = self.waiting.iter().map(|((due_at, ready_seq), task)| {
            (Delivery { run: run.clone(), task: task.clone(), ready_seq: *ready_seq }, *due_at)
        });
        leases.next(waiting, now, lease_ms)
    }

    fn remove(&mut self, task: &Task) {
        if let Some(place) = self.places.remove(task) {
            self.waiting.remove(&place);
        }
    }
}
