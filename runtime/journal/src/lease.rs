//! Leases on deliveries, with the time at which each one ends.
//!
//! All adapters that keep their leases in memory use this table. It reads no clock: callers pass the time, so that
//! tests can choose it.

use crate::ports::{Delivery, Next};
use jiff::Timestamp;
use std::collections::HashMap;

/// The leased deliveries, each with the end of its lease in milliseconds since the epoch.
#[derive(Default)]
pub struct LeaseTable(HashMap<Delivery, i64>);

impl LeaseTable {
    /// Leases and returns the first of the waiting deliveries that is due and not leased. Each of `waiting` has the
    /// time at which it is due, in milliseconds since the epoch. The lease ends `lease_ms` milliseconds after `now`.
    pub fn next(&mut self, waiting: impl IntoIterator<Item = (Delivery, i64)>, now: Timestamp, lease_ms: u64) -> Next {
        let now = now.as_millisecond();
        let mut earliest = None;
        for (delivery, due_at) in waiting {
            let at = self.0.get(&delivery).copied().unwrap_or(i64::MIN).max(due_at);
            if at <= now {
                self.0.insert(delivery.clone(), now.saturating_add_unsigned(lease_ms));
                return Next::Due(delivery);
            }
            earliest = Some(earliest.map_or(at, |other: i64| other.min(at)));
        }
        earliest.and_then(|at| Timestamp::from_millisecond(at).ok()).map_or(Next::Empty, Next::At)
    }

    /// Extends a lease to `lease_ms` milliseconds from `now`. Returns false if it had already ended.
    pub fn extend(&mut self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> bool {
        let now = now.as_millisecond();
        match self.0.get_mut(delivery) {
            Some(until) if *until > now => {
                *until = now.saturating_add_unsigned(lease_ms);
                true
            }
            _ => false,
        }
    }

    /// Leases a delivery that [`LeaseTable::next`] did not return, for `lease_ms` milliseconds from `now`.
    pub fn hold(&mut self, delivery: &Delivery, now: Timestamp, lease_ms: u64) {
        self.0.insert(delivery.clone(), now.as_millisecond().saturating_add_unsigned(lease_ms));
    }

    /// Removes the lease of a delivery.
    pub fn end(&mut self, delivery: &Delivery) {
        self.0.remove(delivery);
    }
}
