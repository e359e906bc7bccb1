//! Decides whether a run makes no progress any more (decision stalls-end-a-run).
//!
//! One clock watches the whole run. A sign of life of any watched branch resets it, and so does a wait that the host
//! knows. Watched are the branches with a running attempt that nobody has canceled. This needs no case for a join
//! policy: the decision that enough branches have ended cancels the others in the same append, and from then on their
//! signs of life count as little as their silence. A branch that waits for a person, for a retry or for a quota has no
//! running attempt, so it neither stalls the run nor keeps it alive.
//!
//! One look counts at most two intervals, so time in which the machine or the process was suspended is not silence.

use crate::run_state::{OpenTask, RunState};
use glovebox_journal::event::{AttemptId, BranchId};
use glovebox_record::WaitKind;
use glovebox_record::liveness::StallBounds;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum time that one look counts, in intervals. More time has passed only if the process did not run.
const LOOK_INTERVALS_MAX: u32 = 2;

/// What was observed of a running attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedAttempt {
    /// The id of the attempt.
    pub id: AttemptId,
    /// A number that changes with each sign of life.
    pub beats: u64,
    /// What the attempt waits for, if the host knows.
    pub waits_for: Option<WaitKind>,
}

/// The clock of a run's silence.
#[derive(Debug, Clone)]
pub struct StallClock {
    bounds: StallBounds,
    idle: Duration,
    events: u64,
    attempts: BTreeMap<AttemptId, SilentAttempt>,
}

/// The last sign of life of an attempt.
#[derive(Debug, Clone, Copy, Default)]
struct SilentAttempt {
    beats: u64,
    silent: Duration,
}

impl StallClock {
    /// Creates the clock of a run.
    pub fn new(bounds: StallBounds) -> Self {
        Self { bounds, idle: Duration::ZERO, events: 0, attempts: BTreeMap::new() }
    }

    /// Looks at the watched attempts, `elapsed` after the last look. `events` is the number of attempts and branches that
    /// have begun or ended. Returns true if the run is stalled. A limit of an attempt with the same time is reached one
    /// interval earlier, because a failure of a stage can be routed.
    pub fn look(&mut self, elapsed: Duration, events: u64, attempts: &[ObservedAttempt]) -> bool {
        let elapsed = elapsed.min(self.bounds.interval * LOOK_INTERVALS_MAX);
        let mut is_alive = attempts.is_empty() || events != self.events;
        self.events = events;
        let before = std::mem::take(&mut self.attempts);
        for ObservedAttempt { id, beats, waits_for } in attempts {
            let last = before.get(id).copied();
            let moves = waits_for.is_some() || last.is_none_or(|last| last.beats != *beats);
            is_alive |= moves;
            let silent = if moves { Duration::ZERO } else { last.unwrap_or_default().silent + elapsed };
            self.attempts.insert(id.clone(), SilentAttempt { beats: *beats, silent });
        }
        self.idle = if is_alive { Duration::ZERO } else { self.idle + elapsed };
        self.idle >= self.bounds.timeout + self.bounds.interval
    }

    /// Returns the time without a sign of life of any branch.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// Returns the time without a sign of life of an attempt.
    pub fn silent(&self, attempt: &AttemptId) -> Duration {
        self.attempts.get(attempt).map_or(Duration::ZERO, |attempt| attempt.silent)
    }
}

/// Returns the branches whose silence can stall a run, with their running attempts.
pub fn watched(state: &RunState) -> impl Iterator<Item = (&BranchId, &OpenTask, &AttemptId)> {
    let branches = state.branches.iter().filter(|(_, branch)| !state.is_ending() && branch.canceled.is_none());
    branches.filter_map(|(id, branch)| {
        let open = branch.open()?;
        Some((id, open, open.attempt_id.as_ref()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> StallClock {
        StallClock::new(StallBounds { timeout: 10 * SECOND, interval: SECOND })
    }

    fn attempt(id: &str, beats: u64) -> ObservedAttempt {
        ObservedAttempt { id: id.into(), beats, waits_for: None }
    }

    /// Returns the number of looks, one second apart, until the run is stalled.
    fn looks(mut look: impl FnMut(&mut StallClock, u64) -> bool) -> Option<u64> {
        let mut clock = clock();
        (0..100).find(|number| look(&mut clock, *number))
    }

    #[test]
    fn silence_of_all_attempts_stalls_a_run_within_the_tolerance() {
        let silent = looks(|clock, _| clock.look(SECOND, 1, &[attempt("a", 7), attempt("b", 7)]));
        assert_eq!(silent, Some(11), "the timeout and one interval after the first look");
        let late = looks(|clock, number| clock.look(SECOND, 1, &[attempt("a", number.min(20)), attempt("b", 7)]));
        assert_eq!(late, Some(31));
    }

    #[test]
    fn one_sign_of_life_keeps_a_run_alive() {
        assert_eq!(looks(|clock, number| clock.look(SECOND, 1, &[attempt("a", number / 9), attempt("b", 7)])), None);
        assert_eq!(looks(|clock, number| clock.look(SECOND, number / 9, &[attempt("a", 7)])), None, "events");
        let waits = ObservedAttempt { waits_for: Some(WaitKind::Model), ..attempt("a", 7) };
        assert_eq!(looks(|clock, _| clock.look(SECOND, 1, &[waits.clone(), attempt("b", 7)])), None, "a wait");
        assert_eq!(looks(|clock, _| clock.look(SECOND, 1, &[])), None, "nothing runs");
        let next = |number: u64| attempt(&format!("a{}", number / 9), 7);
        assert_eq!(looks(|clock, number| clock.look(SECOND, 1, &[next(number)])), None, "a new attempt");
    }

    #[test]
    fn time_in_which_nobody_looked_is_not_silence() {
        let mut clock = clock();
        for _ in 0..4 {
            assert!(!clock.look(3600 * SECOND, 1, &[attempt("a", 7)]));
        }
        assert_eq!(clock.idle(), 6 * SECOND, "two intervals for each look after the first");
        assert_eq!(clock.silent(&"a".into()), 6 * SECOND);
    }
}
