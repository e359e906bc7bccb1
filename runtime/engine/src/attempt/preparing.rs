//! What is said while the files of a stage are made, if that takes longer than a moment.
//!
//! A hint of progress for people: it is in no record and may be lost.

use glovebox_host::call::{LogLine, Progress};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::AbortHandle;

/// The longest time without a word.
const QUIET_MAX: Duration = Duration::from_millis(700);

/// A line for people, unless this is dropped within a moment.
pub(super) struct Announcement(Option<AbortHandle>);

impl Announcement {
    /// Begins to wait. Outside of the executor nothing is said.
    pub(super) fn begin(progress: Sender<Progress>, what: &'static str) -> Self {
        let waiting = async move {
            tokio::time::sleep(QUIET_MAX).await;
            let line = LogLine { level: "info".to_owned(), message: what.to_owned(), fields: Vec::new() };
            // Progress is a hint by contract.
            drop(progress.try_send(Progress::Log(line)));
        };
        Self(Handle::try_current().ok().map(|executor| executor.spawn(waiting).abort_handle()))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_long_work_is_announced() {
        let (progress, mut told) = tokio::sync::mpsc::channel(4);
        drop(Announcement::begin(progress.clone(), "short"));
        let long = Announcement::begin(progress, "long");
        tokio::time::sleep(QUIET_MAX * 2).await;
        drop(long);
        let Some(Progress::Log(line)) = told.recv().await else { panic!("nothing was said") };
        assert_eq!((line.message.as_str(), told.recv().await), ("long", None));
    }
}
