//! The changes that events make to the queue of tasks: to append is to enqueue.

use crate::event::{Event, Task};
use jiff::Timestamp;

/// A change of the queue.
pub(crate) enum QueueChange {
    /// None.
    Nothing,
    /// A task is ready, not before a time in milliseconds since the epoch.
    Ready { task: Task, due_at: Option<i64> },
    /// A task is not to be delivered any more.
    Done { task: Task },
    /// No task is to be delivered any more.
    Clear,
}

impl QueueChange {
    /// The change that an event makes.
    pub(crate) fn from_event(event: &Event) -> Self {
        match event {
            Event::StageReady(ready) => {
                Self::Ready { task: ready.task.clone(), due_at: ready.due_at.map(Timestamp::as_millisecond) }
            }
            Event::StageFinished(finished) => Self::Done { task: finished.attempt.task.clone() },
            Event::RunFinished(_) => Self::Clear,
            // It begins again at a node: what was ready, or under way in a process that was killed, is not made.
            Event::RunResumed(resumed) if resumed.from.is_some() => Self::Clear,
            _ => Self::Nothing,
        }
    }
}
