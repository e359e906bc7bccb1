//! The changes that events make to the claim queue. An append is also the enqueue operation.

use crate::event::{BranchId, Event, Task};
use jiff::Timestamp;

/// The effect of an event on the queue.
pub(crate) enum QueueChange {
    /// The queue does not change.
    Nothing,
    /// A task is ready. `due_at` is the earliest time to start in milliseconds since the epoch.
    Ready { task: Task, due_at: Option<i64> },
    /// A task is removed from the queue.
    Done { task: Task },
    /// All tasks of a branch are removed from the queue. A canceled branch may have one that waits for its time.
    BranchEnded { generation: u32, branch: BranchId },
    /// All tasks are removed from the queue.
    Clear,
}

impl QueueChange {
    /// Returns the change that an event makes.
    pub(crate) fn from_event(event: &Event) -> Self {
        match event {
            Event::StageReady(ready) => {
                Self::Ready { task: ready.task.clone(), due_at: ready.due_at.map(Timestamp::as_millisecond) }
            }
            Event::StageFinished(finished) => Self::Done { task: finished.attempt.task.clone() },
            Event::BranchCanceled(canceled) => {
                Self::BranchEnded { generation: canceled.generation, branch: canceled.branch.clone() }
            }
            Event::RunFinished(_) => Self::Clear,
            // The run restarts at a node: attempts that were ready, or were running in a killed process, are not executed.
            Event::RunResumed(resumed) if resumed.from.is_some() => Self::Clear,
            _ => Self::Nothing,
        }
    }

    /// Returns true for a task that the end of a branch removes.
    pub(crate) fn ends(generation: u32, branch: &BranchId, task: &Task) -> bool {
        task.generation == generation && task.branch == *branch
    }
}
