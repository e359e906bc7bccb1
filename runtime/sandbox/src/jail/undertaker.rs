//! What is left of a jail that is dead: its helper, its mounts, its control group.
//!
//! To take a jail's file systems apart takes the kernel longer than all that its commands have to wait for, and nobody depends on it:
//! when a jail comes here, nothing in it is alive. So it is done by a thread of its own, one jail after the other; [`settle`] waits for
//! it. What cannot be got rid of is said in the log.

use super::cgroup::Cgroup;
use super::control::wait_readable;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time a helper whose jail is dead may take to be gone itself.
const REAP_MAX: Duration = Duration::from_secs(5);
/// Jails that wait; whoever brings one more does it by himself.
const WAITING_MAX: usize = 16;

static UNDERTAKER: Mutex<Option<SyncSender<Task>>> = Mutex::new(None);

enum Task {
    Bury(Remains),
    /// Dropped when everything before it is done.
    Tell(SyncSender<()>),
}

/// What is left of a jail.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) child: Child,
    /// Holds the workspace's mount.
    pub(super) merged: Option<OwnedFd>,
    /// Can be removed when the helper is gone.
    pub(super) cgroup: Option<Cgroup>,
}

impl Remains {
    /// Waits for the helper and gets rid of everything.
    pub(super) fn remove(mut self) -> io::Result<()> {
        if let Some(process) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && self.child.try_wait()?.is_none()
            // Not reaped yet, so the number is still its own.
            && !wait_readable(pidfd_open(process, PidfdFlags::empty())?, Instant::now() + REAP_MAX)?
        {
            // All its own are dead; it alone is stuck.
            self.child.kill()?;
        }
        self.child.wait()?;
        drop((self.merged, self.cgroup));
        Ok(())
    }

    fn remove_or_say(self) {
        if let Err(error) = self.remove() {
            tracing::error!(%error, "a jail helper did not end");
        }
    }
}

/// Gets rid of what is left, later.
pub(super) fn bury(remains: Remains) {
    let unable = match undertaker() {
        None => Task::Bury(remains),
        Some(undertaker) => match undertaker.try_send(Task::Bury(remains)) {
            Ok(()) => return,
            Err(TrySendError::Full(task) | TrySendError::Disconnected(task)) => task,
        },
    };
    if let Task::Bury(remains) = unable {
        remains.remove_or_say();
    }
}

/// Waits until nothing is left of the jails that have ended. A program that ends earlier leaves empty control groups behind, which
/// the next one removes.
pub fn settle() {
    let sender = UNDERTAKER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (done, all_done) = sync_channel(1);
    if sender.is_some_and(|undertaker| undertaker.send(Task::Tell(done)).is_ok()) {
        // Never told anything: the end of the channel is the message.
        let _ = all_done.recv();
    }
}

fn undertaker() -> Option<SyncSender<Task>> {
    let mut undertaker = UNDERTAKER.lock().unwrap_or_else(PoisonError::into_inner);
    if undertaker.is_none() {
        let (sender, tasks) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("jail-undertaker".to_owned());
        *undertaker = thread.spawn(move || serve(&tasks)).is_ok().then_some(sender);
    }
    undertaker.clone()
}

/// Ends never: the static above keeps a sender.
fn serve(tasks: &Receiver<Task>) {
    for task in tasks {
        match task {
            Task::Bury(remains) => remains.remove_or_say(),
            Task::Tell(done) => drop(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn nothing_is_left_when_it_has_settled() {
        for program in ["true", "sleep"] {
            let child = std::process::Command::new(program).arg("0.1").spawn().unwrap();
            let process = format!("/proc/{}", child.id());
            let cgroup = Cgroup::make(&crate::jail::Bounds::default()).ok();
            let files = cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
            assert!(files.iter().all(|file| file.exists()));
            bury(Remains { child, merged: None, cgroup });
            settle();
            assert!(!Path::new(&process).exists(), "{program} is not reaped");
            assert!(files.iter().all(|file| !file.exists()), "{files:?}");
        }
    }
}
