//! Memory limits for all requests of one gateway together.
//!
//! A body reserves its bytes before it is read, in the order in which requests arrive, so that small requests cannot
//! delay a large one forever. A body waits at most [`WAIT_MAX`] for memory. The values of its JSON use a second pool,
//! for which no request waits. Therefore no request waits while it holds a reservation, and requests cannot deadlock.
//! This module knows neither HTTP nor JSON.

use glovebox_schema::document::PORTION;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum total size of all bodies, in bytes: twice the maximum size of one.
pub const BODIES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of JSON units of all requests: twice the maximum of one document.
const UNITS_MAX: usize = 2 * glovebox_schema::document::UNITS_MAX;
/// Maximum wait for memory.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The memory pools of one gateway.
#[derive(Debug, Default)]
pub struct InFlight {
    used: Mutex<PoolUsage>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct PoolUsage {
    bytes: usize,
    units: usize,
    next_ticket: u64,
    waiting: VecDeque<u64>,
    is_closed: bool,
}

/// The memory that one request has reserved. Dropping it releases the memory.
#[derive(Debug)]
pub struct Reservation<'a> {
    pools: &'a InFlight,
    bytes: usize,
    units: usize,
}

impl InFlight {
    /// Waits for memory for a body of `bytes`. Returns `None` if it is not available in time or the gateway closes.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Reservation<'_>> {
        self.reserve_until(bytes, Instant::now() + WAIT_MAX)
    }

    fn reserve_until(&self, bytes: usize, until: Instant) -> Option<Reservation<'_>> {
        let mut used = self.used();
        let ticket = used.next_ticket;
        used.next_ticket += 1;
        used.waiting.push_back(ticket);
        loop {
            let is_first = used.waiting.front() == Some(&ticket);
            let fits = is_first && used.bytes.saturating_add(bytes) <= BODIES_BYTES_MAX;
            let left = until.saturating_duration_since(Instant::now());
            if fits || used.is_closed || left.is_zero() {
                used.waiting.retain(|other| *other != ticket);
                self.freed.notify_all();
                let is_taken = fits && !used.is_closed;
                used.bytes += if is_taken { bytes } else { 0 };
                return is_taken.then(|| Reservation { pools: self, bytes, units: 0 });
            }
            used = self.freed.wait_timeout(used, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends every wait, because the gateway closes.
    pub fn close(&self) {
        self.used().is_closed = true;
        self.freed.notify_all();
    }

    fn used(&self) -> MutexGuard<'_, PoolUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// Releases the bytes that a body did not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        self.pools.used().bytes -= freed;
        self.pools.freed.notify_all();
    }

    /// Takes a portion of units. Returns false if none is available.
    pub(super) fn take_portion(&mut self) -> bool {
        let mut used = self.pools.used();
        let is_free = used.units + PORTION <= UNITS_MAX;
        if is_free {
            used.units += PORTION;
            self.units += PORTION;
        }
        is_free
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut used = self.pools.used();
        used.bytes -= self.bytes;
        used.units -= self.units;
        drop(used);
        self.pools.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn bodies_wait_in_the_order_in_which_they_came() {
        let pools = InFlight::default();
        let first = pools.reserve(BODIES_BYTES_MAX - 10).unwrap();
        assert!(pools.reserve_until(11, Instant::now() + SHORT).is_none(), "more than there is");
        let (send, order) = channel();
        std::thread::scope(|scope| {
            for (index, bytes) in [BODIES_BYTES_MAX, 5].into_iter().enumerate() {
                while pools.used().waiting.len() < index {
                    std::thread::yield_now();
                }
                let (pools, send) = (&pools, send.clone());
                scope.spawn(move || {
                    let room = pools.reserve(bytes);
                    send.send((index, room.is_some())).unwrap();
                });
            }
            while pools.used().waiting.len() < 2 {
                std::thread::yield_now();
            }
            // The small request would fit, but it must wait behind the large one.
            assert!(order.recv_timeout(SHORT).is_err());
            drop(first);
            assert_eq!([order.recv().unwrap(), order.recv().unwrap()], [(0, true), (1, true)]);
        });
        let used = pools.used();
        assert_eq!((used.bytes, used.units, used.waiting.len()), (0, 0, 0));
    }

    #[test]
    fn a_gateway_that_closes_lets_nobody_wait() {
        let pools = InFlight::default();
        let _all = pools.reserve(BODIES_BYTES_MAX).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pools.reserve(1).is_none());
            while pools.used().waiting.is_empty() {
                std::thread::yield_now();
            }
            pools.close();
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn who_gets_memory_or_needs_less_wakes_the_next() {
        let pools = InFlight::default();
        let mut first = pools.reserve(BODIES_BYTES_MAX).unwrap();
        let (send, taken) = channel();
        let end = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            for index in 0..2 {
                let (pools, send, end) = (&pools, send.clone(), &end);
                scope.spawn(move || {
                    let room = pools.reserve_until(10, Instant::now() + 100 * SHORT);
                    send.send(room.is_some()).unwrap();
                    end.wait();
                });
                while pools.used().waiting.len() <= index {
                    std::thread::yield_now();
                }
            }
            let begin = Instant::now();
            first.shrink_to(BODIES_BYTES_MAX - 20);
            assert_eq!([taken.recv().unwrap(), taken.recv().unwrap()], [true, true]);
            assert!(begin.elapsed() < 99 * SHORT, "nobody waits until the end of the time");
            end.wait();
        });
    }

    #[test]
    fn a_closed_gateway_has_no_memory() {
        let pools = InFlight::default();
        pools.close();
        assert!(pools.reserve(1).is_none());
        assert_eq!(pools.used().bytes, 0);
    }

    #[test]
    fn all_portions_are_taken_and_a_refused_one_takes_nothing() {
        let pools = InFlight::default();
        let mut room = pools.reserve(1).unwrap();
        let count = std::iter::from_fn(|| room.take_portion().then_some(())).count();
        assert_eq!((count, pools.used().units), (UNITS_MAX / PORTION, UNITS_MAX / PORTION * PORTION));
    }

    #[test]
    fn portions_come_back_with_the_request() {
        let pools = InFlight::default();
        let mut room = pools.reserve(100).unwrap();
        room.shrink_to(7);
        assert_eq!(pools.used().bytes, 7);
        while room.take_portion() {}
        assert!(!pools.reserve(1).unwrap().take_portion());
        drop(room);
        assert!(pools.reserve(1).unwrap().take_portion());
        assert_eq!(pools.used().units, 0);
    }
}
