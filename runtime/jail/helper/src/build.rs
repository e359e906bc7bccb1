//! Builds a jail of tier `full` around the first process of a PID namespace, and confines the first process of every
//! tier.
#![forbid(unsafe_code)]

use crate::command::CommandConfinement;
use crate::fault::At;
use crate::host;
use crate::landlock::PathRules;
use crate::mounts::{self, PreparedRoot};
use crate::reaper::KillScope;
use crate::renames::RenameListener;
use crate::seccomp::Filters;
use crate::serve::{self, Jail};
use crate::stores::Stores;
use crate::{bounds, credentials, namespaces, network, raw};
use glovebox_jail_helper::policy::{Confinement, HOST_NAME, Network, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Inputs for a jail of tier `full`.
pub(crate) struct Base<'t> {
    /// True if the user outside of all namespaces is root, to whom some limits do not apply.
    pub(crate) is_root_outside: bool,
    /// Parts that a template has prepared; `None` without a template.
    pub(crate) prepared: Option<&'t PreparedParts>,
}

/// The read-only parts that all jails of a template share.
#[derive(Debug)]
pub(crate) struct PreparedParts {
    /// The read-only part of every root.
    pub(crate) root: PreparedRoot,
    /// The filters that each jail installs in addition to those of the template.
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
    // Root outside is not bound by the limit of a user, and without a control group only the ids bound its processes.
    let needs_ids = policy.cgroup_procs.is_empty() && base.is_root_outside;
    let is_bounded = needs_ids && bounds::limit_process_ids(&built.proc, &policy.bounds);
    bounds::randomize_process_ids(&built.proc, is_bounded, &policy.bounds);
    if policy.network != Network::Full {
        bounds::allow_all_ports(&built.proc);
    }
    rustix::system::sethostname(HOST_NAME.as_bytes()).at("set the host name")?;
    namespaces::forbid_more(&built.proc);
    bounds::limit_shared(&built.proc, &policy.bounds);
    let stores = Stores::open(&built.proc, &policy)?;
    let workspace = mounts::seal(built)?;
    if policy.network != Network::Full {
        network::raise_loopback()?;
    }
    let listener = if policy.network == Network::Proxy { Some(network::listen()?) } else { None };
    if needs_ids && !is_bounded {
        enforcement.degradations.push("processes=soft".to_owned());
    }
    let confinement = confine(&policy, base.prepared, &mut enforcement)?;
    let renames = RenameListener::install(&policy, &workspace, &mut enforcement)?;
    let (sockets, hosts_end) = if policy.sockets { socket_pair()? } else { (None, None) };
    let jail = Jail {
        control: control.try_clone().at("copy the control socket")?,
        sockets,
        children: raw::child_signals().at("open a signalfd")?,
        workspace,
        confinement,
        reach: KillScope::Namespace,
        renames,
        policy,
    };
    Ok(FullJail { jail, enforcement, stores, listener, hosts_end })
}

impl FullJail {
    /// Sends the descriptors to the host, and serves requests until the host closes the control socket.
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

/// Creates the socket pair for the host's requests for sockets. Returns the helper's end and the host's end.
fn socket_pair() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
    let (ours, hosts) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).at("make a socket pair")?;
    Ok((Some(ours), Some(hosts)))
}

/// Serves a jail until the host closes the control socket, or reports why the jail could not be built. Returns the exit
/// code.
pub(crate) fn serve_or_fail(control: &OwnedFd, built: Result<FullJail, Failure>) -> i32 {
    match built.and_then(FullJail::serve) {
        Ok(()) => 0,
        Err(failure) => {
            host::fail(control, failure);
            1
        }
    }
}

/// Drops all privileges, confines this process, and returns the confinement for each command.
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
        // This process runs among the host's processes and needs some of the refused calls. Each command applies the
        // confinement itself.
        return Ok(CommandConfinement { rules: Some(rules), filters });
    }
    // Every command inherits the filters, so the kernel installs them only once, and this process is confined too.
    filters.enforce()?;
    Ok(CommandConfinement { rules: Some(rules), filters: Filters::default() })
}
