//! Cleans up after a dead jail: its helper, its mounts, its control group.
//!
//! The kernel needs a long time to remove a jail's file systems, and a command must not wait for that. All processes of
//! the jail are already dead. One thread cleans up one jail after the other, and [`wait_for_cleanup`] waits for it.
//! Failures are logged.

use super::cgroup::Cgroup;
use super::origin::Origin;
use super::stores::Stores;
use super::template;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of jails in the queue. If the queue is full, the caller cleans up the jail itself.
const WAITING_MAX: usize = 16;
/// Maximum time for which a program waits for the cleanup before it exits.
const CLEANUP_MAX: Duration = Duration::from_secs(60);
/// Time between two tries to add a task to a full queue.
const PAUSE: Duration = Duration::from_millis(10);

static REAPER: Mutex<Option<SyncSender<Task>>> = Mutex::new(None);

enum Task {
    Reap(JailCleanup),
    /// Contains a sender that is dropped after every earlier task is done.
    Notify(SyncSender<()>),
}

/// The resources of a dead jail.
#[derive(Debug)]
pub(super) struct JailCleanup {
    /// The helper, or the mount namespace of the first process.
    pub(super) origin: Origin,
    /// Keep mounts of the jail. The kernel removes a mount when its last descriptor is closed.
    pub(super) stores: Option<Stores>,
    /// Keeps the mount of the workspace.
    pub(super) merged: Option<OwnedFd>,
    /// Can be removed after the helper has ended.
    pub(super) cgroup: Option<Cgroup>,
}

impl JailCleanup {
    /// Waits for the helper and releases everything.
    pub(super) fn run(self) -> io::Result<()> {
        self.origin.clean_up()?;
        drop((self.stores, self.merged, self.cgroup));
        Ok(())
    }

    fn run_or_log(self) {
        if let Err(error) = self.run() {
            tracing::error!(%error, "a jail helper did not end");
        }
    }
}

/// Cleans up later, on the reaper's thread.
pub(super) fn reap_later(cleanup: JailCleanup) {
    let unable = match reaper() {
        None => Task::Reap(cleanup),
        Some(reaper) => match reaper.try_send(Task::Reap(cleanup)) {
            Ok(()) => return,
            Err(TrySendError::Full(task) | TrySendError::Disconnected(task)) => task,
        },
    };
    if let Task::Reap(cleanup) = unable {
        cleanup.run_or_log();
    }
}

/// Ends the templates and waits until all jails that have ended are cleaned up, but at most for a minute. All jails
/// must have ended. What is left are empty control groups, which the next Glovebox process removes.
pub fn wait_for_cleanup() {
    template::end_all();
    let sender = REAPER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if sender.is_some_and(|reaper| !is_done_within(&reaper, CLEANUP_MAX)) {
        tracing::warn!("the kernel has not removed the mounts of earlier commands yet");
    }
}

/// Waits until the reaper has done all earlier tasks. Returns false if that takes longer.
fn is_done_within(reaper: &SyncSender<Task>, max: Duration) -> bool {
    let (until, (done, all_done)) = (Instant::now() + max, sync_channel(1));
    let mut task = Task::Notify(done);
    while let Err(TrySendError::Full(again)) = reaper.try_send(task) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(PAUSE);
        task = again;
    }
    // The closed channel reports that the earlier tasks are done.
    all_done.recv_timeout(until.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Disconnected)
}

fn reaper() -> Option<SyncSender<Task>> {
    let mut reaper = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
    if reaper.is_none() {
        let (sender, tasks) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("jail-reaper".to_owned());
        *reaper = thread.spawn(move || serve(&tasks)).is_ok().then_some(sender);
    }
    reaper.clone()
}

/// Runs until the program ends, because the static `REAPER` keeps a sender.
fn serve(tasks: &Receiver<Task>) {
    for task in tasks {
        match task {
            Task::Reap(cleanup) => cleanup.run_or_log(),
            Task::Notify(done) => drop(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_reaper_that_hangs_delays_the_exit_for_a_limited_time() {
        let (reaper, tasks) = sync_channel(1);
        let short = Duration::from_millis(50);
        assert!(!is_done_within(&reaper, short), "its task waits");
        assert!(!is_done_within(&reaper, short), "its queue is full");
        std::thread::spawn(move || serve(&tasks));
        assert!(is_done_within(&reaper, Duration::from_secs(20)));
    }

    #[test]
    fn nothing_is_left_after_the_cleanup() {
        for program in ["true", "sleep"] {
            let child = std::process::Command::new(program).arg("0.1").spawn().unwrap();
            let process = format!("/proc/{}", child.id());
            let cgroup = Cgroup::make(&glovebox_record::Limits::default()).ok();
            let files = cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
            assert!(files.iter().all(|file| file.exists()));
            reap_later(JailCleanup { origin: Origin::Program(child), stores: None, merged: None, cgroup });
            wait_for_cleanup();
            assert!(!Path::new(&process).exists(), "{program} is not reaped");
            assert!(files.iter().all(|file| !file.exists()), "{files:?}");
        }
    }
}
