//! The stall watchdog of a run: looks at its attempts at intervals, and ends the run if none of them makes progress.
//!
//! It wakes the loop only while an attempt is in progress. The rules are in [`glovebox_state::stall`].

use super::commit::Batch;
use super::stops::Stops;
use super::{Driver, Follow, RunError};
use glovebox_journal::event::{Event, Record, RunStalled, SilentBranch};
use glovebox_journal::ports::{ClaimQueue, RunLog, Signals};
use glovebox_record::liveness::StallBounds;
use glovebox_state::stall::{ObservedAttempt, StallClock, watched};
use std::time::Duration;
use tokio::time::Instant;

/// The watchdog of a run.
pub(super) struct StallWatch {
    bounds: StallBounds,
    clock: StallClock,
    looked_at: Instant,
    /// Number of attempts and branches that have begun or ended.
    events: u64,
}

impl StallWatch {
    /// Creates the watchdog of a run that is driven from now on.
    pub(super) fn new(bounds: StallBounds) -> Self {
        Self { bounds, clock: StallClock::new(bounds), looked_at: Instant::now(), events: 0 }
    }

    /// Counts the attempts and branches that begin or end with these records. Other records are no sign of life: an
    /// observation of a supervisor, for example, says nothing about its child.
    pub(super) fn note(&mut self, records: &[Record]) {
        let is_sign = |record: &&Record| {
            let event = &record.event;
            matches!(event, Event::StageStarted(_) | Event::StageFinished(_) | Event::StageHeld(_))
                || matches!(event, Event::BranchStarted(_) | Event::BranchFinished(_))
        };
        self.events += records.iter().filter(is_sign).count() as u64;
    }

    /// Returns the time of the next look.
    pub(super) fn due(&self) -> Instant {
        self.looked_at + self.bounds.interval
    }

    /// Looks at the attempts if it is time. Returns true if the run is stalled.
    fn look(&mut self, attempts: impl FnOnce() -> Vec<ObservedAttempt>) -> bool {
        let now = Instant::now();
        if now < self.due() {
            return false;
        }
        let elapsed = now - std::mem::replace(&mut self.looked_at, now);
        self.clock.look(elapsed, self.events, &attempts())
    }
}

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Records that the run is stalled, if it is. Its attempts are then asked to stop.
    pub(super) async fn stall_one(&mut self, stops: &mut Stops) -> Result<Option<Vec<Record>>, RunError> {
        let Some(mut watch) = stops.watch.take() else { return Ok(None) };
        let observed = || {
            let attempts = watched(&self.replay.state);
            attempts.filter_map(|(branch, _, id)| stops.observed(branch, id)).collect::<Vec<_>>()
        };
        let is_stalled = watch.look(observed);
        let stalled = is_stalled.then(|| self.stalled(&watch));
        stops.watch = Some(watch);
        let Some(stalled) = stalled else { return Ok(None) };
        let events = [Event::RunStalled(Box::new(stalled))];
        let committed = self.append(|state| (!state.is_ending()).then(|| Batch::of_run(state, &events)));
        Ok(Some(committed.await?.records))
    }

    fn stalled(&self, watch: &StallWatch) -> RunStalled {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let silent = watched(&self.replay.state).map(|(branch, open, id)| SilentBranch {
            branch: branch.clone(),
            node: open.task.node.clone(),
            attempt_id: id.clone(),
            silent_ms: milliseconds(watch.clock.silent(id)),
        });
        RunStalled {
            timeout_ms: milliseconds(watch.bounds.timeout),
            idle_ms: milliseconds(watch.clock.idle()),
            silent: silent.collect(),
        }
    }
}
