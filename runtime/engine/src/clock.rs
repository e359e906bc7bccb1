//! The clock of a run: the wall clock when the driver was created, advanced by the clock of the kernel since boot.
//!
//! Records, deadlines and leases take their times from it. A wall clock that is set while the run is driven changes no
//! duration and no deadline. Time in which the machine was suspended counts. The clock is never behind the last record
//! of the run, even if the wall clock was set back while no process drove the run.

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// A smaller difference between two clocks is no sign that one of them was set.
const STEP_MIN: SignedDuration = SignedDuration::from_secs(1);

/// A clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    begin: Timestamp,
    since: SignedDuration,
}

impl RunClock {
    /// Starts a clock with the present time of the wall clock.
    pub fn start() -> Self {
        Self { begin: Timestamp::now(), since: since_boot() }
    }

    /// Returns the present time.
    pub fn now(&self) -> Timestamp {
        self.begin.checked_add(since_boot() - self.since).unwrap_or(Timestamp::MAX)
    }

    /// Advances the clock to this time, if it is later than the present time.
    pub(crate) fn advance_to(&mut self, at: Timestamp) {
        if at > self.now() {
            *self = Self { begin: at, since: since_boot() };
        }
    }
}

/// Returns true if the wall clock is behind the last record of a run by more than [`STEP_MIN`].
pub(crate) fn is_behind(last: Timestamp) -> bool {
    last.duration_since(Timestamp::now()) > STEP_MIN
}

fn since_boot() -> SignedDuration {
    let now = clock_gettime(ClockId::Boottime);
    SignedDuration::new(now.tv_sec, i32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_goes_on_from_the_last_record_even_if_that_is_later_than_the_wall_clock() {
        let mut clock = RunClock::start();
        let tomorrow = clock.now().checked_add(SignedDuration::from_hours(24)).unwrap();
        clock.advance_to(tomorrow);
        let first = clock.now();
        assert!(first >= tomorrow, "{first}");
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(clock.now().duration_since(first) >= SignedDuration::from_millis(5), "its time goes on");
        clock.advance_to(Timestamp::now());
        assert!(clock.now() > first, "it does not go back");
    }
}
