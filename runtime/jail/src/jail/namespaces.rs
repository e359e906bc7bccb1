//! The creator of a jail's namespaces, and the differences that the host must know.
//!
//! All of the host's knowledge about `bwrap` is here and in [`super::bwrap`].

use super::JailError;
use super::bwrap::Bwrap;
use super::control::{Control, wait_readable};
use glovebox_jail_helper::wire::Request;
use glovebox_record::Tier;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Longest time that a PID namespace of `bwrap` may take to die when its first process is killed.
const NAMESPACE_MAX: Duration = Duration::from_secs(5);

/// The creator of a jail's namespaces.
#[derive(Debug)]
pub(super) enum Namespaces {
    /// The helper itself.
    Helper,
    /// `bwrap`, which the helper becomes.
    Bwrap(Bwrap),
    /// Nothing does: commands share those of the host.
    Shared,
}

impl Namespaces {
    /// Returns who makes them in a tier.
    pub(super) fn for_tier(tier: Tier) -> Self {
        match tier {
            Tier::Full => Self::Helper,
            Tier::Bwrap => Self::Bwrap(Bwrap::default()),
            Tier::Landlock | Tier::Unconfined => Self::Shared,
        }
    }

    /// Continues after the helper has reported its first process; takes the descriptors that came with the report.
    pub(super) fn spawned(
        &mut self,
        control: &Control,
        setup: &Request,
        mut descriptors: impl Iterator<Item = OwnedFd>,
    ) -> io::Result<()> {
        match self {
            Self::Bwrap(bwrap) => bwrap.spawned(control, setup, descriptors.next()),
            Self::Helper | Self::Shared => Ok(()),
        }
    }

    /// Returns why the helper ended without a reply, if that is known.
    pub(super) fn explain_silence(&self) -> Option<JailError> {
        match self {
            Self::Bwrap(bwrap) => bwrap.explain(),
            Self::Helper | Self::Shared => None,
        }
    }

    /// Removes a degradation that the helper named because it cannot know the user outside.
    pub(super) fn correct(&self, degradations: &mut Vec<String>, is_root: bool) {
        // The kernel counts the processes of the user namespace of `bwrap`, for every user but root.
        if matches!(self, Self::Bwrap(_)) && !is_root {
            degradations.retain(|name| name != "processes=soft");
        }
    }

    /// Kills everything in the jail, where one signal can, and waits until the first process is dead. False at the deadline.
    /// Elsewhere the closed control socket makes the helper kill.
    pub(super) fn kill(&self, first: &OwnedFd, max: Duration) -> io::Result<bool> {
        let kill_first = || {
            // A process that has already ended needs no kill.
            let _ = pidfd_send_signal(first, Signal::KILL);
        };
        if matches!(self, Self::Helper) {
            kill_first();
        }
        let is_dead = wait_readable(first, Instant::now() + max)?;
        if is_dead || !matches!(self, Self::Bwrap(_)) {
            return Ok(is_dead);
        }
        // The first process is that of `bwrap`: its PID namespace dies with it.
        kill_first();
        wait_readable(first, Instant::now() + NAMESPACE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_an_ordinary_user_in_bwrap_are_bounded_by_the_kernel() {
        for (tier, is_root, left) in
            [(Tier::Bwrap, false, 0), (Tier::Bwrap, true, 1), (Tier::Landlock, false, 1), (Tier::Full, true, 1)]
        {
            let mut degradations = vec!["processes=soft".to_owned()];
            Namespaces::for_tier(tier).correct(&mut degradations, is_root);
            assert_eq!(degradations.len(), left, "{tier} {is_root}");
        }
    }
}
