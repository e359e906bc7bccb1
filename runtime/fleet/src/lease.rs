//! The lease of a fleet: how long a machine or a driver may be silent before another one does its work.
//!
//! The operator chooses it once, and it is part of the signed settings, so all machines of a fleet agree. All other times that
//! depend on it are parts of it, and are here only. A lease saves work and decides nothing.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum time between two signs of life of an attempt.
const BEAT_MAX: Duration = Duration::from_secs(1);

/// The lease of a fleet: 3 seconds to 5 minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Lease(Duration);

/// A time that cannot be a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 3 seconds to 5 minutes")]
pub struct NoLease;

impl Lease {
    /// The shortest lease. Servers can take longer than this to elect a leader, so work may be done twice after each election.
    pub const MIN: Duration = Duration::from_secs(3);
    /// The longest lease.
    pub const MAX: Duration = Duration::from_secs(300);

    /// Returns the lease with this duration.
    ///
    /// # Errors
    /// It is shorter than 3 seconds or longer than 5 minutes.
    pub fn new(duration: Duration) -> Result<Self, NoLease> {
        (Self::MIN..=Self::MAX).contains(&duration).then_some(Self(duration)).ok_or(NoLease)
    }

    /// Returns the time without a sign of life after which a driver or an attempt counts as lost.
    pub fn duration(self) -> Duration {
        self.0
    }

    /// Returns the time without an answer after which a machine ends its attempt, and a driver drives no more. It is two thirds
    /// of the lease, so that they end before another one begins.
    pub(crate) fn silence_max(self) -> Duration {
        self.0 * 2 / 3
    }

    /// Returns the time between two extensions, which is also how long a question to a driver waits for its answer: a third.
    pub(crate) fn third(self) -> Duration {
        self.0 / 3
    }

    /// Returns the time between two signs of life of an attempt, and between two looks for them: at most a sixth and a second.
    pub(crate) fn beat(self) -> Duration {
        (self.0 / 6).min(BEAT_MAX)
    }
}

impl Default for Lease {
    /// Returns a lease of 30 seconds.
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl TryFrom<u64> for Lease {
    type Error = NoLease;

    fn try_from(milliseconds: u64) -> Result<Self, NoLease> {
        Self::new(Duration::from_millis(milliseconds))
    }
}

impl From<Lease> for u64 {
    fn from(lease: Lease) -> Self {
        Self::try_from(lease.0.as_millis()).unwrap_or(Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_bounds_and_its_parts_follow_it() {
        for (milliseconds, is_lease) in
            [(0, false), (2999, false), (3000, true), (30_000, true), (300_000, true), (300_001, false)]
        {
            assert_eq!(Lease::try_from(milliseconds).is_ok(), is_lease, "{milliseconds}");
        }
        let parts = |milliseconds: u64| {
            let lease = Lease::try_from(milliseconds).unwrap();
            [lease.duration(), lease.silence_max(), lease.third(), lease.beat()].map(|part| part.as_millis())
        };
        assert_eq!(parts(3000), [3000, 2000, 1000, 500]);
        assert_eq!(parts(30_000), [30_000, 20_000, 10_000, 1000]);
        assert_eq!(serde_json::to_string(&Lease::default()).unwrap(), "30000");
        assert!(serde_json::from_str::<Lease>("2000").is_err());
    }
}
