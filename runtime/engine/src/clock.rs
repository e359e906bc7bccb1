//! The clock of a run while one process drives it (decision time-of-a-run).
//!
//! The clock begins with the time of the machine and then counts the time that has passed, so a step of the machine's clock changes
//! neither a limit nor a wait. It never goes back: it begins no earlier than the last record of the run. Time in which the machine is
//! suspended counts, as it does for people.

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Maximum length of one sleep. Timers of tokio stop during a suspension, so the remaining time is computed again after each sleep.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Two clocks that differ by no more than this were not set.
const STEP_MIN: SignedDuration = SignedDuration::from_secs(1);

/// The clock of a driven run.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    /// The time of the run when the machine had been running for `origin`.
    base: Timestamp,
    origin: SignedDuration,
}

impl RunClock {
    /// Starts a clock with the time of the machine.
    pub fn start() -> Self {
        Self::start_at(Timestamp::now())
    }

    /// Starts a clock with this time.
    pub fn start_at(base: Timestamp) -> Self {
        Self { base, origin: uptime() }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.base.saturating_add(uptime() - self.origin).unwrap_or(self.base)
    }

    /// Advances the clock if it is behind this time, such as that of the last record.
    pub fn advance_to(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at.filter(|at| *at > self.now()) {
            *self = Self::start_at(at);
        }
    }

    /// Waits until this time, or forever without one.
    pub async fn wait_until(&self, due: Option<Timestamp>) {
        let Some(due) = due else { return std::future::pending().await };
        while let Some(left) = self.left(due) {
            tokio::time::sleep(left.min(WAIT_MAX)).await;
        }
    }

    /// Converts a time of the machine's clock, which may have been set since the run was started.
    pub fn converted(&self, at: Timestamp) -> Timestamp {
        let ahead = self.now().duration_since(Timestamp::now());
        if ahead.abs() > STEP_MIN { at.saturating_add(ahead).unwrap_or(at) } else { at }
    }

    /// Returns the time until `due`, or `None` if that has come.
    pub fn left(&self, due: Timestamp) -> Option<Duration> {
        Duration::try_from(due.duration_since(self.now())).ok().filter(|left| !left.is_zero())
    }
}

/// Returns true if the clock of the machine is behind the last record of a run by more than [`STEP_MIN`].
pub(crate) fn is_behind(last: Timestamp) -> bool {
    last.duration_since(Timestamp::now()) > STEP_MIN
}

/// Returns how long the machine has been running, including the time in which it was suspended. No setting of the clock changes this.
fn uptime() -> SignedDuration {
    let time = clock_gettime(ClockId::Boottime);
    SignedDuration::new(time.tv_sec, i32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_a_clock_that_was_set_is_as_far_away_as_before() {
        let hour = SignedDuration::from_hours(1);
        let soon = Timestamp::now().checked_add(hour).unwrap();
        assert_eq!(RunClock::start().converted(soon), soon);
        for set in [hour, -hour] {
            let clock = RunClock::start_at(Timestamp::now().checked_add(set).unwrap());
            let left = clock.converted(soon).duration_since(clock.now());
            assert!((hour - left).abs() < SignedDuration::from_mins(1), "{left}");
        }
    }

    #[test]
    fn it_counts_from_its_beginning_and_never_goes_back() {
        let day = SignedDuration::from_hours(24);
        let begin = Timestamp::now().checked_sub(day).unwrap();
        let mut clock = RunClock::start_at(begin);
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(20));
        let passed = clock.now().duration_since(first);
        assert!(first >= begin && passed >= SignedDuration::from_millis(20) && passed < SignedDuration::from_hours(1));
        clock.advance_to(Some(begin));
        clock.advance_to(None);
        assert!(clock.now() < begin.checked_add(day / 2).unwrap(), "an earlier record changes nothing");
        let last = begin.checked_add(day * 2).unwrap();
        clock.advance_to(Some(last));
        assert!(clock.now() >= last && clock.now() < last.checked_add(day / 2).unwrap());
        assert_eq!(clock.left(last), None);
        assert!(clock.left(last.checked_add(day).unwrap()).unwrap() > Duration::from_secs(3600));
    }
}
