//! Memory outside of processes: System V shared memory segments, message queues and semaphores, and tmpfs file systems.
//!
//! Only the helper is in the namespaces that contain them. It opens them once, before a stage runs, and the host reads
//! them for every sample. Each list shows the namespace of the process that opened it.
#![forbid(unsafe_code)]

use crate::fault::At;
use glovebox_jail_helper::control::send_frame;
use glovebox_jail_helper::policy::Policy;
use glovebox_jail_helper::wire::{Failure, Reply};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::path::Path;

/// Descriptors for the host, in the order of [`Reply::Stores`].
#[derive(Debug)]
pub(crate) struct Stores(Vec<OwnedFd>);

impl Stores {
    /// Opens the stores inside the jail. `proc` is any `/proc`.
    pub(crate) fn open(proc: impl AsFd, policy: &Policy) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for name in ["shm", "msg", "sem"] {
            let list = match openat(&proc, format!("sysvipc/{name}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
                // A kernel without System V IPC has no such list. An empty list has the same meaning.
                Err(Errno::NOENT) => openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()),
                opened => opened,
            };
            all.push(list.at(format!("open the list of {name}"))?);
        }
        for folder in [policy.tmp.as_path(), &policy.home, Path::new("/dev/shm")] {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            all.push(open(folder, flags, Mode::empty()).at(format!("open {}", folder.display()))?);
        }
        Ok(Self(all))
    }

    /// Sends the descriptors to the host.
    pub(crate) fn send(&self, control: impl AsFd) -> Result<(), Failure> {
        let beside: Vec<_> = self.0.iter().map(AsFd::as_fd).collect();
        send_frame(control, &Reply::Stores, &beside)
            .map_err(|error| crate::fault::refused("send a reply", error.to_string()))
    }
}
