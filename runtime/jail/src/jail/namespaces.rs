//! The program that creates a jail's namespaces, and what the host does differently for each such program.
//!
//! All of the host's code about `bwrap` is here and in [`super::bwrap`].

use super::JailError;
use super::bwrap::Bwrap;
use super::control::{Control, wait_readable};
use glovebox_jail_helper::wire::Request;
use glovebox_record::Tier;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum time for a PID namespace of `bwrap` to end after its first process was killed.
const NAMESPACE_MAX: Duration = Duration::from_secs(5);

/// The program that creates a jail's namespaces.
#[derive(Debug)]
pub(super) enum Namespaces {
    /// The helper itself.
    Helper,
    /// `bwrap`, which the helper executes.
    Bwrap(Bwrap),
    /// No program: commands share the namespaces of the host.
    Shared,
}

impl Namespaces {
    /// Returns the program for a tier.
    pub(super) fn for_tier(tier: Tier) -> Self {
        match tier {
            Tier::Full => Self::Helper,
            Tier::Bwrap => Self::Bwrap(Bwrap::default()),
            Tier::Landlock | Tier::Unconfined => Self::Shared,
        }
    }

    /// Handles the helper's report that the first process exists. Takes the descriptors that came with the report.
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

    /// Returns the reason why the helper ended without a reply, if it is known.
    pub(super) fn explain_silence(&self) -> Option<JailError> {
        match self {
            Self::Bwrap(bwrap) => bwrap.explain(),
            Self::Helper | Self::Shared => None,
        }
    }

    /// Removes a degradation that the helper added because it cannot know the user outside of its user namespace.
    pub(super) fn correct(&self, degradations: &mut Vec<String>, is_root: bool) {
        // For every user except root, the kernel counts the processes of the user namespace of `bwrap`.
        if matches!(self, Self::Bwrap(_)) && !is_root {
            degradations.retain(|name| name != "processes=soft");
        }
    }

    /// Kills everything in the jail, if one signal can do that, and waits until the first process is dead. Returns
    /// false at the deadline. In the other tiers, the helper kills all processes because the control socket is closed.
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
        // The first process is that of `bwrap`. Its PID namespace ends with it.
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
