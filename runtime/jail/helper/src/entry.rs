//! The place where the helper was started: on the host, or inside the namespaces that `bwrap` created.
//!
//! All differences between the two places are here and in [`crate::bwrap`]. This module decides nothing about a
//! command.
#![forbid(unsafe_code)]

use crate::bounds::enter_cgroups;
use crate::bwrap;
use crate::credentials;
use crate::fault::{At, refused};
use crate::reaper::KillScope;
use crate::stores::Stores;
use glovebox_jail_helper::control::send_frame;
use glovebox_jail_helper::policy::{Confinement, Network, Policy, Source};
use glovebox_jail_helper::wire::{Enforcement, Failure, Reply};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, setsid};

/// The place where the helper was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// On the host, by Glovebox.
    Host,
    /// Inside the namespaces of `bwrap`, by `bwrap`.
    Bwrap(bwrap::Inside),
}

impl Entry {
    /// Reads the place from the arguments of this process.
    pub(crate) fn for_this_process() -> Self {
        bwrap::Inside::for_this_process().map_or(Self::Host, Self::Bwrap)
    }

    /// Leaves the session of the host's terminal. Signals of the terminal would end this process, which is the only one
    /// that can kill the others.
    pub(crate) fn leave_session(&self) -> Result<(), Failure> {
        match self {
            Self::Host => setsid().at("setsid").map(drop),
            // `bwrap` has started a new session.
            Self::Bwrap(_) => Ok(()),
        }
    }

    /// Refuses a policy that needs namespaces which this process does not have, and enters the control groups.
    pub(crate) fn check(&self, policy: &Policy) -> Result<(), Failure> {
        if let Self::Bwrap(_) = self {
            return Ok(());
        }
        if matches!(policy.workspace.source, Source::Overlay { .. }) || !policy.workspace.inner.is_empty() {
            return Err(refused("set up the workspace", "layers and inner mounts need tier `full`"));
        }
        if policy.network == Network::Proxy {
            return Err(refused("set up the network", "a proxy needs a network namespace"));
        }
        if policy.sockets {
            return Err(refused("set up the network", "sockets for the host need tier `full`"));
        }
        enter_cgroups(policy)
    }

    /// Drops supplementary groups, and records the limits that this place cannot enforce. Returns the stores that
    /// belong to the jail alone.
    pub(crate) fn prepare(&self, policy: &Policy, enforcement: &mut Enforcement) -> Result<Option<Stores>, Failure> {
        let stores = match self {
            Self::Host => {
                if policy.confinement != Confinement::Unconfined {
                    credentials::clear_groups()?;
                }
                enforcement.degradations.push("processes=shared".to_owned());
                // These are folders of the host, whose size has no limit.
                enforcement.degradations.push("tmp=none".to_owned());
                None
            }
            Self::Bwrap(inside) => Some(inside.stores(policy)?),
        };
        if policy.cgroup_procs.is_empty() {
            // The limit on processes of the user would also count processes outside of the jail here.
            enforcement.degradations.push("processes=soft".to_owned());
        }
        Ok(stores)
    }

    /// Determines how far a kill by this process reaches. `host` is the process that started this one.
    pub(crate) fn reach(&self, confinement: Confinement, host: Option<Pid>) -> KillScope {
        match self {
            Self::Host => KillScope::for_subreaper(confinement, host),
            Self::Bwrap(inside) => inside.reach(),
        }
    }

    /// Announces this process to the host. Inside `bwrap`, that has already happened.
    pub(crate) fn announce(&self, control: &OwnedFd) -> Result<(), Failure> {
        if let Self::Bwrap(_) = self {
            return Ok(());
        }
        let own = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
        send_frame(control, &Reply::Spawned, &[own.as_fd()]).map_err(|error| refused("send a reply", error.to_string()))
    }
}
