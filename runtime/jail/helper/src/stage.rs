//! Takes the policy, builds the sandbox, and hands over to the loop of the jail's first process.
//!
//! In tier `full` there are two processes. This one stays outside, where it can wait for PID 1 and die with the host; its fork becomes
//! PID 1. In the other tiers this process is the subreaper itself. It dies with the host only where the kernel then kills everything
//! with it. Elsewhere it kills its descendants first, when the control socket closes.
#![forbid(unsafe_code)]

use crate::command::CommandConfinement;
use crate::entry::{Entry, enter_cgroups};
use crate::fault::{At, refused};
use crate::landlock::Rules;
use crate::reaper::Reach;
use crate::seccomp::Filters;
use crate::serve::{self, Jail};
use crate::stores::Stores;
use crate::template::{self, Prepared};
use crate::{bounds, bwrap, credentials, mounts, namespaces, network, raw};
use glovebox_jail_helper::control::{receive_frame, send_frame};
use glovebox_jail_helper::policy::{Confinement, Network, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure, Reply, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, geteuid, getpid, getppid, pidfd_open, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal,
};
use std::process::ExitCode;

/// Takes the first request and serves until the host is gone. The exit code is 1 when the jail could not be built.
pub(crate) fn enter() -> ExitCode {
    // Once and not for each command. A socket or pipe whose other end is gone is reported by its call, or ends this process as well.
    raw::reset_signals();
    let entry = Entry::of_this_process();
    let control = match move_control(&entry) {
        Ok(control) => control,
        Err(_) => return ExitCode::FAILURE,
    };
    let policy = match receive_frame::<Request>(&control) {
        Ok(Some((Request::Setup(policy), _))) => *policy,
        Ok(Some((Request::Prepare(preparation), _))) if entry == Entry::Host => {
            return template::serve(control, preparation);
        }
        Ok(Some(_)) => return fail(&control, refused("set up", "the first request must be `setup` or `prepare`")),
        Err(error) => return fail(&control, refused("set up", error.to_string())),
        Ok(None) => return ExitCode::FAILURE,
    };
    let built = match (policy.confinement, &entry) {
        (Confinement::Full, Entry::Host) => full(&control, policy),
        (Confinement::Bwrap, Entry::Host) => bwrap::enter(&control, &policy),
        (Confinement::Bwrap, Entry::Bwrap(_)) | (Confinement::Landlock | Confinement::Unconfined, Entry::Host) => {
            as_subreaper(&control, policy, &entry)
        }
        (_, Entry::Bwrap(_)) => Err(refused("set up", "the policy differs between inside and outside of `bwrap`")),
    };
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&control, failure),
    }
}

/// Moves the control socket to another number, so that a command can have 0.
fn move_control(entry: &Entry) -> Result<OwnedFd, Failure> {
    // No other descriptor belongs to this process yet.
    raw::close_rest().at("close_range")?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).at("copy the control socket")?;
    entry.leave_session()?;
    Ok(control)
}

/// Reports why there is no jail.
pub(crate) fn fail(control: &OwnedFd, failure: Failure) -> ExitCode {
    // A host that is gone needs no reply.
    let _ = send_frame(control, &Reply::Failed(failure), &[]);
    ExitCode::FAILURE
}

/// Replaces descriptor 0: a second descriptor of the control socket would keep it open.
pub(crate) fn release_stdin() -> Result<(), Failure> {
    rustix::stdio::dup2_stdin(rustix::stdio::stdout()).at("redirect standard input")
}

/// Dies with the host, also if that has already ended.
pub(crate) fn die_with_host() -> Result<(), Failure> {
    let host = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    if getppid() == host { Ok(()) } else { Err(refused("set the parent death signal", "the host is gone")) }
}

/// Builds tier `full`: seven namespaces and its own root. This process stays outside and waits.
fn full(control: &OwnedFd, policy: Policy) -> Result<(), Failure> {
    die_with_host()?;
    release_stdin()?;
    let base = Base { is_root_outside: geteuid().is_root(), prepared: None };
    enter_cgroups(&policy)?;
    credentials::clear_groups()?;
    namespaces::enter(&policy)?;
    // Not before the id maps: they are files of a process that can be looked into.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let outside = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    let (announced, announce_end) = pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
    let Some(first) = raw::fork().at("fork")? else {
        drop(announce_end);
        let built = die_with(&outside).and_then(|()| raise(control, policy, &base));
        // The process outside announces this one: the first reply must be `Spawned`.
        wait_for_announcement(&announced);
        raw::exit_now(serve_or_fail(control, built))
    };
    announce(control, first, announce_end)
}

/// Serves a jail until the host is gone, or reports why there is none. Returns the exit code.
pub(crate) fn serve_or_fail(control: &OwnedFd, built: Result<Raised, Failure>) -> i32 {
    match built.and_then(Raised::serve) {
        Ok(()) => 0,
        Err(failure) => {
            fail(control, failure);
            1
        }
    }
}

