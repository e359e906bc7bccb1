//! Cleans up after a dead jail: its helper, its mounts, its control group.
//!
//! The kernel needs a long time to remove a jail's file systems, and a command must not wait for that. All processes of
//! the jail are already dead. One thread cleans up one jail after the other, and [`wait_for_cleanup`] waits for it.
//! Failures are logged.

use super::cgroup::Cgroup;
use super::origin::Origin;
use super::template;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Maximum number of jails in the queue. If the queue is full, the caller cleans up the jail itself.
const WAITING_MAX: usize = 16;

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
    /// Keeps the mount of the workspace.
    pub(super) merged: Option<OwnedFd>,
    /// Can be removed after the helper has ended.
    pub(super) cgroup: Option<Cgroup>,
}

impl JailCleanup {
    /// Waits for the helper and releases everything.
    pub(super) fn run(self) -> io::Result<()> {
        self.origin.clean_up()?;
        drop((self.merged, self.cgroup));
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

/// Ends the templates and waits until all jails that have ended are cleaned up. All jails must have ended. If a program
/// exits without this call, it leaves empty control groups, which the next Glovebox process removes.
pub fn wait_for_cleanup() {
    template::end_all();
    let sender = REAPER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (done, all_done) = sync_channel(1);
    if sender.is_some_and(|reaper| reaper.send(Task::Notify(done)).is_ok()) {
        // The closed channel reports that the earlier tasks are done.
        let _ = all_done.recv();
    }
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
    fn nothing_is_left_after_the_cleanup() {
        for program in ["true", "sleep"] {
            let child = std::process::Command::new(program).arg("0.1").spawn().unwrap();
            let process = format!("/proc/{}", child.id());
            let cgroup = Cgroup::make(&glovebox_record::Limits::default()).ok();
            let files = cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
            assert!(files.iter().all(|file| file.exists()));
            reap_later(JailCleanup { origin: Origin::Program(child), merged: None, cgroup });
            wait_for_cleanup();
            assert!(!Path::new(&process).exists(), "{program} is not reaped");
            assert!(files.iter().all(|file| !file.exists()), "{files:?}");
        }
    }
}
