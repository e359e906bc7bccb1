//! A thread that starts all helpers and runs until the program ends.
//!
//! The kernel's parent-death signal is bound to the thread that started a process, not to the program: a helper started
//! from a worker thread would die with that thread. Helpers are started with `posix_spawn` (no Rust code between fork
//! and exec, no change of user), so the cost of a start does not depend on the memory of Glovebox.

use super::binary;
use rustix::fd::AsRawFd;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Maximum number of start requests in the queue.
const WAITING_MAX: usize = 16;

static SPAWNER: Mutex<Option<SyncSender<StartRequest>>> = Mutex::new(None);

struct StartRequest {
    control: OwnedFd,
    answer: SyncSender<io::Result<Child>>,
}

/// A helper that is being started. If this is dropped instead of waited for, the helper is killed.
pub(super) struct PendingStart {
    answered: Receiver<io::Result<Child>>,
}

/// Begins to start a helper whose standard input is `control`. It gets no arguments, no environment and no other
/// descriptor.
pub(super) fn spawn(control: OwnedFd) -> io::Result<PendingStart> {
    let (answer, answered) = sync_channel(1);
    spawner()?.send(StartRequest { control, answer }).map_err(|_| gone())?;
    Ok(PendingStart { answered })
}

impl PendingStart {
    /// Waits until the helper is started.
    pub(super) fn wait(self) -> io::Result<Child> {
        self.answered.recv().map_err(|_| gone())?
    }
}

impl Drop for PendingStart {
    fn drop(&mut self) {
        // After this, the caller cannot wait for the helper any more.
        if let Ok(Ok(mut child)) = self.answered.recv() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts jail helpers has ended")
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

/// Runs until the program ends, because the static `SPAWNER` keeps a sender.
fn serve(requests: &Receiver<StartRequest>) {
    for StartRequest { control, answer } in requests {
        if let Err(unheard) = answer.send(start(control))
            && let Ok(mut child) = unheard.0
        {
            // The caller no longer waits for the helper.
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
