//! Who holds which delivery, and until when.
//!
//! Every adapter that keeps its leases in memory shares this table. It reads no clock: callers say what time it is, so a test can.

use crate::ports::{Delivery, Next};
use jiff::Timestamp;
use std::collections::HashMap;

/// Deliveries that are out, and until when (milliseconds since the epoch).
#[derive(Default)]
pub(crate) struct LeaseTable(HashMap<Delivery, i64>);

impl LeaseTable {
    /// Hands out the first of the waiting deliveries that is due and not held. Each comes with the moment it is due, milliseconds since
    /// the epoch.
    pub(crate) fn next(
        &mut self,
        waiting: impl IntoIterator<Item = (Delivery, i64)>,
        now: Timestamp,
        lease_ms: u64,
    ) -> Next {
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

    /// Holds a delivery longer. False when its lease had ended already.
    pub(crate) fn extend(&mut self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> bool {
        let now = now.as_millisecond();
        match self.0.get_mut(delivery) {
            Some(until) if *until > now => {
                *until = now.saturating_add_unsigned(lease_ms);
                true
            }
            _ => false,
        }
    }

    /// Holds a delivery that was not handed out.
    pub(crate) fn hold(&mut self, delivery: &Delivery, now: Timestamp, lease_ms: u64) {
        self.0.insert(delivery.clone(), now.as_millisecond().saturating_add_unsigned(lease_ms));
    }

    /// Forgets a delivery.
    pub(crate) fn end(&mut self, delivery: &Delivery) {
        self.0.remove(delivery);
    }
}
