//! Requests to stop the attempts of single branches, which their forks do not need any more.
//!
//! A request is kept until its attempt looks. That of a whole run comes another way: see [`crate::ports::Signals`].

use crate::event::{BranchId, Event, Record};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// One channel for each branch with an attempt under way.
#[derive(Default)]
pub(super) struct Stops(BTreeMap<BranchId, Arc<Notify>>);

impl Stops {
    /// The channel of an attempt that begins.
    pub(super) fn of(&mut self, branch: &BranchId) -> Arc<Notify> {
        Arc::clone(self.0.entry(branch.clone()).or_default())
    }

    /// Forgets an attempt that ended.
    pub(super) fn forget(&mut self, branch: &BranchId) {
        self.0.remove(branch);
    }

    /// Asks the attempts of branches that were canceled to stop.
    pub(super) fn tell(&self, records: &[Record]) {
        for record in records {
            if let Event::BranchCanceled(canceled) = &record.event
                && let Some(stop) = self.0.get(&canceled.branch)
            {
                stop.notify_one();
            }
        }
    }

    /// Asks every attempt to stop.
    pub(super) fn all(&self) {
        self.0.values().for_each(|stop| stop.notify_one());
    }
}