/// Tells the host that PID 1 exists, then waits for its end.
fn announce(control: &OwnedFd, first: Pid, announce_end: OwnedFd) -> Result<(), Failure> {
    let pidfd = pidfd_open(first, PidfdFlags::empty()).at("open a pidfd")?;
    send_frame(control, &Reply::Spawned, &[pidfd.as_fd()])
        .map_err(|error| refused("send a reply", error.to_string()))?;
    drop(announce_end);
    // Only PID 1 may keep the jail's end of the control socket open.
    raw::close_rest().at("close_range")?;
    while !matches!(raw::reap(raw::Wait::Until), Err(_) | Ok(None)) {}
    raw::exit_now(0)
}

/// Waits until the process outside has announced this one.
fn wait_for_announcement(announced: &OwnedFd) {
    // The end of the pipe is the message.
    let _ = rustix::io::read(announced, &mut [0_u8; 1]);
}

/// What exists before a jail of tier `full` is built.
pub(crate) struct Base<'t> {
    /// Whether the user outside all namespaces is root, for whom some limits do not count.
    pub(crate) is_root_outside: bool,
    /// What a template has prepared.
    pub(crate) prepared: Option<&'t Prepared>,
}

/// A jail of tier `full` that is built, and what the host gets of it.
pub(crate) struct Raised {
    jail: Jail,
    enforcement: Enforcement,
    stores: Stores,
    listener: Option<OwnedFd>,
    hosts_end: Option<OwnedFd>,
}

/// Builds a jail of tier `full` around this process, which is the first of its PID namespace.
pub(crate) fn raise(control: &OwnedFd, policy: Policy, base: &Base<'_>) -> Result<Raised, Failure> {
    let mut enforcement = Enforcement::default();
    let built = mounts::build(&policy, base, &mut enforcement)?;
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
        reach: Reach::Namespace,
        policy,
    };
    Ok(Raised { jail, enforcement, stores, listener, hosts_end })
}

impl Raised {
    /// Hands the host what it gets, and serves until the host is gone.
    fn serve(self) -> Result<(), Failure> {
        let Self { jail, enforcement, stores, listener, hosts_end } = self;
        stores.send(&jail.control)?;
        drop(stores);
        let mut beside = vec![jail.workspace.as_fd()];
        beside.extend(listener.as_ref().map(AsFd::as_fd));
        beside.extend(hosts_end.as_ref().map(AsFd::as_fd));
        ready(&jail, enforcement, &beside)?;
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

/// Makes this process die with the process outside, also if that has already ended.
pub(crate) fn die_with(outside: &OwnedFd) -> Result<(), Failure> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = poll(&mut [PollFd::new(outside, PollFlags::IN)], Some(&now)).at("poll")?;
    if gone > 0 { Err(refused("set the parent death signal", "the process outside is gone")) } else { Ok(()) }
}

/// Builds a tier without own namespaces: this process is the subreaper.
fn as_subreaper(control: &OwnedFd, policy: Policy, entry: &Entry) -> Result<(), Failure> {
    let host = getppid();
    release_stdin()?;
    set_child_subreaper(Some(getpid())).at("become a subreaper")?;
    entry.check(&policy)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let mut enforcement = Enforcement::default();
    let stores = entry.prepare(&policy, &mut enforcement)?;
    let confinement = confine(&policy, None, &mut enforcement)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let jail = Jail {
        control: control.try_clone().at("copy the control socket")?,
        sockets: None,
        children: raw::child_signals().at("open a signalfd")?,
        workspace: open(&policy.workspace.at, flags, Mode::empty()).at("open workspace")?,
        confinement,
        reach: entry.reach(policy.confinement, host),
        policy,
    };
    entry.announce(control)?;
    stores.map_or(Ok(()), |stores| stores.send(&jail.control))?;
    ready(&jail, enforcement, &[])?;
    serve::serve(&jail);
    Ok(())
}

/// Gives up every privilege, confines this process, and returns what confines each command.
fn confine(
    policy: &Policy,
    prepared: Option<&Prepared>,
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
    let rules = Rules::build(policy)?;
    enforcement.landlock_abi = rules.enforce()?;
    if policy.confinement == Confinement::Landlock {
        // This process lives among those of the host, some of whose calls it needs. So each command applies them itself.
        return Ok(CommandConfinement { rules: Some(rules), filters });
    }
    // Every command inherits them: the kernel installs a filter once, and this process is confined as well.
    filters.enforce()?;
    Ok(CommandConfinement { rules: Some(rules), filters: Filters::default() })
}

fn ready(jail: &Jail, enforcement: Enforcement, beside: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    send_frame(&jail.control, &Reply::Ready(enforcement), beside)
        .map_err(|error| refused("send a reply", error.to_string()))
}
