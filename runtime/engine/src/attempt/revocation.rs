//! Stops an attempt whose component is revoked while it runs.
//!
//! The host looks for revocations while the guest runs and while it waits. Work of the host for the guest, such as a command or a
//! request to a model, blocks the thread of the call, so the task that waits for the attempt looks too.

use super::{AttemptError, Workbench};
use crate::assignment::Assignment;
use glovebox_host::revocation::{INTERVAL, RevocationCheck};
use glovebox_plan::prepare::admission::RevocationWatch;
use std::future::Future;
use std::io::PipeWriter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time after which an attempt waits for changes of the lists instead of looking at intervals, because a process that waits for a
/// command should hardly wake.
const SHORT: Duration = Duration::from_secs(1);
/// Time between two looks at a longer attempt if the kernel cannot watch the lists, as on some network file systems.
const PAUSE: Duration = Duration::from_millis(500);

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
pub(super) async fn stop_if_revoked<T>(
    check: &RevocationCheck,
    lists: &RevocationWatch,
    stop: &AtomicBool,
    made: impl Future<Output = T>,
) -> T {
    tokio::pin!(made);
    let begin = Instant::now();
    while begin.elapsed() < SHORT {
        if let Ok(made) = tokio::time::timeout(INTERVAL, &mut made).await {
            return made;
        }
        if check.look().is_some() {
            glovebox_jail::jail::cancel(stop);
            return made.await;
        }
    }
    let mut changes = Changes::watch(lists);
    // A change before the watch began has no event.
    while check.look().is_none() {
        tokio::select! {
            made = &mut made => return made,
            () = Changes::next(&mut changes) => {}
        }
    }
    glovebox_jail::jail::cancel(stop);
    made.await
}

/// The changes of the lists. A thread waits for them, and ends when this is dropped.
struct Changes {
    next: watch::Receiver<()>,
    _end: PipeWriter,
}

impl Changes {
    /// Begins to wait. `None` if the kernel cannot watch the lists.
    fn watch(lists: &RevocationWatch) -> Option<Self> {
        let files = lists.changes().ok()?;
        let (ended, end) = std::io::pipe().ok()?;
        let (sender, next) = watch::channel(());
        let wait = move || {
            while matches!(files.wait(&ended), Ok(true)) && sender.send(()).is_ok() {}
        };
        std::thread::Builder::new().name("revocations".to_owned()).spawn(wait).ok()?;
        Some(Self { next, _end: end })
    }

    /// Waits until a list may have changed.
    async fn next(changes: &mut Option<Self>) {
        match changes {
            None => tokio::time::sleep(PAUSE).await,
            Some(watched) => {
                if watched.next.changed().await.is_err() {
                    *changes = None;
                }
            }
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
        let made = tokio::time::timeout(
            Duration::from_secs(20),
            stop_if_revoked(&check, &RevocationWatch::default(), &stop, made),
        )
        .await;
        assert_eq!((made.unwrap(), check.found()), (1, Some("it leaks")));
        assert_eq!(stop_if_revoked(&check, &RevocationWatch::default(), &AtomicBool::new(false), async { 2 }).await, 2);
    }
}
