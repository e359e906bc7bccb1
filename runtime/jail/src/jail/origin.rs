//! Origin of the first process of a jail: a separate helper, or a fork of a template. It decides how the jail is cleaned up.

use super::control::wait_readable;
use glovebox_workspace::regular_file;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

/// Longest time that the helper of a dead jail may take to end.
const REAP_MAX: Duration = Duration::from_secs(5);

/// The resources to release when all processes of a jail are dead.
#[derive(Debug)]
pub(super) enum Origin {
    /// A child of this program, which must reap it.
    Program(Child),
    /// The first process, which its template reaps, and its mount namespace once that is known. While the namespace is held, the
    /// death of the first process does not wait until the kernel has removed its mounts.
    Fork(Option<OwnedFd>),
}

impl Origin {
    /// Waits for its end and releases its resources. All processes of the jail must be dead.
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
            // Not reaped yet, so the number is still its own.
            && !wait_readable(pidfd_open(process, PidfdFlags::empty())?, Instant::now() + REAP_MAX)?
        {
            // Everything in the jail is dead; only the helper is stuck.
            child.kill()?;
        }
        child.wait().map(drop)
    }
}

/// Returns the number of the process behind a pidfd, as this program sees it; none when it has ended.
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
