//! A progress message while the files of a stage are prepared, if that takes longer than [`QUIET_MAX`].
//!
//! The message is only for people. It is not recorded and may be lost.

use glovebox_host::call::{CallObserver, LogLine, Progress};
use glovebox_journal::event::AttemptId;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time after which the message is sent.
const QUIET_MAX: Duration = Duration::from_millis(700);

/// The attempts whose files are being prepared, and the message about each.
#[derive(Default)]
pub struct Preparing(Mutex<BTreeMap<AttemptId, &'static str>>);

/// A guard: the files of an attempt count as being prepared until it is dropped.
pub(super) struct Underway<'p>(&'p Preparing, &'p AttemptId);

impl Preparing {
    pub(super) fn begin<'p>(&'p self, attempt: &'p AttemptId, what: &'static str) -> Underway<'p> {
        self.lock().insert(attempt.clone(), what);
        Underway(self, attempt)
    }

    /// Waits for an attempt that has just begun on a thread. Sends its message if the files are still being prepared after
    /// [`QUIET_MAX`]. Preparations that begin later are not announced. This wait needs no task of its own, so a short stage
    /// wakes no other thread.
    pub(super) async fn while_made<T>(
        &self,
        attempt: &AttemptId,
        observer: &CallObserver,
        made: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(made);
        if let Ok(made) = tokio::time::timeout(QUIET_MAX, &mut made).await {
            return made;
        }
        let what = self.lock().get(attempt).copied();
        if let Some(what) = what {
            let line = LogLine { level: "info".to_owned(), message: what.to_owned(), fields: Vec::new() };
            observer.report(Progress::Log(line));
        }
        made.await
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptId, &'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_host::call::AttemptProgress;
    use glovebox_jail::pulse::Pulse;

    #[tokio::test]
    async fn only_files_that_are_made_for_long_are_announced() {
        let (progress, mut told) = tokio::sync::mpsc::channel(4);
        let (preparing, attempt) = (Preparing::default(), AttemptId::from("a"));
        let observer = CallObserver::new(attempt.clone(), progress, Pulse::default());
        let long = tokio::time::sleep(QUIET_MAX * 2);
        let underway = preparing.begin(&attempt, "making");
        assert_eq!(preparing.while_made(&attempt, &observer, async { 1 }).await, 1);
        assert!(told.try_recv().is_err(), "the attempt was short");
        preparing.while_made(&attempt, &observer, long).await;
        let Ok(AttemptProgress { progress: Progress::Log(line), .. }) = told.try_recv() else {
            panic!("nothing was said")
        };
        assert_eq!(line.message, "making");
        drop(underway);
        preparing.while_made(&attempt, &observer, tokio::time::sleep(QUIET_MAX * 2)).await;
        assert!(told.try_recv().is_err(), "the files were there, and something else took long");
    }
}
