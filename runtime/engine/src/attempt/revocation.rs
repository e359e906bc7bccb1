//! Stops an attempt whose component is revoked while it runs.
//!
//! The host looks for revocations while the guest runs and while it waits. Work of the host for the guest, such as a command or a
//! request to a model, blocks the thread of the call, so the task that waits for the attempt looks too.

use super::{AttemptError, Workbench};
use crate::assignment::Assignment;
use glovebox_host::revocation::{INTERVAL, RevocationCheck};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time after which an attempt is looked at less often, because a process that waits for a command should hardly wake.
const SHORT: Duration = Duration::from_secs(1);
/// Time between two looks at a longer attempt. The host looks more often while the guest runs.
const PAUSE: Duration = Duration::from_millis(800);

impl<B> Workbench<B> {
    /// Returns the check of the component that an attempt calls.
    pub(super) fn revocation_check(&self, assignment: &Assignment) -> Result<RevocationCheck, AttemptError> {
        let stage = assignment.stage();
        let binding = self.plan.binding(&stage).ok_or_else(|| AttemptError::unbound(&stage))?;
        let (watch, name, digest) = (Arc::clone(&self.revocations), binding.handler.clone(), binding.digest);
        Ok(RevocationCheck::new(move || watch.find(&name, &digest).map(|refused| refused.to_string())))
    }
}

/// Waits for an attempt. If its component is revoked, asks the attempt to stop. This wait needs no task of its own, and an attempt
/// that is shorter than [`INTERVAL`] is not looked at.
pub(super) async fn stop_if_revoked<T>(check: &RevocationCheck, stop: &AtomicBool, made: impl Future<Output = T>) -> T {
    tokio::pin!(made);
    let begin = Instant::now();
    loop {
        let pause = if begin.elapsed() < SHORT { INTERVAL } else { PAUSE };
        if let Ok(made) = tokio::time::timeout(pause, &mut made).await {
            return made;
        }
        if check.look_if_due().is_some() {
            glovebox_jail::jail::cancel(stop);
            return made.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[tokio::test]
    async fn an_attempt_is_asked_to_stop_once_its_component_is_revoked() {
        let stop = Arc::new(AtomicBool::new(false));
        let revoked = Arc::new(AtomicBool::new(false));
        let is_revoked = Arc::clone(&revoked);
        let check = RevocationCheck::new(move || is_revoked.load(Ordering::Relaxed).then(|| "it leaks".to_owned()));
        let (asked, later) = (Arc::clone(&stop), Arc::clone(&revoked));
        let made = async move {
            tokio::time::sleep(INTERVAL * 3).await;
            assert!(!asked.load(Ordering::Relaxed));
            later.store(true, Ordering::Relaxed);
            while !asked.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            1
        };
        let made = tokio::time::timeout(Duration::from_secs(20), stop_if_revoked(&check, &stop, made)).await;
        assert_eq!((made.unwrap(), check.found()), (1, Some("it leaks")));
        assert_eq!(stop_if_revoked(&check, &AtomicBool::new(false), async { 2 }).await, 2);
    }
}
