//! Where the first process of a jail comes from: a separate helper, or a fork of a template. The cleanup of the jail
//! depends on it.

use super::control::wait_readable;
use glovebox_workspace::regular_file;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

/// Maximum time for the helper of a dead jail to end.
const REAP_MAX: Duration = Duration::from_secs(5);

/// The resources to release after all processes of a jail are dead.
#[derive(Debug)]
pub(super) enum Origin {
    /// A helper, which is a child of Glovebox. Glovebox must reap it.
    Program(Child),
    /// The first process, which the template reaps, with its mount namespace once it is known. While Glovebox holds
    /// the namespace, the death of the first process does not wait until the kernel has removed the mounts.
    Fork(Option<OwnedFd>),
}

impl Origin {
    /// Waits for the end of the helper and releases the resources. All processes of the jail must be dead.
    pub(super) fn clean_up(self) -> io::Result<()> {
        let mut child = match self {
            Self::Program(child) => child,
            Self::Fork(mounts) => {
                drop(mounts);
                return Ok(());
            }
        };
        if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
            && child.try_wait()?.is_none()
            // The child is not reaped yet, so its id was not reused.
            && !wait_readable(pidfd_open(process, PidfdFlags::empty())?, Instant::now() + REAP_MAX)?
        {
            // Everything in the jail is dead, and only the helper does not end.
            child.kill()?;
        }
        child.wait().map(drop)
    }
}

/// Returns the PID of the process that a pidfd refers to, in the PID namespace of Glovebox. Returns `None` if the process
/// has ended.
pub(super) fn pid_of(pidfd: &OwnedFd) -> Option<i32> {
    let shown = regular_file::kernel_text(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let number = shown.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    number.trim().parse().ok().filter(|process| *process > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfd_names_its_process_until_that_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Pid::from_raw(child.id() as i32).unwrap();
        let pidfd = pidfd_open(process, PidfdFlags::empty()).unwrap();
        assert_eq!(pid_of(&pidfd), Some(child.id() as i32));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(pid_of(&pidfd), None);
    }
}
