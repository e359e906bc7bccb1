//! One thread starts all helpers and never ends.
//!
//! The kernel's parent-death signal is bound to the thread that started a process, not to its program: a helper started from
//! a worker would die with that worker. Helpers are started with `posix_spawn` (no code of ours between fork and exec, no
//! user change), so that starting one costs the same however much memory this program holds.

use super::binary;
use rustix::fd::AsRawFd;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Helpers that wait for being started.
const WAITING_MAX: usize = 16;

static SPAWNER: Mutex<Option<SyncSender<StartRequest>>> = Mutex::new(None);

struct StartRequest {
    control: OwnedFd,
    answer: SyncSender<io::Result<Child>>,
}

/// A helper on its way. Dropped instead of waited for, it is killed.
pub(super) struct PendingStart {
    answered: Receiver<io::Result<Child>>,
}

/// Begins to start a helper whose standard input is `control`, with nothing else of ours: no arguments, no environment, no descriptor.
pub(super) fn spawn(control: OwnedFd) -> io::Result<PendingStart> {
    let (answer, answered) = sync_channel(1);
    spawner()?.send(StartRequest { control, answer }).map_err(|_| gone())?;
    Ok(PendingStart { answered })
}

impl PendingStart {
    /// Waits until it is started.
    pub(super) fn wait(self) -> io::Result<Child> {
        self.answered.recv().map_err(|_| gone())?
    }
}

impl Drop for PendingStart {
    fn drop(&mut self) {
        // After waiting for the child no more messages can come.
        if let Ok(Ok(mut child)) = self.answered.recv() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts helpers is gone")
}

fn spawner() -> io::Result<SyncSender<StartRequest>> {
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = match &*spawner {
        Some(sender) => sender,
        None => {
            let (sender, requests) = sync_channel(WAITING_MAX);
            std::thread::Builder::new().name("jail-spawner".to_owned()).spawn(move || serve(&requests))?;
            spawner.insert(sender)
        }
    };
    Ok(sender.clone())
}

/// Never ends: the static above keeps a sender.
fn serve(requests: &Receiver<StartRequest>) {
    for StartRequest { control, answer } in requests {
        if let Err(unheard) = answer.send(start(control))
            && let Ok(mut child) = unheard.0
        {
            // The caller no longer waits for it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(control: OwnedFd) -> io::Result<Child> {
    let program = binary::program()?;
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.arg0("glovebox-jail").env_clear();
    command.stdin(control).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
