//! Channels to attempts in progress: requests to stop the attempts of branches that are no longer needed, and messages of
//! people to agents.
//!
//! A request is kept until its attempt receives it. A request to stop the whole run is delivered by
//! [`glovebox_journal::ports::Signals`] instead.

use super::Assignment;
use super::stall::StallWatch;
use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{AttemptId, BranchId, Event, Record};
use glovebox_state::run_state::RunState;
use glovebox_state::stall::ObservedAttempt;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// One channel for each branch with an attempt in progress, and the watchdog that observes the attempts.
pub(super) struct Stops {
    channels: BTreeMap<BranchId, Channel>,
    /// `None` if nothing ends a stalled run.
    pub(super) watch: Option<StallWatch>,
}

#[derive(Default)]
struct Channel {
    stop: Arc<Notify>,
    steering: Steering,
    pulse: Pulse,
}

impl Stops {
    /// Creates the channels of a run without attempts in progress.
    pub(super) fn new(watch: Option<StallWatch>) -> Self {
        Self { channels: BTreeMap::new(), watch }
    }

    /// Returns the stop channel of an attempt that begins.
    pub(super) fn of(&mut self, assignment: &Assignment) -> Arc<Notify> {
        let channel = self.channels.entry(assignment.attempt.task.branch.clone()).or_default();
        channel.steering = assignment.steering.clone();
        channel.pulse = assignment.pulse.clone();
        Arc::clone(&channel.stop)
    }

    /// Removes the channel of an attempt that ended.
    pub(super) fn forget(&mut self, branch: &BranchId) {
        self.channels.remove(branch);
    }

    /// Returns what was observed of the attempt of a branch. `None` if it is not in progress here.
    pub(super) fn observed(&self, branch: &BranchId, id: &AttemptId) -> Option<ObservedAttempt> {
        let pulse = &self.channels.get(branch)?.pulse;
        Some(ObservedAttempt { id: id.clone(), beats: pulse.counts().beats, waits_for: pulse.waits_for() })
    }

    /// Waits until the watchdog looks at the attempts.
    pub(super) async fn look_due(&self) {
        match &self.watch {
            Some(watch) => tokio::time::sleep_until(watch.due()).await,
            None => std::future::pending().await,
        }
    }

    /// Asks the attempts of canceled branches and of a stalled run to stop, and delivers messages to agents.
    pub(super) fn tell(&mut self, records: &[Record]) {
        self.watch.iter_mut().for_each(|watch| watch.note(records));
        for record in records {
            let channel = |branch| self.channels.get(branch);
            match &record.event {
                Event::BranchCanceled(canceled) => {
                    channel(&canceled.branch).into_iter().for_each(|channel| channel.stop.notify_one());
                }
                Event::StageSteered(steered) => {
                    let channel = channel(&steered.attempt.task.branch);
                    channel.into_iter().for_each(|channel| channel.steering.push((&**steered).into()));
                }
                Event::RunStalled(_) => self.all(),
                _ => {}
            }
        }
    }

    /// Asks the attempts that are not needed in this state to stop: all attempts of a run that ends, and those of canceled
    /// branches.
    pub(super) fn stop_unneeded(&self, state: &RunState) {
        for (id, channel) in &self.channels {
            if state.is_ending() || state.branch(id).canceled.is_some() {
                channel.stop.notify_one();
            }
        }
    }

    /// Asks every attempt to stop.
    pub(super) fn all(&self) {
        self.channels.values().for_each(|channel| channel.stop.notify_one());
    }
}
