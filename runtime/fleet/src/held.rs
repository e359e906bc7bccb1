//! The lease of a run that this process drives, which is extended until it is dropped.
//!
//! The extensions are a task of their own: a driver that prepares a run, or is busy otherwise, keeps its lease. A lease that was
//! lost stays lost, even if a server confirms a late extension: the server does not tell whose delivery was extended. A process
//! that was stopped for a while notices it by its clock. What it believes of the run may be old then, so it must not answer
//! machines, and it must not end the pointer, which another process may have.

use crate::consumer::Leased;
use crate::jetstream::JetStream;
use crate::lease::Lease;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Number of extensions that are tried in the time of one.
const TRIES: u32 = 4;

/// A lease that this process keeps.
pub struct HeldLease {
    state: Arc<LeaseState>,
    extending: AbortHandle,
}

/// What is known about a lease.
pub(crate) struct LeaseState {
    pub(crate) leased: Leased,
    lease: Lease,
    /// When the last extension was sent that was confirmed in time. `None` once the lease was lost.
    sure: Mutex<Option<Instant>>,
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.extending.abort();
    }
}

impl HeldLease {
    /// Extends a lease from now on.
    pub(crate) fn begin(jetstream: JetStream, leased: Leased, lease: Lease) -> Self {
        let sure = Mutex::new(Some(leased.since));
        let state = Arc::new(LeaseState { leased, lease, sure });
        let extended = Arc::clone(&state);
        let extending = tokio::spawn(async move { extended.extend(&jetstream).await });
        Self { state, extending: extending.abort_handle() }
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.state
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        while self.state.is_held() {
            sleep(self.state.lease.beat()).await;
        }
    }
}

impl LeaseState {
    /// Returns true if no other process can have the lease.
    pub(crate) fn is_held(&self) -> bool {
        let mut sure = self.sure.lock().unwrap_or_else(PoisonError::into_inner);
        *sure = sure.filter(|since| since.elapsed() < self.lease.silence_max());
        sure.is_some()
    }

    /// Notes an extension that was sent at this time and confirmed now.
    fn confirm(&self, sent: Instant) {
        if self.is_held() {
            *self.sure.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
        }
    }

    async fn extend(&self, jetstream: &JetStream) {
        let third = self.lease.third();
        while self.is_held() {
            let sent = Instant::now();
            match timeout(third, jetstream.extend(&self.leased)).await {
                Ok(Ok(())) => {
                    self.confirm(sent);
                    sleep(third).await;
                }
                _ => sleep(third / TRIES).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_lease_that_was_lost_stays_lost() {
        let lease = Lease::new(Lease::MIN).unwrap();
        let ago = |time: Duration| Instant::now().checked_sub(time).unwrap();
        let state = |since| LeaseState { leased: Leased::for_test(since), lease, sure: Mutex::new(Some(since)) };
        let fresh = state(ago(Duration::from_millis(1500)));
        assert!(fresh.is_held());
        fresh.confirm(Instant::now());
        assert!(fresh.is_held());
        let stopped = state(ago(lease.silence_max()));
        // The process was stopped for too long, and the server confirms an extension afterwards.
        stopped.confirm(Instant::now());
        assert!(!stopped.is_held());
    }
}
