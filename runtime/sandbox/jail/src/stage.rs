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
use crate::{bounds, bwrap, credentials, mounts, namespaces, network, raw};
use glovebox_jail::control::{receive_frame, send_frame};
use glovebox_jail::policy::{Confinement, Network, Policy};
use glovebox_jail::wire::{Enforcement, Failure, Reply, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use std::process::ExitCode;

/// Takes the first request and serves until the host is gone. The exit code is 1 when the jail could not be built.
pub(crate) fn enter() -> ExitCode {
    let entry = Entry::of_this_process();
    let control = match move_control(&entry) {
        Ok(control) => control,
        Err(_) => return ExitCode::FAILURE,
    };
    let policy = match receive_frame::<Request>(&control) {
        Ok(Some((Request::Setup(policy), _))) => *policy,
        Ok(Some(_)) => return fail(&control, refused("set up", "the first request must be `setup`")),
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

fn fail(control: &OwnedFd, failure: Failure) -> ExitCode {
    // A host that is gone needs no reply.
    let _ = send_frame(control, &Reply::Failed(failure), &[]);
    ExitCode::FAILURE
}

/// Replaces descriptor 0: a second descriptor of the control socket would keep it open.
fn release_stdin() -> Result<(), Failure> {
    rustix::stdio::dup2_stdin(rustix::stdio::stdout()).at("redirect standard input")
}

/// Builds tier `full`: seven namespaces and its own root. This process stays outside and waits.
fn full(control: &OwnedFd, policy: Policy) -> Result<(), Failure> {
    let host = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    if getppid() != host {
        return Err(refused("set the parent death signal", "the host is gone"));
    }
    release_stdin()?;
    enter_cgroups(&policy)?;
    credentials::clear_groups()?;
    namespaces::enter(&policy)?;
    // Not before the id maps: they are files of a process that can be looked into.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at("set dumpable")?;
    let outside = pidfd_open(getpid(), PidfdFlags::empty()).at("open a pidfd")?;
    let (announced, announce_end) = pipe_with(PipeFlags::CLOEXEC).at("make a pipe")?;
    let Some(first) = raw::fork().at("fork")? else {
        drop(announce_end);
        let code = match first_process(control, policy, &outside, &announced) {
            Ok(()) => 0,
            Err(failure) => {
                wait_for_announcement(&announced);
                fail(control, failure);
                1
            }
        };
        raw::exit_now(code)
    };
    announce(control, first, announce_end)
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

/// Waits until the process outside has announced this one: the first reply must be `Spawned`.
fn wait_for_announcement(announced: &OwnedFd) {
    // The end of the pipe is the message.
    let _ = rustix::io::read(announced, &mut [0_u8; 1]);
}

fn first_process(control: &OwnedFd, policy: Policy, outside: &OwnedFd, announced: &OwnedFd) -> Result<(), Failure> {
    die_with(outside)?;
    let mut enforcement = Enforcement::default();
    let built = mounts::build(&policy, &mut enforcement)?;
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
    if !is_bounded && policy.cgroup_procs.is_empty() && credentials::is_root_outside() {
        enforcement.degradations.push("processes=soft".to_owned());
    }
    let confinement = confine(&policy, &mut enforcement)?;
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
    wait_for_announcement(announced);
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

/// Makes the socket pair for the host's requests for sockets: the helper's end, and the host's.
fn socket_pair() -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
    let (ours, hosts) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).at("make a socket pair")?;
    Ok((Some(ours), Some(hosts)))
}

/// Makes this process die with the process outside, also if that has already ended.
fn die_with(outside: &OwnedFd) -> Result<(), Failure> {
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
    let confinement = confine(&policy, &mut enforcement)?;
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
fn confine(policy: &Policy, enforcement: &mut Enforcement) -> Result<CommandConfinement, Failure> {
    if policy.confinement == Confinement::Unconfined {
        return Ok(CommandConfinement::default());
    }
    credentials::drop_all()?;
    let (filters, own) = (Filters::compile(policy.confinement, policy.network)?, Filters::of_commands()?);
    let rules = Rules::build(policy)?;
    enforcement.landlock_abi = rules.enforce()?;
    if policy.confinement == Confinement::Landlock {
        // This process opens the folder of a command with a call that the filters refuse. So each command applies them itself.
        return Ok(CommandConfinement { rules: Some(rules), filters: filters.and(own) });
    }
    // Every command inherits them: the kernel installs a filter once, and this process is confined as well.
    filters.enforce()?;
    Ok(CommandConfinement { rules: Some(rules), filters: own })
}

fn ready(jail: &Jail, enforcement: Enforcement, beside: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    send_frame(&jail.control, &Reply::Ready(enforcement), beside)
        .map_err(|error| refused("send a reply", error.to_string()))
}
