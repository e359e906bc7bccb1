//! Builds a jail of tier `full` around the first process of a PID namespace, and confines the first process of every tier.
#![forbid(unsafe_code)]

use crate::command::CommandConfinement;
use crate::fault::At;
use crate::host;
use crate::landlock::PathRules;
use crate::mounts::{self, PreparedRoot};
use crate::reaper::KillScope;
use crate::seccomp::Filters;
use crate::serve::{self, Jail};
use crate::stores::Stores;
use crate::{bounds, credentials, namespaces, network, raw};
use glovebox_jail_helper::policy::{Confinement, Network, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// State before a jail of tier `full` is built.
pub(crate) struct Base<'t> {
    /// True if the user outside all namespaces is root, for whom some limits do not count.
    pub(crate) is_root_outside: bool,
    /// Parts that a template has prepared.
    pub(crate) prepared: Option<&'t PreparedParts>,
}

/// The read-only parts that all jails of a template share.
#[derive(Debug)]
pub(crate) struct PreparedParts {
    /// The read-only part of every root.
    pub(crate) root: PreparedRoot,
    /// Filters that each jail adds to those that the template carries.
    pub(crate) filters: Filters,
}

/// A jail of tier `full`, and the descriptors for the host.
pub(crate) struct FullJail {
    jail: Jail,
    enforcement: Enforcement,
    stores: Stores,
    listener: Option<OwnedFd>,
    hosts_end: Option<OwnedFd>,
}

/// Builds a jail of tier `full` around this process, which is the first of its PID namespace.
pub(crate) fn full(control: &OwnedFd, policy: Policy, base: &Base<'_>) -> Result<FullJail, Failure> {
    let mut enforcement = Enforcement::default();
    let built =
        mounts::build(&policy, base.prepared.map(|prepared| &prepared.root), base.is_root_outside, &mut enforcement)?;
    let is_bounded = bounds::limit_process_ids(&built.proc, &policy.bounds);
    namespaces::forbid_more(&built.proc);
    bounds::limit_shared(&built.proc, &policy.bounds);
    let stores = Stores::open(&built.proc, &policy)?;
    let workspace = mounts::seal(built)?;
    if policy.network != Network::Full {
        network::raise_loopback()?;
    }
    let listener = if policy.network == Network::Proxy { Some(network::listen()?) } else { None };
    // The limit of a user does not count for root of the host.
    if !is_bounded && policy.cgroup_procs.is_empty() && base.is_root_outside {
        enforcement.degradations.push("processes=soft".to_owned());
    }
    let confinement = confine(&policy, base.prepared, &mut enforcement)?;
    let (sockets, hosts_end) = if policy.sockets { socket_pair()? } else { (None, None) };
    let jail = Jail {
        control: control.try_clone().at("copy the control socket")?,
        sockets,
        children: raw::child_signals().at("open a signalfd")?,
        workspace,
        confinement,
        reach: KillScope::Namespace,
        policy,
    };
    Ok(FullJail { jail, enforcement, stores, listener, hosts_end })
}

impl FullJail {
    /// Sends the descriptors to the host, and serves until the host is gone.
    fn serve(self) -> Result<(), Failure> {
        let Self { jail, enforcement, stores, listener, hosts_end } = self;
        stores.send(&jail.control)?;
        drop(stores);
        let mut beside = vec![jail.workspace.as_fd()];
        beside.extend(listener.as_ref().map(AsFd::as_fd));
        beside.extend(hosts_end.as_ref().map(AsFd::as_fd));
        host::report_ready(&jail.control, enforcement, &beside)?;
        drop((listener, hosts_end));
        serve::serve(&jail);
        Ok(())
    }
}

/// Makes the socket pair for the host's requests for sockets: the helper's end, and the host's.
fn socket_pair() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
    let (ours, hosts) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).at("make a socket pair")?;
    Ok((Some(ours), Some(hosts)))
}

/// Serves a jail until the host is gone, or reports why there is none. Returns the exit code.
pub(crate) fn serve_or_fail(control: &OwnedFd, built: Result<FullJail, Failure>) -> i32 {
    match built.and_then(FullJail::serve) {
        Ok(()) => 0,
        Err(failure) => {
            host::fail(control, failure);
            1
        }
    }
}

/// Gives up every privilege, confines this process, and returns what confines each command.
pub(crate) fn confine(
    policy: &Policy,
    prepared: Option<&PreparedParts>,
    enforcement: &mut Enforcement,
) -> Result<CommandConfinement, Failure> {
    if policy.confinement == Confinement::Unconfined {
        return Ok(CommandConfinement::default());
    }
    credentials::drop_all()?;
    let filters = match prepared {
        Some(prepared) => prepared.filters.clone(),
        None => Filters::compile(policy.confinement, policy.network)?,
    };
    let rules = PathRules::build(policy)?;
    enforcement.landlock_abi = rules.enforce()?;
    if policy.confinement == Confinement::Landlock {
        // This process lives among those of the host, some of whose calls it needs. So each command applies them itself.
        return Ok(CommandConfinement { rules: Some(rules), filters });
    }
    // Every command inherits them: the kernel installs a filter once, and this process is confined as well.
    filters.enforce()?;
    Ok(CommandConfinement { rules: Some(rules), filters: Filters::default() })
}
