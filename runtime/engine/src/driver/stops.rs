//! Channels to attempts in progress: requests to stop the attempts of branches that are no longer needed, and messages of
//! people to agents.
//!
//! A request is kept until its attempt receives it. A request to stop the whole run is delivered by
//! [`glovebox_journal::ports::Signals`] instead.

use super::Assignment;
use glovebox_host::llm::Steering;
use glovebox_journal::event::{BranchId, Event, Record};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// One channel for each branch with an attempt in progress.
#[derive(Default)]
pub(super) struct Stops(BTreeMap<BranchId, Channel>);

#[derive(Default)]
struct Channel {
    stop: Arc<Notify>,
    steering: Steering,
}

impl Stops {
    /// Returns the stop channel of an attempt that begins.
    pub(super) fn of(&mut self, assignment: &Assignment) -> Arc<Notify> {
        let channel = self.0.entry(assignment.attempt.task.branch.clone()).or_default();
        channel.steering = assignment.steering.clone();
        Arc::clone(&channel.stop)
    }

    /// Removes the channel of an attempt that ended.
    pub(super) fn forget(&mut self, branch: &BranchId) {
        self.0.remove(branch);
    }

    /// Asks the attempts of canceled branches to stop, and delivers messages to agents.
    pub(super) fn tell(&self, records: &[Record]) {
        for record in records {
            let channel = |branch| self.0.get(branch);
            match &record.event {
                Event::BranchCanceled(canceled) => {
                    channel(&canceled.branch).into_iter().for_each(|channel| channel.stop.notify_one());
                }
                Event::StageSteered(steered) => {
                    let channel = channel(&steered.attempt.task.branch);
                    channel.into_iter().for_each(|channel| channel.steering.push((&**steered).into()));
                }
                _ => {}
            }
        }
    }

    /// Asks every attempt to stop.
    pub(super) fn all(&self) {
        self.0.values().for_each(|channel| channel.stop.notify_one());
    }
}
